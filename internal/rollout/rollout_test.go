package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestARolloutIsDoneWhenNoPodOfTheVersionBeforeIsLeft(t *testing.T) {
	for what, c := range map[string]struct {
		observed int64
		replicas int32
		status   appsv1.DeploymentStatus
		want     bool
	}{
		"all are new and available":               {2, 2, appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, true},
		"the change was not seen yet":             {1, 1, appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}, false},
		"the one that is available is the former": {2, 1, appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}, false},
		"one is not available":                    {2, 2, appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1}, false},
		"it is switched off":                      {2, 0, appsv1.DeploymentStatus{}, false},
	} {
		c.status.ObservedGeneration = c.observed
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: &c.replicas}, Status: c.status,
		}
		if got := Done(deployment); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

func TestAPodThatIsRefusedIsTheCauseAlsoWhileTheOneBeforeRuns(t *testing.T) {
	before := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent-1"}, Spec: corev1.PodSpec{NodeName: "node"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}}
	refused := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `serviceaccount "agent" not found`}}}}
	got, _ := CauseOf(refused, []corev1.Pod{before})
	if diff := cmp.Diff(&Cause{Refused, `the cluster refuses its Pod: serviceaccount "agent" not found`}, got); diff != "" {
		t.Errorf("while the Pod before runs (-want +got):\n%s", diff)
	}
	refused.Status.Conditions[0].Status = corev1.ConditionFalse
	if got, pod := CauseOf(refused, []corev1.Pod{before}); got != nil || pod == nil {
		t.Errorf("when it is refused no longer: %+v", got)
	}
}
