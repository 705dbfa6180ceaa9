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
			"patch placement.kubernetes-fleet.io/works/status",
			"get /serviceaccounts named agent",
			"get,list,watch fleet.cattle.io/bundledeployments",
			"patch fleet.cattle.io/bundledeployments/status",
			"get /secrets",
		},
		"fleet-bundle-deployment": {
			"get,list,watch fleet.cattle.io/bundledeployments",
			"update,patch fleet.cattle.io/bundledeployments/status",
			"get /secrets,configmaps",
		},
		"muster-member-renewal": {"create /serviceaccounts/token named agent"},
		"fleet-content":         {"get fleet.cattle.io/contents"},
	}
	roles, err := ClusterRoles()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, object := range roles {
		role := object.(*rbacv1.ClusterRole)
		got[role.Name] = worded(role.Rules)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRightsOfMemberClustersAreExactlyThese must change whenever the agent of a MemberCluster gets a right or loses one.
func TestRightsOfMemberClustersAreExactlyThese(t *testing.T) {
	for native, want := range map[bool][]string{
		true: {
			"get,patch coordination.k8s.io/leases named heartbeat",
			"get,list,watch cluster.kubernetes-fleet.io/internalmemberclusters",
			"patch,update cluster.kubernetes-fleet.io/internalmemberclusters/status",
			"get /namespaces",
			"get,list,watch,patch placement.kubernetes-fleet.io/works",
			"patch placement.kubernetes-fleet.io/works/status",
		},
		false: {
			"get,patch coordination.k8s.io/leases named heartbeat",
			"get,list,watch,update cluster.kubernetes-fleet.io/internalmemberclusters",
			"patch,update cluster.kubernetes-fleet.io/internalmemberclusters/status",
			"get,list,watch,update,patch placement.kubernetes-fleet.io/works",
			"update,patch placement.kubernetes-fleet.io/works/status",
			"create,patch /events",
		},
	} {
		role, err := Rights{Native: native}.Role()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, worded(role.Rules)); diff != "" {
			t.Errorf("native %t (-want +got):\n%s", native, diff)
		}
	}
}

// worded says what rules allow, a line for each.
func worded(rules []rbacv1.PolicyRule) []string {
	var texts []string
	for _, rule := range rules {
		text := fmt.Sprintf("%s %s/%s", strings.Join(rule.Verbs, ","), strings.Join(rule.APIGroups, ","), strings.Join(rule.Resources, ","))
		if len(rule.ResourceNames) > 0 {
			text += " named " + strings.Join(rule.ResourceNames, ",")
		}
		texts = append(texts, text)
	}
	return texts
}
