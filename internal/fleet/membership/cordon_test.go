package membership

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestACordonHoldsBackOnlyWhatIsNew(t *testing.T) {
	cluster := func(value string) *fleet.Cluster {
		return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{
			Namespace: "clusters", Name: "web", Annotations: map[string]string{fleet.AnnotationCordoned: value},
		}}
	}
	bundle, agent := &fleet.Bundle{}, &fleet.Bundle{}
	agent.Labels = map[string]string{fleet.LabelAgent: "v1"}
	for name, row := range map[string]struct {
		cluster   *fleet.Cluster
		bundle    *fleet.Bundle
		delivered bool
		held      bool
	}{
		"a new Bundle":            {cluster("true"), bundle, false, true},
		"a Bundle that is there":  {cluster("true"), bundle, true, false},
		"the Bundle of the agent": {cluster("true"), agent, false, false},
		"another value":           {cluster("false"), bundle, false, false},
		"no cordon":               {&fleet.Cluster{}, bundle, false, false},
	} {
		if got := HeldByCordon(row.cluster, row.bundle, row.delivered); (got != "") != row.held {
			t.Errorf("%s: %q", name, got)
		}
	}
}
