// Package process starts programs that end with the one that started them, and says how a program uses memory and where it listens.
//
// Its invariant: where the kernel can see to that, which is on Linux, no such program outlives its parent, however that ends.
package process

import "os/exec"

// start starts a command in a goroutine that is prepared for it, calls begun if that succeeds, and returns. The channel gets how the command ended, and is
// then closed.
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
