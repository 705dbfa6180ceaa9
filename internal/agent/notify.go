package agent

import "context"

// waitFor returns when a channel that may be nil is closed, and false when ctx ends first.
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

// notification is a channel for kubeclient.Notify.
func notification() chan struct{} { return make(chan struct{}, 1) }
