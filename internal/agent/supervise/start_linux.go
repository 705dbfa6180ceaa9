package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/muster-fleet/muster/internal/process"
)

// nice leaves the processor to the heartbeat.
const nice = 10

// start starts the program so that the kernel ends it with the agent, takes it first when memory runs out, and gives it the processor last.
func start(command *exec.Cmd) <-chan error {
	return process.Start(command, func() {
		pid := command.Process.Pid
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0o600) // better, not necessary
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, pid, nice)                            // better, not necessary
	})
}
