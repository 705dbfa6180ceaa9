package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// cordon sets the mark of a member, or removes it.
func cordon(by client.Client, member client.Object, value string) error {
	patch := []byte(`{"metadata":{"annotations":{"` + fleet.AnnotationCordoned + `":` + value + `}}}`)
	return by.Patch(context.Background(), member.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, patch))
}

func TestACordonedClusterKeepsItsBundlesAndGetsNoNewOnes(t *testing.T) {
	f := newFixture(t)
	a, b := f.place("a", nil), f.place("b", nil)
	old := f.bundle("old", configMap+everywhere)
	before := a.deployment("old", there)
	f.check(cordon(f, f.clusterRecord("a"), `"true"`))
	f.bundle("new", configMap+everywhere)
	b.deployment("new", there)
	a.deployment("new", held)
	f.untilBundle("new", fleet.ConditionReady, corev1.ConditionFalse, "the Cluster is cordoned", "muster cordon "+f.workspace+"/a --undo")

	f.change(old, func() { old.Spec.ForceSyncGeneration++ })
	a.deployment("old", func(d fleet.BundleDeployment) error {
		if d.Spec.Options.ForceSyncGeneration == before.Spec.Options.ForceSyncGeneration {
			return there(fleet.BundleDeployment{})
		}
		return there(d)
	})
	f.check(cordon(f, f.clusterRecord("a"), "null"))
	a.deployment("new", there)
}

func TestACordonedMemberClusterKeepsItsPlacementsAndGetsNoNewOnes(t *testing.T) {
	f := newAlone(t, "")
	m, other := f.joined("cordoned"), f.joined("other")
	record := m.record()
	f.check(cordon(f, &record, `"true"`))
	crp := f.pickN(2)
	f.untilSays(crp, "Scheduled", metav1.ConditionFalse, "")
	f.untilNotPicked(crp, map[string]*registered{"Cordoned": m})
	f.untilOn(crp, other)
	f.check(cordon(f, &record, "null"))
	f.untilOn(crp, byName(m, other)...)
	f.check(cordon(f, &record, `"true"`))
	f.change(crp, func() { crp.Spec.Policy.NumberOfClusters = new(int32(3)) })
	f.untilSays(crp, "Scheduled", metav1.ConditionFalse, "")
	f.untilOn(crp, byName(m, other)...)
}

// TestATenantMovesNoCordonOfAnAdministrator has a tenant with all rights on Clusters but the verb
// cordon.
func TestATenantMovesNoCordonOfAnAdministrator(t *testing.T) {
	f := newFixture(t)
	a := f.place("a", nil)
	tenant, role := f.userWith(f.workspace, "tenant", rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusters"}, Verbs: []string{"get", "create", "update", "patch"},
	})
	record := f.clusterRecord(a.name)
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "verb cordon on clusters") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("a tenant cordons", cordon(tenant, record, `"true"`))
	f.check(cordon(f, record, `"true"`))
	refused("a tenant uncordons", cordon(tenant, record, "null"))
	refused("a tenant sets another value", cordon(tenant, record, `"false"`))
	f.check(cordon(f, record, `"true"`))
	refused("a tenant marks it as drained", tenant.Patch(context.Background(), record.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+fleet.AnnotationDrained+`":"true"}}}`))))
	progress := func(value string) client.Patch {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, fleet.AnnotationDrainProgress, value)
		return client.RawPatch(types.MergePatchType, patch)
	}
	refused("a tenant writes the progress of a drain", tenant.Patch(context.Background(), record.DeepCopy(), progress("{}")))
	if err := f.Patch(context.Background(), record.DeepCopy(), progress(strings.Repeat("x", 257))); !apierrors.IsInvalid(err) {
		t.Errorf("a progress of 257 characters: %v", err)
	}
	made := f.clusterRecord("made")
	made.Annotations = map[string]string{fleet.AnnotationCordoned: "true"}
	refused("a tenant creates a cordoned Cluster", tenant.Create(context.Background(), made))
	f.change(role, func() { role.Rules[0].Verbs = append(role.Rules[0].Verbs, "cordon") })
	f.eventually("a tenant with the verb uncordons", func() error { return cordon(tenant, record, "null") })
}
