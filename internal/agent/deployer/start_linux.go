package deployer

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// nice leaves the processor to the heartbeat.
const nice = 10

// start starts the program so that the kernel ends it with the agent, takes it first when memory runs out, and gives it the processor last.
// The kernel ends it with the thread that started it, so that thread is kept for as long.
func start(command *exec.Cmd) <-chan error {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return begin(command, runtime.LockOSThread, func() {
		pid := command.Process.Pid
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0o600) // better, not necessary
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, pid, nice)                            // better, not necessary
	})
}
