package testkube

import "os/exec"

// run starts the command in a goroutine that is prepared for it, and returns once it has started.
func run(command *exec.Cmd, prepare func()) <-chan error {
	started, exited := make(chan struct{}), make(chan error, 1)
	go func() {
		prepare()
		defer close(exited)
		err := command.Start()
		close(started)
		if err == nil {
			err = command.Wait()
		}
		exited <- err
	}()
	<-started
	return exited
}
