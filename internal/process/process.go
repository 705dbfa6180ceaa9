// Package process starts programs that end with their parent. It also sets a program's use of
// memory and its address to listen on.
//
// Its invariant: on Linux, where the kernel supports it, no such program outlives its parent, for
// any end.
package process

import "os/exec"

// start starts a command in a prepared goroutine, calls begun after a successful start, and
// returns. The channel receives the end of the command, and is then closed.
func start(command *exec.Cmd, prepare, begun func()) <-chan error {
	started, exited := make(chan struct{}), make(chan error, 1)
	go func() {
		prepare()
		defer close(exited)
		err := command.Start()
		if err == nil {
			begun()
		}
		close(started)
		if err == nil {
			err = command.Wait()
		}
		exited <- err
	}()
	<-started
	return exited
}
