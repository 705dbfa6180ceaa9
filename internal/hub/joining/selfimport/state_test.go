package selfimport

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	on := settings.Bootstrap{Namespace: "fleet-local", ClusterLabels: map[string]string{"env": "hub"}}
	with := func(change func(*settings.Bootstrap)) settings.Bootstrap {
		changed := on
		change(&changed)
		return changed
	}
	edited := func(change func(*fleet.Cluster)) *fleet.Cluster {
		cluster := desired(nil, on)
		change(cluster)
		return cluster
	}
	asWanted := desired(nil, on)
	for _, c := range []struct {
		name string
		seen observed
		want decision
	}{
		{"switched off, nothing is made", observed{}, decision{}},
		{"switched off, nothing is changed", observed{found: asWanted}, decision{}},
		{"at first there is nothing", observed{wanted: on}, decision{records: true, credential: true}},
		{"a credential for the import", observed{wanted: on, found: asWanted}, decision{credential: true}},
		{"the importer has one", observed{wanted: on, found: asWanted, expires: now.Add(time.Hour)}, decision{}},
		{"one that ends soon is made anew", observed{wanted: on, found: asWanted, expires: now.Add(9 * time.Minute)}, decision{credential: true}},
		{"once imported it may expire", observed{wanted: on, found: asWanted, imported: true}, decision{}},
		{"without an agent of ours there is no credential", observed{wanted: with(func(b *settings.Bootstrap) { b.LocalAgentDisabled = true })},
			decision{records: true}},
		{"another setting changes the Cluster", observed{wanted: with(func(b *settings.Bootstrap) { b.AgentNamespace = "x" }), found: asWanted,
			imported: true}, decision{records: true}},
		{"new tolerations do", observed{wanted: with(func(b *settings.Bootstrap) { b.AgentTolerations = []corev1.Toleration{{Key: "x"}} }),
			found: asWanted, imported: true}, decision{records: true}},
		{"a label that was taken off comes back",
			observed{wanted: on, imported: true, found: edited(func(c *fleet.Cluster) { delete(c.Labels, "env") })}, decision{records: true}},
		{"what users set is theirs", observed{wanted: on, imported: true, found: edited(func(c *fleet.Cluster) {
			c.Labels["mine"], c.Spec.ClientID, c.Spec.RedeployAgentGeneration = "yes", "generated", 3
		})}, decision{}},
	} {
		if diff := cmp.Diff(c.want, decide(c.seen, now), cmp.AllowUnexported(decision{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
