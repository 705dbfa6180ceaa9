package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/muster-fleet/muster/internal/process"
)

// nice is the priority of the program, below the heartbeat.
const nice = 10

// start starts the program. The kernel ends it together with the agent, kills it first when memory
// runs out, and gives it the processor last.
func start(command *exec.Cmd) <-chan error {
	return process.Start(command, func() {
		pid := command.Process.Pid
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0o600) // useful, not required
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, pid, nice)                            // useful, not required
	})
}
