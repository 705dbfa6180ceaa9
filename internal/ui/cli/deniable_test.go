package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestADenialWithoutEffectIsRefused(t *testing.T) {
	with := func(namespace string, conditions ...fleet.Condition) *fleet.Cluster {
		return &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"},
			Status:     fleet.ClusterStatus{Namespace: namespace, Conditions: conditions},
		}
	}
	approved := fleet.Condition{Type: fleet.ConditionDeliveryApproved, Status: "True"}
	for name, row := range map[string]struct {
		object client.Object
		want   string
	}{
		"a request":                                       {&fleet.ClusterRegistration{}, ""},
		"a Cluster in a workspace with approval":          {with("n", approved), ""},
		"a Cluster of which the hub has not decided that": {with(""), ""},
		"a Cluster in a workspace without approval":       {with("n"), "run muster cordon team/web"},
		"one with other conditions, in such a workspace":  {with("n", fleet.Condition{Type: "Ready", Status: "True"}), "has no effect"},
	} {
		err := deniable(row.object)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}
