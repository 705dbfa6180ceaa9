package deployer

import "os/exec"

// begin starts the command in a goroutine that is prepared for it, and returns once it has been started or could not be; the channel gets how
// it ended.
func begin(command *exec.Cmd, prepare func(), begun func()) <-chan error {
	started, exited := make(chan struct{}), make(chan error, 1)
	go func() {
		prepare()
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
