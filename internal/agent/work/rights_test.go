package work

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/charts"
)

// deliveryRole is what the chart member-agent lets the agent do for delivery.
func deliveryRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	text, err := charts.FS.ReadFile("member-agent/templates/delivery.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		_, rules, found := strings.Cut(document, "\nrules:")
		if !strings.Contains(document, "kind: ClusterRole\n") || !found {
			continue
		}
		rules, _, _ = strings.Cut(rules, "\n{{-")
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict([]byte("rules:"+rules), role); err != nil {
			t.Fatal(err)
		}
		return role
	}
	t.Fatal("the chart has no ClusterRole for delivery")
	return nil
}
