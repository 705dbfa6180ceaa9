package agent

import (
	"context"
	"testing"
)

func TestWhatIsStartedAgainBeginsWhenWhatWasStoppedHasEnded(t *testing.T) {
	begun, finish := make(chan int, 3), make(chan struct{})
	runs := 0
	work := func(ctx context.Context) {
		runs++ // one at a time
		begun <- runs
		<-ctx.Done()
		<-finish
	}
	a := &runnables{all: []*runnable{{run: func(context.Context) {}}, {run: work}}}
	if !a.start(t.Context()) {
		t.Fatal("it does not start")
	}
	<-begun
	a.stop() // does not wait
	a.start(t.Context())
	select {
	case <-begun:
		t.Fatal("two are at work")
	default:
	}
	finish <- struct{}{}
	if second := <-begun; second != 2 {
		t.Errorf("run %d began", second)
	}
	a.end()
	if a.start(t.Context()) {
		t.Error("it starts although it was to end for good")
	}
	waited := make(chan struct{})
	go func() { a.wait(); close(waited) }()
	select {
	case <-waited:
		t.Error("it did not wait for what goes on")
	case finish <- struct{}{}:
	}
	<-waited
}
