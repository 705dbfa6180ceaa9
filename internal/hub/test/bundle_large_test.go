package hub_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestABundleThatHasKilledTwoHubsIsSetAside leaves what two hubs that were killed would leave in
// their Pod.
func TestABundleThatHasKilledTwoHubsIsSetAside(t *testing.T) {
	dir := t.TempDir()
	f := newAlone(t, "", "--state-dir="+dir)
	large := func(bytes int) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: " + strings.Repeat("a", bytes) + "\n"
	}
	b := f.bundle("large", "targets: [{clusterSelector: {}}]")
	f.change(b, func() { b.Spec.Resources = []fleet.BundleResource{{Name: "a.yaml", Content: large(70 << 10)}} })
	is := f.untilBundle("large", "Processed", corev1.ConditionTrue)
	journal := filepath.Join(dir, "bundles.json")
	text, err := os.ReadFile(journal)
	f.check(err)
	if string(text) != "{}" {
		t.Errorf("after it was checked the journal has %s", text)
	}
	f.hub.Kill()
	f.check(os.WriteFile(journal,
		fmt.Appendf(nil, `{%q: {"bundle": "any", "generation": %d, "deaths": 1, "checking": true}}`, is.UID, is.Generation), 0o600))
	f.hub.Start()
	f.untilBundle("large", "Processed", corev1.ConditionFalse, "because a hub ended 2 times during the check",
		"deployed objects stay as they are")
	f.change(b, func() { b.Spec.Resources[0].Content = large(1 << 10) })
	f.untilBundle("large", "Processed", corev1.ConditionTrue)
}
