package rollout

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
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
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: &c.replicas}, Status: c.status}
		if got := Done(deployment); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
