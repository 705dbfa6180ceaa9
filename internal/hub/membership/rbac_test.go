package membership

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestRightsOfMembersAreExactlyThese must change whenever a member gets a right or loses one.
func TestRightsOfMembersAreExactlyThese(t *testing.T) {
	want := map[string][]string{
		"muster-member": {
			"get,patch coordination.k8s.io/leases named heartbeat",
			"get,list,watch cluster.kubernetes-fleet.io/internalmemberclusters",
			"patch cluster.kubernetes-fleet.io/internalmemberclusters/status",
			"get,list,watch,patch placement.kubernetes-fleet.io/works",
			"patch,update placement.kubernetes-fleet.io/works/status",
			"create /serviceaccounts/token named agent",
		},
		"fleet-bundle-deployment": {
			"get,list,watch fleet.cattle.io/bundledeployments",
			"update,patch fleet.cattle.io/bundledeployments/status",
			"get /secrets,configmaps",
		},
		"fleet-content": {"get fleet.cattle.io/contents"},
	}
	roles, err := ClusterRoles()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, object := range roles {
		role := object.(*rbacv1.ClusterRole)
		for _, rule := range role.Rules {
			text := fmt.Sprintf("%s %s/%s", strings.Join(rule.Verbs, ","), strings.Join(rule.APIGroups, ","), strings.Join(rule.Resources, ","))
			if len(rule.ResourceNames) > 0 {
				text += " named " + strings.Join(rule.ResourceNames, ",")
			}
			got[role.Name] = append(got[role.Name], text)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
