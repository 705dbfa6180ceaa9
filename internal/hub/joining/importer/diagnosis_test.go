package importer

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

func TestDiagnosisNamesWhatKeepsTheAgentFromJoining(t *testing.T) {
	const image = "registry.example.com/muster-agent:v1"
	deployment := func(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		for _, c := range change {
			c(d)
		}
		return d
	}
	pod := func(change ...func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "fleet-agent-1"}, Spec: corev1.PodSpec{NodeName: "node-1"}}
		p.Status.Phase = corev1.PodRunning
		for _, c := range change {
			c(&p)
		}
		return p
	}
	container := func(status corev1.ContainerStatus) func(*corev1.Pod) {
		status.Image = image
		return func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{status} }
	}
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	crashed := func(ended corev1.ContainerStateTerminated) func(*corev1.Pod) {
		return container(corev1.ContainerStatus{
			State: waiting("CrashLoopBackOff", "back-off 10s"), LastTerminationState: corev1.ContainerState{Terminated: &ended}, RestartCount: 3,
		})
	}
	runs := container(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	none := int32(0)
	for name, c := range map[string]struct {
		deployment *appsv1.Deployment
		pods       []corev1.Pod
		reason     string
		says       []string
	}{
		"the Deployment is gone": {nil, nil, reasons.AgentRemoved, []string{"was deleted", "redeployAgentGeneration"}},
		"the Deployment is at zero": {
			deployment(func(d *appsv1.Deployment) { d.Spec.Replicas = &none }), nil, reasons.AgentRemoved, []string{"0 replicas"},
		},
		"a quota": {deployment(func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "not this"},
				{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "pods is forbidden: exceeded quota: none"},
			}
		}), nil, reasons.AgentRefused, []string{"refuses", "exceeded quota: none"}},
		"no controllers": {deployment(), nil, reasons.AgentNotStarted, []string{"no Pod"}},
		"no node": {deployment(), []corev1.Pod{pod(func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodPending
			p.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available",
			}}
		})}, reasons.AgentUnschedulable, []string{"0/1 nodes are available", "tolerations"}},
		"no scheduler": {deployment(), []corev1.Pod{pod(func(p *corev1.Pod) { p.Status.Phase, p.Spec.NodeName = corev1.PodPending, "" })},
			reasons.AgentUnschedulable, []string{"scheduler"}},
		"a silent kubelet": {
			deployment(), []corev1.Pod{pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })}, reasons.AgentNotStarted,
			[]string{"node-1", "kubelet"},
		},
		"an image that is not there": {deployment(), []corev1.Pod{pod(container(corev1.ContainerStatus{
			State: waiting("ImagePullBackOff", "Back-off: not found"),
		}))},
			reasons.AgentImageNotPulled, []string{image, "ImagePullBackOff", "not found", "global.imagePullSecrets", "privateRepoURL"}},
		"an image that is not there yet": {deployment(), []corev1.Pod{pod(container(corev1.ContainerStatus{
			State: waiting("ErrImagePull", "denied"),
		}))},
			reasons.AgentImageNotPulled, []string{"denied"}},
		"an image that takes its time": {deployment(), []corev1.Pod{pod(container(corev1.ContainerStatus{
			State: waiting("ContainerCreating", ""),
		}))},
			reasons.AgentNotStarted, []string{"node-1", image}},
		"a container that cannot be made": {deployment(), []corev1.Pod{pod(container(corev1.ContainerStatus{
			State: waiting("CreateContainerError", "no such user"),
		}))},
			reasons.AgentNotStarted, []string{"CreateContainerError", "no such user"}},
		"another architecture, said by the program's last words": {deployment(), []corev1.Pod{pod(crashed(corev1.ContainerStateTerminated{
			ExitCode: 255, Message: "exec /muster-agent: exec format error",
		}))},
			reasons.AgentWrongArchitecture, []string{image, "node-1", "agentAffinity"}},
		"another architecture, said by the runtime": {deployment(), []corev1.Pod{pod(container(corev1.ContainerStatus{
			State: waiting("RunContainerError", "runc: exec format error"),
		}))},
			reasons.AgentWrongArchitecture, []string{image}},
		"too little memory": {deployment(), []corev1.Pod{pod(crashed(corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}))},
			reasons.AgentOutOfMemory, []string{"3 times", "agentResources"}},
		"a program that ends": {deployment(), []corev1.Pod{pod(crashed(corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: "Error", Message: "muster-agent: no\n",
		}))},
			reasons.AgentCrashing, []string{"exit code 1", "muster-agent: no"}},
		"a program that ends silently": {deployment(), []corev1.Pod{pod(crashed(corev1.ContainerStateTerminated{ExitCode: 1}))},
			reasons.AgentCrashing, []string{"kubectl -n agents logs fleet-agent-1 --previous"}},
		"a program that runs": {
			deployment(), []corev1.Pod{pod(runs)}, reasons.AgentNotJoined, []string{"https://hub", "kubectl -n agents logs fleet-agent-1"},
		},
		"the newer one of two Pods": {deployment(), []corev1.Pod{
			pod(runs, func(p *corev1.Pod) { p.CreationTimestamp.Time = now }),
			pod(crashed(corev1.ContainerStateTerminated{ExitCode: 1})),
		}, reasons.AgentNotJoined, nil},
		"a Pod that goes is none": {
			deployment(), []corev1.Pod{pod(runs, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} })},
			reasons.AgentNotStarted, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := causeOf(c.deployment, c.pods, "https://hub")
			if got.reason != c.reason {
				t.Errorf("reason %s (%s), want %s", got.reason, got.message, c.reason)
			}
			for _, text := range c.says {
				if !strings.Contains(got.message, text) {
					t.Errorf("%q does not say %q", got.message, text)
				}
			}
		})
	}
}
