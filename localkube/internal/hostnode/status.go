package hostnode

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// observation is the known state of one container.
type observation struct {
	State, Last corev1.ContainerState
	Restarts    int32
	Started     bool
	Ready       bool
	PID         int
}

// resume continues a container after a restart of the node. The earlier process is lost. The second
// result reports whether there is something to run.
func resume(previous *corev1.ContainerStatus, policy corev1.RestartPolicy, now metav1.Time) (observation, bool) {
	if previous == nil {
		return observation{}, true
	}
	o := observation{State: previous.State, Last: previous.LastTerminationState, Restarts: previous.RestartCount}
	if running := previous.State.Running; running != nil {
		o.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "localkube was restarted while the container ran",
			StartedAt: running.StartedAt, FinishedAt: now, ContainerID: previous.ContainerID,
		}}
	}
	switch end := o.State.Terminated; {
	case end == nil && o.Last.Terminated == nil:
		return o, true // It never ran.
	case end == nil:
		o.Restarts++
		return o, true // It was waiting for its next start.
	case !restarts(policy, end.ExitCode):
		return o, false
	}
	o.Last, o.State = o.State, corev1.ContainerState{}
	o.Restarts++
	return o, true
}

// podStatus derives the whole status from the Pod and its containers. It keeps the parts written by
// others (the scheduler, disruption).
func podStatus(pod *corev1.Pod, observed map[string]observation, ip string, now metav1.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.HostIP, status.HostIPs = loopback, []corev1.HostIP{{IP: loopback}}
	if ip != "" {
		status.PodIP, status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	}
	if status.StartTime == nil {
		status.StartTime = &now
	}
	status.ObservedGeneration = pod.Generation
	status.InitContainerStatuses = containerStatuses(pod.Spec.InitContainers, observed, "PodInitializing")
	creating := "ContainerCreating"
	if len(pod.Spec.InitContainers) > 0 && !initialized(pod, observed) {
		creating = "PodInitializing"
	}
	status.ContainerStatuses = containerStatuses(pod.Spec.Containers, observed, creating)
	status.Phase = phase(pod, observed)
	setPodConditions(pod, &status, observed, now)
	return status
}

func containerStatuses(containers []corev1.Container, observed map[string]observation, creating string) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, c := range containers {
		o := observed[c.Name]
		started := o.Started
		status := corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, State: o.State, LastTerminationState: o.Last,
			RestartCount: o.Restarts, Started: &started, Ready: o.Ready,
		}
		switch {
		case o.State.Running != nil:
			status.ContainerID = containerID(o.PID)
		case o.State.Terminated != nil:
			status.ContainerID = o.State.Terminated.ContainerID
		case o.State.Waiting == nil:
			status.State = waiting(creating, "")
		}
		// An init container is ready after it has done its work.
		if end := o.State.Terminated; end != nil && creating == "PodInitializing" && end.ExitCode == 0 {
			status.Ready = true
		}
		statuses = append(statuses, status)
	}
	return statuses
}

func sidecarContainer(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func initialized(pod *corev1.Pod, observed map[string]observation) bool {
	for _, c := range pod.Spec.InitContainers {
		o := observed[c.Name]
		done := o.State.Terminated != nil && o.State.Terminated.ExitCode == 0
		if !done && !(sidecarContainer(c) && (o.Started || o.Last.Terminated != nil)) {
			return false
		}
	}
	return true
}

func phase(pod *corev1.Pod, observed map[string]observation) corev1.PodPhase {
	policy := pod.Spec.RestartPolicy
	var waits, runs, succeeded, failed int
	for _, c := range pod.Spec.Containers {
		switch o := observed[c.Name]; {
		case o.State.Running != nil:
			runs++
		case o.State.Terminated != nil && o.State.Terminated.ExitCode == 0:
			succeeded++
		case o.State.Terminated != nil, o.Last.Terminated != nil:
			failed++
		default:
			waits++
		}
	}
	ended := waits == 0 && runs == 0
	switch {
	case policy == corev1.RestartPolicyNever && initFailed(pod, observed):
		return corev1.PodFailed
	case waits > 0 && pod.DeletionTimestamp == nil:
		return corev1.PodPending
	case ended && pod.DeletionTimestamp != nil:
		return endPhase(failed)
	case !ended || policy == corev1.RestartPolicyAlways:
		return corev1.PodRunning
	case policy == corev1.RestartPolicyOnFailure && failed > 0:
		return corev1.PodRunning
	}
	return endPhase(failed)
}

func endPhase(failed int) corev1.PodPhase {
	if failed > 0 {
		return corev1.PodFailed
	}
	return corev1.PodSucceeded
}

func initFailed(pod *corev1.Pod, observed map[string]observation) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		end := observed[c.Name].State.Terminated
		return end != nil && end.ExitCode != 0 && !sidecarContainer(c)
	})
}

func setPodConditions(pod *corev1.Pod, status *corev1.PodStatus, observed map[string]observation, now metav1.Time) {
	var uninitialized, unready []string
	for _, c := range pod.Spec.InitContainers {
		o := observed[c.Name]
		if sidecarContainer(c) && !o.Ready {
			unready = append(unready, c.Name)
		} else if !sidecarContainer(c) && (o.State.Terminated == nil || o.State.Terminated.ExitCode != 0) {
			uninitialized = append(uninitialized, c.Name)
		}
	}
	for _, c := range pod.Spec.Containers {
		if !observed[c.Name].Ready {
			unready = append(unready, c.Name)
		}
	}
	set := func(kind corev1.PodConditionType, ok bool, reason, message string) {
		condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, ObservedGeneration: pod.Generation}
		if !ok {
			condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, reason, message
		}
		setCondition(status, condition)
	}
	set(corev1.PodScheduled, true, "", "")
	set(corev1.PodReadyToStartContainers, status.PodIP != "", "", "")
	set(corev1.PodInitialized, initialized(pod, observed), "ContainersNotInitialized",
		fmt.Sprintf("containers with incomplete status: %v", uninitialized))
	reason, message := "ContainersNotReady", fmt.Sprintf("containers with unready status: %v", unready)
	if status.Phase == corev1.PodSucceeded {
		reason, message = "PodCompleted", ""
	}
	set(corev1.ContainersReady, len(unready) == 0, reason, message)
	ready := len(unready) == 0
	if missing := unmetGates(pod, status); ready && len(missing) > 0 {
		ready, reason, message = false, "ReadinessGatesNotReady", "readiness gates not met: "+strings.Join(missing, ", ")
	}
	set(corev1.PodReady, ready, reason, message)
}

func unmetGates(pod *corev1.Pod, status *corev1.PodStatus) []string {
	var missing []string
	for _, gate := range pod.Spec.ReadinessGates {
		met := slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
		if !met {
			missing = append(missing, string(gate.ConditionType))
		}
	}
	return missing
}

// setCondition keeps the transition time while the status stays the same.
func setCondition(status *corev1.PodStatus, condition corev1.PodCondition) {
	for i, old := range status.Conditions {
		if old.Type != condition.Type {
			continue
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		condition.LastProbeTime = old.LastProbeTime
		status.Conditions[i] = condition
		return
	}
	status.Conditions = append(status.Conditions, condition)
}
