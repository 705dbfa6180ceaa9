package cause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// severity ranks findings; the highest is the worst.
type severity int

const (
	// quiet: the status of the Pod names no reason; an Event or a volume may.
	quiet severity = iota + 1
	// unschedulable: the Pod fits on no node.
	unschedulable
	// crashing: a container ended, or the Pod failed.
	crashing
	// unstartable: a container cannot start, so nothing ran at all.
	unstartable
)

// crashLoop is the reason of a container in back-off before its next start.
const crashLoop = "CrashLoopBackOff"

// finding is the state of an unready Pod. The text is in the words of Kubernetes, and names no Pod:
// equal causes have equal texts on all members.
type finding struct {
	severity severity
	text     string
	pod      types.UID
	created  time.Time
	// claims has the PersistentVolumeClaims of a Pod without a node or a volume.
	claims []string
}

// findingOf returns the worst finding of a Pod; none for a ready, succeeded or deleted Pod.
func findingOf(pod *corev1.Pod) (finding, bool) {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded ||
		conditionOf(pod, corev1.PodReady).Status == corev1.ConditionTrue {
		return finding{}, false
	}
	worst := finding{severity: quiet}
	consider := func(s severity, text string) {
		if s > worst.severity {
			worst.severity, worst.text = s, text
		}
	}
	if scheduled := conditionOf(pod, corev1.PodScheduled); scheduled.Status == corev1.ConditionFalse {
		consider(unschedulable, said(cmp.Or(scheduled.Reason, corev1.PodReasonUnschedulable), scheduled.Message))
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		consider(crashing, said(pod.Status.Reason, pod.Status.Message))
	}
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		consider(ofContainer("init container "+status.Name, status))
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		consider(ofContainer("container "+status.Name, status))
	}
	worst.pod, worst.created = pod.UID, pod.CreationTimestamp.Time
	if worst.severity <= unschedulable {
		worst.claims = claimsOf(pod)
	}
	return worst, true
}

// ofContainer returns the reason why a container does not run; zero if there is none.
func ofContainer(name string, status *corev1.ContainerStatus) (severity, string) {
	waiting, ended := status.State.Waiting, status.State.Terminated
	if ended == nil && !status.Ready {
		ended = status.LastTerminationState.Terminated
	}
	switch {
	case waiting != nil && waiting.Reason == crashLoop && ended != nil:
		return crashing, name + ": CrashLoopBackOff: " + endOf(ended)
	case waiting != nil && !slices.Contains([]string{"", "ContainerCreating", "PodInitializing", crashLoop}, waiting.Reason):
		return unstartable, name + ": " + said(waiting.Reason, withImage(waiting, status.Image))
	case ended != nil && ended.ExitCode != 0:
		return crashing, name + ": " + endOf(ended)
	case waiting != nil && waiting.Reason == crashLoop:
		return crashing, name + ": CrashLoopBackOff"
	}
	return 0, ""
}

// withImage returns the message of a container that cannot start. It names the image if the problem
// is the image.
func withImage(waiting *corev1.ContainerStateWaiting, image string) string {
	if !strings.Contains(waiting.Reason, "Image") || strings.Contains(waiting.Message, image) {
		return waiting.Message
	}
	return fmt.Sprintf("image %q: %s", image, waiting.Message)
}

// endOf describes the end of a container, with the last line of its termination message.
func endOf(ended *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("%s, exit code %d", cmp.Or(ended.Reason, "Error"), ended.ExitCode)
	if line := lastLine(ended.Message); line != "" {
		text += ": " + line
	}
	return text
}

// claimsOf returns the PersistentVolumeClaims mounted by a Pod.
func claimsOf(pod *corev1.Pod) (names []string) {
	for i := range pod.Spec.Volumes {
		switch volume := &pod.Spec.Volumes[i]; {
		case volume.PersistentVolumeClaim != nil:
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		case volume.Ephemeral != nil:
			names = append(names, pod.Name+"-"+volume.Name)
		}
	}
	return names
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return corev1.PodCondition{}
}

// worst returns the worst findings with different texts, the newest Pod first among equals.
func worst(findings []finding) []finding {
	slices.SortStableFunc(findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(b.severity, a.severity), b.created.Compare(a.created), cmp.Compare(a.text, b.text))
	})
	texts, quietOnes := map[string]bool{}, 0
	findings = slices.DeleteFunc(findings, func(f finding) bool {
		if f.severity == quiet {
			quietOnes++
			return quietOnes > 1 // their Events cost a request each, and are mostly the same
		}
		again := texts[f.text]
		texts[f.text] = true
		return again
	})
	return findings[:min(len(findings), maxCauses)]
}
