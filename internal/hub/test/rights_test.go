package hub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/naming"
)

// TestRightsOfAClusterEditedByHandAreSetBack gives the rights of a member to another user, and
// widens them.
func TestRightsOfAClusterEditedByHandAreSetBack(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	legacy := f.legacyJoin(values, "edited")
	f.check(legacy.beat(time.Now()))
	name := naming.Cluster("edited")
	f.untilReady(name, "Ready")
	namespace := naming.MemberNamespace(f.workspace, name)

	var role rbacv1.Role
	f.check(f.get(&role, f.workspace, namespace))
	rules := role.DeepCopy().Rules
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	f.check(f.Update(context.Background(), &role))
	f.eventually("the Role is as it was", func() error {
		if err := f.get(&role, f.workspace, namespace); err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(role.Rules, rules) {
			return fmt.Errorf("its rules are %v", role.Rules)
		}
		return nil
	})

	for _, in := range []string{f.workspace, namespace} {
		var list rbacv1.RoleBindingList
		f.check(f.List(context.Background(), &list, client.InNamespace(in), client.MatchingLabels{"fleet.cattle.io/managed": "true"}))
		found := 0
		for _, binding := range list.Items {
			if binding.Annotations["fleet.cattle.io/cluster"] != name {
				continue
			}
			found++
			subjects, named := binding.DeepCopy().Subjects, binding.Name
			for _, edit := range [][]rbacv1.Subject{{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:authenticated"}}, nil} {
				binding.Subjects = edit
				f.check(f.Update(context.Background(), &binding))
				f.eventually("RoleBinding "+in+"/"+named+" is as it was", func() error {
					binding = rbacv1.RoleBinding{}
					if err := f.get(&binding, in, named); err != nil {
						return err
					}
					if !equality.Semantic.DeepEqual(binding.Subjects, subjects) {
						return fmt.Errorf("its subjects are %v", binding.Subjects)
					}
					return nil
				})
			}
		}
		if found == 0 {
			t.Errorf("there is no RoleBinding of the Cluster in %s", in)
		}
	}
	f.eventually("the agent beats", func() error { return legacy.beat(time.Now()) })
}
