package settings

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestAWorkspaceChangesTheThresholdsOfTheHealthCheck(t *testing.T) {
	of := func(failures, successes int32) *clusterv1beta1.HealthCheck {
		return &clusterv1beta1.HealthCheck{FailureThreshold: failures, SuccessThreshold: successes}
	}
	for name, row := range map[string]struct {
		hub              HealthCheck
		failure, success string
		want             *clusterv1beta1.HealthCheck
	}{
		"the default":           {Default().HealthCheck, "", "", nil},
		"the hub's":             {HealthCheck{3, 2}, "", "", of(3, 2)},
		"one of the workspace":  {HealthCheck{3, 2}, "5", "", of(5, 2)},
		"both of the workspace": {Default().HealthCheck, "60", "2", of(60, 2)},
		"off in the workspace":  {HealthCheck{3, 2}, "1", "1", nil},
		"too many":              {HealthCheck{3, 2}, "61", "0", of(3, 2)},
		"no number":             {HealthCheck{3, 2}, "many", "-1", of(3, 2)},
	} {
		workspace := &metav1.ObjectMeta{Annotations: map[string]string{
			fleet.AnnotationFailureThreshold: row.failure, fleet.AnnotationSuccessThreshold: row.success,
		}}
		if diff := cmp.Diff(row.want, row.hub.In(workspace).Thresholds()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
