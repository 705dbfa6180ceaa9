package hostnode

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/localkube/internal/process"
)

// container runs one container of a Pod, over all its restarts.
type container struct {
	pod  *runner
	spec *corev1.Container
	init bool
	// policy is the restart policy of this container.
	policy  corev1.RestartPolicy
	resume  bool // whether there is something to run (again) at the start
	backOff backOff
	started chan struct{} // closed when the container first counts as started
	once    sync.Once

	mu  sync.Mutex
	now observation
	log *logFile
}

func (r *runner) addContainer(pod *corev1.Pod, spec *corev1.Container, statuses []corev1.ContainerStatus, init bool) {
	c := &container{pod: r, spec: spec, init: init, policy: pod.Spec.RestartPolicy, started: make(chan struct{})}
	if init && c.policy == corev1.RestartPolicyAlways {
		c.policy = corev1.RestartPolicyOnFailure // an init container is to end
	}
	if spec.RestartPolicy != nil {
		c.policy = corev1.RestartPolicy(*spec.RestartPolicy)
	}
	var previous *corev1.ContainerStatus
	for i := range statuses {
		if statuses[i].Name == spec.Name {
			previous = &statuses[i]
		}
	}
	c.now, c.resume = resume(previous, c.policy, metav1.Now())
	r.containers[spec.Name] = c
}

// sidecar reports whether an init container is always restarted, so that it runs beside the others.
func (c *container) sidecar() bool { return c.init && c.policy == corev1.RestartPolicyAlways }

// supervise runs the container until it has ended for good or ctx ends.
func (c *container) supervise(ctx context.Context) {
	if !c.resume {
		return
	}
	for {
		command, ok := c.prepare(ctx)
		if !ok {
			return
		}
		began := time.Now()
		ended := c.runOnce(ctx, command)
		c.set(func(o *observation) {
			o.State = corev1.ContainerState{Terminated: &ended}
			o.Ready, o.Started = false, false
		})
		if ctx.Err() != nil || !restarts(c.policy, ended.ExitCode) {
			return
		}
		if wait := c.backOff.next(time.Since(began)); wait > 0 {
			message := fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", wait, c.spec.Name, c.pod.key)
			c.set(func(o *observation) { o.Last, o.State = o.State, waiting("CrashLoopBackOff", message) })
			c.pod.event(corev1.EventTypeWarning, "BackOff", message)
			if !pause(ctx, wait) {
				return
			}
		} else {
			c.set(func(o *observation) { o.Last = o.State })
		}
		c.set(func(o *observation) { o.Restarts++ })
	}
}

// runOnce starts the process and returns its end. If ctx ends first, it stops the process, so that
// nothing runs after it returns.
func (c *container) runOnce(ctx context.Context, spec process.Spec) corev1.ContainerStateTerminated {
	began := metav1.Now()
	log, err := newLogFile(filepath.Join(c.pod.logDir(c.spec.Name), fmt.Sprintf("%d.log", c.restarts())))
	if err != nil {
		return failedStart(began, err)
	}
	c.setLog(log)
	defer log.close()
	spec.Stdout, spec.Stderr = log, log
	running, err := c.pod.node.config.Group.Start(spec)
	if err != nil {
		c.pod.event(corev1.EventTypeWarning, "Failed", err.Error())
		return failedStart(began, err)
	}
	c.set(func(o *observation) {
		o.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}
		o.PID = running.PID
	})
	c.pod.event(corev1.EventTypeNormal, "Started", "Started container "+c.spec.Name)
	// The probes end with the process, before its end is reported.
	probing, stopProbing := context.WithCancel(ctx)
	var probes sync.WaitGroup
	unhealthy := make(chan struct{}, 1)
	probes.Go(func() { c.probe(probing, spec, unhealthy) })
	grace := time.Duration(-1)
	select {
	case <-running.Done():
	case <-ctx.Done():
		grace = c.pod.grace()
	case <-unhealthy:
		grace = c.probeGrace()
	}
	stopProbing()
	probes.Wait()
	if grace >= 0 {
		c.pod.event(corev1.EventTypeNormal, "Killing", "Stopping container "+c.spec.Name)
		if err := running.Stop(grace, c.pod.cut); err != nil {
			c.pod.event(corev1.EventTypeWarning, "FailedKillPod", err.Error())
		}
	}
	return terminated(running, began)
}

func terminated(p *process.Process, began metav1.Time) corev1.ContainerStateTerminated {
	code, signal := p.Exit()
	end := corev1.ContainerStateTerminated{
		ExitCode: int32(code), Signal: int32(signal), Reason: "Completed",
		StartedAt: began, FinishedAt: metav1.Now(), ContainerID: containerID(p.PID),
	}
	if code != 0 {
		end.Reason = "Error"
	}
	return end
}

// failedStart returns a kubelet's report for a program that cannot be run.
func failedStart(began metav1.Time, err error) corev1.ContainerStateTerminated {
	return corev1.ContainerStateTerminated{
		ExitCode: 128, Reason: "StartError", Message: err.Error(), StartedAt: began, FinishedAt: metav1.Now(),
	}
}

// prepare resolves the command and environment. It retries while objects are missing. It gives up,
// with the reason in the status, if only another Pod or another start of the node can help.
func (c *container) prepare(ctx context.Context) (process.Spec, bool) {
	told := ""
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		spec, err := c.command(ctx)
		if err == nil {
			return spec, true
		}
		reason := "CreateContainerConfigError"
		if errors.As(err, &unknownImageError{}) {
			reason = "ErrImagePull"
		}
		if ctx.Err() != nil {
			return process.Spec{}, false
		}
		c.wait(reason, err.Error())
		if told != err.Error() {
			c.pod.event(corev1.EventTypeWarning, "Failed", err.Error())
			told = err.Error()
		}
		if reason == "ErrImagePull" {
			<-ctx.Done()
			return process.Spec{}, false
		}
		if !pause(ctx, wait) {
			return process.Spec{}, false
		}
	}
}

func (c *container) set(change func(*observation)) {
	c.mu.Lock()
	change(&c.now)
	running := c.now.State.Running != nil && c.now.Started
	c.mu.Unlock()
	if running {
		c.once.Do(func() { close(c.started) })
	}
	c.pod.touch()
}

func (c *container) wait(reason, message string) {
	c.set(func(o *observation) {
		if o.State.Terminated != nil {
			o.Last = o.State
		}
		o.State = waiting(reason, message)
	})
}

func (c *container) observe() observation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *container) restarts() int32 { return c.observe().Restarts }

func (c *container) succeeded() bool {
	end := c.observe().State.Terminated
	return end != nil && end.ExitCode == 0
}

// awaitStarted reports whether the container started before ctx ended.
func (c *container) awaitStarted(ctx context.Context) bool {
	select {
	case <-c.started:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *container) setLog(log *logFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = log
}

func (c *container) liveLog() *logFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log
}

func (r *runner) logDir(container string) string { return filepath.Join(r.dir, "logs", container) }

func containerID(pid int) string { return fmt.Sprintf("localkube://%d", pid) }

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func restarts(policy corev1.RestartPolicy, exitCode int32) bool {
	return policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && exitCode != 0
}
