package importer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestSecretOverridesWhereTheHubIsReached(t *testing.T) {
	settings := &clusterv1beta1.HubAddress{APIServerURL: "https://hub", APIServerCA: "CA", AgentTLSMode: "strict"}
	for _, c := range []struct {
		name     string
		secret   string
		handed   *fleet.ImportStatus
		settings *clusterv1beta1.HubAddress
		want     *clusterv1beta1.HubAddress
	}{
		{"a cluster that registered by itself follows the settings", "", nil, settings, settings},
		{"so does one whose Secret says nothing", "kubeconfig", &fleet.ImportStatus{}, settings, settings},
		{"the Secret's URL wins", "kubeconfig", &fleet.ImportStatus{APIServerURL: "https://inside"}, settings,
			&clusterv1beta1.HubAddress{APIServerURL: "https://inside", APIServerCA: "CA", AgentTLSMode: "strict"}},
		{"also where the settings say nothing", "kubeconfig", &fleet.ImportStatus{APIServerURL: "https://inside", APIServerCA: "own"}, nil,
			&clusterv1beta1.HubAddress{APIServerURL: "https://inside", APIServerCA: "own"}},
		{"not any more once the Secret is no longer named", "", &fleet.ImportStatus{APIServerURL: "https://inside"}, settings, settings},
	} {
		cluster := &fleet.Cluster{Spec: fleet.ClusterSpec{KubeConfigSecret: c.secret}, Status: fleet.ClusterStatus{Import: c.handed}}
		if diff := cmp.Diff(c.want, Hub(cluster, c.settings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
