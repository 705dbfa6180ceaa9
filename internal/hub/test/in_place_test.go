package hub_test

import (
	"context"
	"crypto/sha1" //nolint:gosec // as Rancher Fleet does
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// ofRancherFleet makes a ClusterRole as Rancher Fleet's hub does, for a set of that name.
func ofRancherFleet(role *rbacv1.ClusterRole, set string) {
	//nolint:gosec // as Rancher Fleet does
	role.Labels = map[string]string{"objectset.rio.cattle.io/hash": fmt.Sprintf("%x", sha1.Sum([]byte(set)))}
	role.Annotations = map[string]string{"objectset.rio.cattle.io/id": "fleet-bootstrap-data"}
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}
}

// TestAHubInThePlaceOfRancherFleetsTakesItsRolesOver has the hub find ClusterRoles that only claim
// to be Rancher Fleet's first.
func TestAHubInThePlaceOfRancherFleetsTakesItsRolesOver(t *testing.T) {
	f := newAlone(t, "")
	names := []string{"fleet-bundle-deployment", "fleet-content"}
	roles, rules := map[string]*rbacv1.ClusterRole{}, map[string][]rbacv1.PolicyRule{}
	for _, name := range append(names, "muster-member") {
		roles[name] = &rbacv1.ClusterRole{}
		f.eventually("the hub makes "+name, func() error { return f.get(roles[name], "", name) })
		rules[name] = roles[name].Rules
	}
	f.hub.Kill()
	write := func(set string) {
		for _, name := range names {
			f.check(f.get(roles[name], "", name))
			f.change(roles[name], func() { ofRancherFleet(roles[name], set) })
		}
	}
	write("another set")
	f.check(f.Delete(context.Background(), roles["muster-member"])) // the hub would write it again
	f.hub.Start()
	f.eventually("the hub ends", func() error {
		if !f.hub.Ended() {
			return fmt.Errorf("it runs, and says %s", f.hub.Log())
		}
		return nil
	})
	if says := f.hub.Log(); !strings.Contains(says, "kubectl delete clusterrole fleet-bundle-deployment fleet-content") {
		t.Errorf("it says %s", says)
	}
	if err := gone(f.get(&rbacv1.ClusterRole{}, "", "muster-member")); err != nil {
		t.Errorf("it wrote something before it ended: %v", err)
	}

	write("fleet-bootstrap-data")
	f.hub.Start()
	for _, name := range names {
		f.eventually("the hub takes over "+name, func() error {
			if err := f.get(roles[name], "", name); err != nil {
				return err
			}
			if diff := cmp.Diff(rules[name], roles[name].Rules); diff != "" || roles[name].Labels[fleet.LabelManaged] != "true" {
				return fmt.Errorf("it has the labels %v (-want +got):\n%s", roles[name].Labels, diff)
			}
			return nil
		})
		if roles[name].Annotations["objectset.rio.cattle.io/id"] == "" {
			t.Errorf("Rancher Fleet's hub would not know %s again", name)
		}
	}
}
