// Package rollout explains why a Deployment does not run, from the state of the Deployment and its
// Pods.
//
// It reads nothing from a cluster. Its invariant: the same Deployment and Pods have the same cause,
// for the hub and for a user who installs agents.
package rollout

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-fleet/muster/internal/kube"
)

// Reason is the stable identifier of a cause.
type Reason string

// The reasons.
const (
	Gone              Reason = "Gone"
	SwitchedOff       Reason = "SwitchedOff"
	Refused           Reason = "Refused"
	Unschedulable     Reason = "Unschedulable"
	ImageNotPulled    Reason = "ImageNotPulled"
	NotStarted        Reason = "NotStarted"
	WrongArchitecture Reason = "WrongArchitecture"
	OutOfMemory       Reason = "OutOfMemory"
	Crashing          Reason = "Crashing"
)

const (
	// kernelRefuses is the error of a kernel for a program of another processor.
	kernelRefuses = "exec format error"
	// maxQuoted is the maximum size of a quote from a cluster, in bytes.
	maxQuoted = 400
)

// Cause explains why a Deployment does not run. Its message calls the Deployment "its Deployment",
// and so on, after the name of the program.
type Cause struct {
	Reason
	Message string
}

func cause(reason Reason, format string, args ...any) *Cause {
	return &Cause{reason, fmt.Sprintf(format, args...)}
}

// Done reports whether all Pods of a Deployment have its newest version and are available.
func Done(deployment *appsv1.Deployment) bool {
	wanted, status := ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status
	return status.ObservedGeneration >= deployment.Generation && wanted > 0 &&
		status.UpdatedReplicas >= wanted && status.Replicas == status.UpdatedReplicas && status.AvailableReplicas >= wanted
}

// CauseOf returns the reason why a Deployment does not run; the Deployment is nil if it is missing.
// If the newest Pod runs, CauseOf returns that Pod and no cause.
func CauseOf(deployment *appsv1.Deployment, pods []corev1.Pod) (*Cause, *corev1.Pod) {
	if deployment == nil {
		return cause(Gone, "its Deployment was deleted"), nil
	}
	if replicas := deployment.Spec.Replicas; replicas != nil && *replicas == 0 {
		return cause(SwitchedOff, "its Deployment is scaled to 0 replicas"), nil
	}
	// A Pod of the previous version may run on while the cluster refuses its replacement.
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return cause(Refused, "the cluster refuses its Pod: %s", kube.Clip(condition.Message, maxQuoted)), nil
		}
	}
	pod := newest(pods)
	if pod == nil {
		return cause(NotStarted, "its Deployment has no Pod: do the cluster's own controllers run?"), nil
	}
	return causeOfPod(pod), pod
}

func causeOfPod(pod *corev1.Pod) *Cause {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return cause(Unschedulable, "no node takes its Pod %s: %s; see its tolerations, affinity and resources",
				pod.Name, kube.Clip(condition.Message, maxQuoted))
		}
	}
	if pod.Spec.NodeName == "" {
		return cause(Unschedulable, "no scheduler has found a node for its Pod %s yet: does the cluster have one that runs?", pod.Name)
	}
	for i := range pod.Status.ContainerStatuses {
		if found := causeOfContainer(pod, &pod.Status.ContainerStatuses[i]); found != nil {
			return found
		}
	}
	if len(pod.Status.ContainerStatuses) == 0 || pod.Status.Phase == corev1.PodPending {
		return cause(NotStarted, "its Pod %s is on node %s, which has not started it: is its kubelet well?", pod.Name, pod.Spec.NodeName)
	}
	return nil
}

// causeOfContainer returns the reason why a container does not run; nil if there is none.
func causeOfContainer(pod *corev1.Pod, status *corev1.ContainerStatus) *Cause {
	if waiting := status.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable",
			"SignatureValidationFailed":
			return cause(ImageNotPulled, "its image %s cannot be pulled (%s): %s",
				status.Image, waiting.Reason, kube.Clip(waiting.Message, maxQuoted))
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CreatePodSandboxError":
			if strings.Contains(waiting.Message, kernelRefuses) {
				return otherArchitecture(pod, status)
			}
			return cause(NotStarted, "the container of its Pod %s cannot be started (%s): %s",
				pod.Name, waiting.Reason, kube.Clip(waiting.Message, maxQuoted))
		case "ContainerCreating", "PodInitializing":
			return cause(NotStarted, "node %s has not started its Pod %s yet (%s), which mostly means that it is pulling the image %s",
				pod.Spec.NodeName, pod.Name, waiting.Reason, status.Image)
		}
	}
	ended := status.State.Terminated
	if ended == nil {
		ended = status.LastTerminationState.Terminated
	}
	switch {
	case ended == nil || status.State.Running != nil && status.Ready:
		return nil
	case strings.Contains(ended.Message, kernelRefuses):
		return otherArchitecture(pod, status)
	case ended.Reason == "OOMKilled":
		return cause(OutOfMemory, "its Pod %s went over its memory limit and was ended %s", pod.Name, times(status.RestartCount))
	}
	said := strings.TrimSpace(ended.Message)
	if said == "" {
		said = fmt.Sprintf("kubectl -n %s logs %s --previous shows the cause", pod.Namespace, pod.Name)
	}
	return cause(Crashing, "its Pod %s ended %s, the last time with exit code %d (%s): %s",
		pod.Name, times(status.RestartCount), ended.ExitCode, ended.Reason, kube.Clip(said, maxQuoted))
}

func otherArchitecture(pod *corev1.Pod, status *corev1.ContainerStatus) *Cause {
	return cause(WrongArchitecture, "its image %s is not built for the architecture of node %s (%s)",
		status.Image, pod.Spec.NodeName, kernelRefuses)
}

func times(restarts int32) string {
	if restarts <= 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", restarts)
}

// newest returns the latest Pod, except for Pods in deletion.
func newest(pods []corev1.Pod) *corev1.Pod {
	var found *corev1.Pod
	for i := range pods {
		if pod := &pods[i]; pod.DeletionTimestamp == nil && (found == nil || found.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			found = pod
		}
	}
	return found
}
