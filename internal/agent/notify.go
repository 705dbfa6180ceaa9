package agent

import "context"

// waitFor returns true once a channel is closed, or at once if it is nil. It returns false if ctx
// ends first.
func waitFor(ctx context.Context, closed <-chan struct{}) bool {
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

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// notification returns a channel for kubeclient.Notify.
func notification() chan struct{} { return make(chan struct{}, 1) }
