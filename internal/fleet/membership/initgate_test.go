package membership

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestInitGatesHoldBackAllButTheBundlesWhoseTurnItIs(t *testing.T) {
	gates := []fleet.InitGate{{Bundle: "network"}, {Condition: "example.com/Audited"}, {Bundle: "storage"}}
	finished := metav1.NewTime(time.Unix(1, 0))
	const network, audited = "the Cluster is not initialized yet; its next init gate waits for Bundle network",
		"the Cluster is not initialized yet; its next init gate waits for condition example.com/Audited"
	for name, test := range map[string]struct {
		gates             []fleet.InitGate
		at                *fleet.ClusterInitialization
		bundle, workspace string
		labels            map[string]string
		want              string
	}{
		"no gates":                            {nil, nil, "app", "clusters", nil, ""},
		"not looked at: the first gate's":     {gates, nil, "network", "clusters", nil, ""},
		"not looked at: any other":            {gates, nil, "app", "clusters", nil, network},
		"not looked at: a later gate's":       {gates, nil, "storage", "clusters", nil, network},
		"a Bundle of that name elsewhere":     {gates, nil, "network", "others", nil, network},
		"the agent":                           {gates, nil, "agent", "clusters", map[string]string{fleet.LabelAgent: "c"}, ""},
		"behind the first: the first gate's":  {gates, &fleet.ClusterInitialization{Opened: 1}, "network", "clusters", nil, ""},
		"behind the first: any other":         {gates, &fleet.ClusterInitialization{Opened: 1}, "storage", "clusters", nil, audited},
		"at the last":                         {gates, &fleet.ClusterInitialization{Opened: 2}, "storage", "clusters", nil, ""},
		"finished":                            {gates, &fleet.ClusterInitialization{Opened: 3, Finished: &finished}, "app", "clusters", nil, ""},
		"gates were removed behind the third": {gates[:1], &fleet.ClusterInitialization{Opened: 2}, "app", "clusters", nil, network},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c"}}
			cluster.Spec.InitGates, cluster.Status.Initialization = test.gates, test.at
			bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: test.workspace, Name: test.bundle, Labels: test.labels}}
			if got := HeldByInitGate(cluster, bundle); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
