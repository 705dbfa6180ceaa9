package hub_test

import (
	"context"
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

// taint sets the taints of a member, or removes them.
func taint(by client.Client, member client.Object, value string) error {
	patch := []byte(`{"metadata":{"annotations":{"` + fleet.AnnotationTaints + `":` + value + `}}}`)
	return by.Patch(context.Background(), member.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, patch))
}

func TestATaintedMemberOfEitherKindGetsOnlyWhatToleratesIt(t *testing.T) {
	f := newFixture(t)
	a := f.place("a", nil)
	f.check(taint(f, f.clusterRecord("a"), `"dedicated=gpu:NoSchedule"`))
	f.bundle("held", configMap+everywhere)
	f.bundle("tolerant", configMap+`targets: [{clusterSelector: {}, tolerations: [{key: dedicated, value: gpu}]}]`)
	a.deployment("tolerant", there)
	a.deployment("held", held)
	f.untilBundle("held", fleet.ConditionReady, corev1.ConditionFalse, "has the taint dedicated=gpu:NoSchedule",
		"muster taint "+f.workspace+"/a dedicated-")
	f.check(taint(f, f.clusterRecord("a"), "null"))
	a.deployment("held", there)

	m, other := f.joined("tainted"), f.joined("free")
	record := m.record()
	f.check(taint(f, &record, `"dedicated=gpu:NoSchedule"`))
	crp := f.pickN(2)
	f.untilNotPicked(crp, map[string]*registered{"TaintNotTolerated": m})
	f.untilOn(crp, other)
	f.check(taint(f, &record, "null"))
	f.untilOn(crp, byName(m, other)...)
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, "")
}

// TestATenantMovesNoTaintOfAnAdministrator has a tenant with all rights on Clusters but the verb
// taint.
func TestATenantMovesNoTaintOfAnAdministrator(t *testing.T) {
	f := newFixture(t)
	record := f.clusterRecord(f.place("a", nil).name)
	tenant, role := f.userWith(f.workspace, "tenant", rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusters"},
		Verbs: []string{"get", "create", "update", "patch", "cordon", "protect"},
	})
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "verb taint on clusters") {
			t.Errorf("%s: %v", what, err)
		}
	}
	const gpu = `"dedicated=gpu:NoSchedule"`
	refused("a tenant taints", taint(tenant, record, gpu))
	f.check(taint(f, record, gpu))
	refused("a tenant removes the taint", taint(tenant, record, "null"))
	refused("a tenant adds another", taint(tenant, record, `"dedicated=gpu:NoSchedule,own:NoSchedule"`))
	made := f.clusterRecord("made")
	made.Annotations = map[string]string{fleet.AnnotationTaints: "own:NoSchedule"}
	refused("a tenant creates a tainted Cluster", tenant.Create(context.Background(), made))
	for value, says := range map[string]string{
		`"dedicated=gpu:NoExecute"`: "the effect NoExecute is not supported", `"dedicated"`: "write KEY=VALUE:NoSchedule",
		`"a b:NoSchedule"`: "write KEY=VALUE",
	} {
		if err := taint(f, record, value); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("the taint %s: %v", value, err)
		}
	}
	f.change(role, func() { role.Rules[0].Verbs = append(role.Rules[0].Verbs, "taint") })
	f.eventually("a tenant with the verb removes the taint", func() error { return taint(tenant, record, "null") })
}
