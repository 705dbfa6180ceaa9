package agent

import "context"

// await returns when a channel that may be nil is closed, and false when ctx ends first.
func await(ctx context.Context, closed <-chan struct{}) bool {
	if closed == nil {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-closed:
		return true
	}
}

// replace puts the newest value into a channel of one, whose only senders hold the same lock.
func replace[T any](newest chan T, value T) {
	select {
	case <-newest:
	default:
	}
	newest <- value
}

// poke leaves a note that is read later; one is enough.
func poke(notes chan struct{}) {
	select {
	case notes <- struct{}{}:
	default:
	}
}
