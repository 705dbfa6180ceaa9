package hub_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
)

// placer is a tenant who may place in one namespace, and read its ConfigMaps.
type placer struct {
	fixture
	namespace string
	// name is the placer's user name. may holds the placer's rights, and as is a client with only
	// those rights.
	name string
	may  *rbacv1.Role
	as   client.Client
}

func (f fixture) placer(namespace string) *placer {
	f.t.Helper()
	as, role := f.userWith(namespace, "tenant",
		rbacv1.PolicyRule{
			APIGroups: []string{placement.GroupVersion.Group}, Resources: []string{"resourceplacements", "resourceplacements/status"},
			Verbs: []string{"*"},
		},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}})
	return &placer{fixture: f, namespace: namespace, name: "system:serviceaccount:" + namespace + ":tenant", may: role, as: as}
}

// places creates, as the tenant, a ResourcePlacement of ConfigMaps and Secrets for one member.
func (n *placer) places(member string, annotations map[string]string) *placement.ResourcePlacement {
	n.t.Helper()
	rp := &placement.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "greedy", Annotations: annotations}}
	rp.Spec.ResourceSelectors = []placement.ResourceSelector{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret", Name: "password"}, {
			Version: "v1", Kind: "Secret", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"all": "mine"}},
		},
	}
	rp.Spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickFixed, ClusterNames: []string{member}}
	// The creation succeeds once the hub's cluster knows the tenant's rights.
	n.eventually("the tenant creates a placement", func() error { return n.as.Create(context.Background(), rp) })
	return rp
}

// untilHolds changes a ConfigMap, and waits until the Work of a ResourcePlacement follows, which
// holds just these objects.
func (n *placer) untilHolds(rp *placement.ResourcePlacement, memberNamespace string, want ...string) {
	n.t.Helper()
	n.touched(memberNamespace, func(followed bool, got []string) error {
		if !followed || !slices.Equal(got, want) {
			n.check(n.Get(context.Background(), client.ObjectKeyFromObject(rp), rp))
			return fmt.Errorf("it holds %v, want %v, follows: %t; the placement says %q", got, want, followed, rp.Status.Message)
		}
		return nil
	})
}

// touched changes a ConfigMap and waits until the Work in a member namespace, with or without that
// change, is as it should be.
func (n *placer) touched(memberNamespace string, right func(followed bool, objects []string) error) {
	n.t.Helper()
	var settings corev1.ConfigMap
	n.check(n.get(&settings, n.namespace, "settings"))
	settings.Data["a"] += "+"
	n.check(n.Update(context.Background(), &settings))
	n.eventually("the Work is as it should be", func() error {
		var work placement.Work
		if err := n.get(&work, memberNamespace, n.namespace+".greedy-work"); err != nil {
			return err
		}
		var got []string
		followed := false
		for name, o := range manifests(n.t, work) {
			got = append(got, name)
			if data, _, _ := unstructured.NestedString(o.Object, "data", "a"); name == "ConfigMap settings" {
				followed = data == settings.Data["a"]
			}
		}
		slices.Sort(got)
		return right(followed, got)
	})
}

// TestAPlacementSelectsOnlyWhatItsAuthorMayRead plays a tenant who may place objects but not read
// Secrets. The tenant tries to have Secrets copied to their own cluster, and to pass for a user who
// may read Secrets.
func TestAPlacementSelectsOnlyWhatItsAuthorMayRead(t *testing.T) {
	f := newFixture(t)
	m, shop := f.joined("author"), f.shop()
	n := f.placer(shop)
	admin := map[string]string{"muster/author": "system:admin", "muster/author-groups": "system:masters"}
	rp := n.places(m.name, admin)
	author := func() {
		t.Helper()
		f.check(f.Get(context.Background(), client.ObjectKeyFromObject(rp), rp))
		if rp.Annotations["muster/author"] != n.name || strings.Contains(rp.Annotations["muster/author-groups"], "masters") {
			t.Fatalf("the author is %q with the groups %q", rp.Annotations["muster/author"], rp.Annotations["muster/author-groups"])
		}
	}
	author()
	n.untilHolds(rp, m.namespaceName(), "ConfigMap settings")
	f.untilRP(rp, "ResourceSelected", metav1.ConditionFalse,
		"may not read it: get secrets password in namespace "+shop+"; list secrets in namespace "+shop)
	if c := meta.FindStatusCondition(rp.Status.Conditions, "ResourcePlacementResourceSelected"); c.Reason != "AuthorMayNotRead" ||
		!strings.Contains(rp.Status.Message, n.name) {
		t.Errorf("it says %+v, %q", c, rp.Status.Message)
	}

	forgeries := map[string]func() error{
		"a patch of the annotations": func() error {
			return n.as.Patch(context.Background(), rp, client.RawPatch(types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"muster/author":"system:admin","muster/author-groups":"system:masters"}}}`)))
		},
		"their removal": func() error {
			return n.as.Patch(context.Background(), rp, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`)))
		},
		"an update": func() error {
			rp.Annotations = admin
			return n.as.Update(context.Background(), rp)
		},
		"an update of the spec": func() error {
			rp.Annotations, rp.Spec.RevisionHistoryLimit = admin, new(int32(7))
			return n.as.Update(context.Background(), rp)
		},
		"an apply": func() error {
			apply := fmt.Sprintf(
				`{"apiVersion":"placement.kubernetes-fleet.io/v1beta1",`+
					`"kind":"ResourcePlacement","metadata":{"name":"greedy","namespace":%q,"annotations":{"muster/author":"system:admin"}}}`, shop,
			)
			return n.as.Patch(context.Background(), rp, client.RawPatch(types.ApplyPatchType, []byte(apply)),
				client.FieldOwner("tenant"), client.ForceOwnership)
		},
		"a patch of the status": func() error {
			return n.as.Status().Patch(context.Background(), rp,
				client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"muster/author":"system:admin"}}}`)))
		},
	}
	for name, try := range forgeries {
		f.eventually(name+" changes nothing", func() error {
			if err := f.Get(context.Background(), client.ObjectKeyFromObject(rp), rp); err != nil {
				return err
			}
			return try() // the hub writes, too
		})
		author()
		n.untilHolds(rp, m.namespaceName(), "ConfigMap settings")
	}

	f.check(f.Patch(context.Background(), rp,
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"by-admin"},"annotations":{"note":"x"}}}`))))
	author()
	n.untilHolds(rp, m.namespaceName(), "ConfigMap settings")
	f.check(f.Patch(context.Background(), rp, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"revisionHistoryLimit":3}}`))))
	n.untilHolds(rp, m.namespaceName(), "ConfigMap settings", "Secret password") // it is the admin's now
	f.eventually("nothing is left out any more", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(rp), rp); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(rp.Status.Conditions, "ResourcePlacementResourceSelected"); c != nil {
			return fmt.Errorf("it says %s", c.Message)
		}
		return nil
	})
}

// TestWhatAnAuthorMayNotReadAnyMoreStaysUntilSomebodyConfirms takes a right away and gives it back,
// as one who replaces a Role does, and then takes it away.
func TestWhatAnAuthorMayNotReadAnyMoreStaysUntilSomebodyConfirms(t *testing.T) {
	f := newAlone(t, "")
	m, shop := f.joined("revoked"), f.shop()
	n := f.placer(shop)
	rp := n.places(m.name, nil)
	n.untilHolds(rp, m.namespaceName(), "ConfigMap settings")
	all := n.may.Rules
	for range 2 {
		n.may.Rules = all[:1]
		f.check(f.Update(context.Background(), n.may))
		f.restartHub() // otherwise the hub checks the rights again after a minute
		f.untilRP(rp, "ResourceSelected", metav1.ConditionFalse, "list configmaps in namespace "+shop)
		f.untilRP(rp, "ResourceSelected", metav1.ConditionFalse, "placed objects stay as they are")
		n.touched(m.namespaceName(), func(followed bool, objects []string) error {
			if followed || !slices.Equal(objects, []string{"ConfigMap settings"}) {
				return fmt.Errorf("it holds %v, follows: %t", objects, followed)
			}
			return nil
		})
		n.may.Rules = all
		f.check(f.Update(context.Background(), n.may))
		f.restartHub()
		n.untilHolds(rp, m.namespaceName(), "ConfigMap settings")
	}
	n.may.Rules = all[:1]
	f.check(f.Update(context.Background(), n.may))
	f.restartHub()
	n.confirm(rp)
	n.touched(m.namespaceName(), func(_ bool, objects []string) error {
		if len(objects) > 0 {
			return fmt.Errorf("it holds %v", objects)
		}
		return nil
	})
}

// confirmation is what a condition says that has to be confirmed.
var confirmation = regexp.MustCompile(placement.AnnotationConfirmRemoval + `=(\w+)`)

// confirm follows the placement's instruction to confirm a removal without a cause known to the
// hub.
func (n *placer) confirm(rp *placement.ResourcePlacement) {
	n.t.Helper()
	n.untilRP(rp, "ResourceSelected", metav1.ConditionFalse, placement.AnnotationConfirmRemoval+"=")
	asked := confirmation.FindStringSubmatch(meta.FindStatusCondition(rp.Status.Conditions, "ResourcePlacementResourceSelected").Message)
	n.check(n.as.Patch(context.Background(), rp, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, placement.AnnotationConfirmRemoval, asked[1]))))
}

// TestAResourcePlacementReachesNoClusterThatDoesNotAdmitItsNamespace plays a tenant who names a
// Cluster of another tenant's workspace.
func TestAResourcePlacementReachesNoClusterThatDoesNotAdmitItsNamespace(t *testing.T) {
	f := newFixture(t)
	shop := f.shop() // before the agent reports its namespaces, of which this is one
	_, values := f.token("new-token", "")
	agent := f.join(values, map[string]any{"clientID": "victim"})
	name := naming.Cluster("victim")
	f.untilReady(name, "Ready")
	bearer, victim := agent.credential()
	agent.stop() // it need not do anything else
	f.beating(f.as(bearer), victim)
	f.check(f.Patch(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.workspace}},
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"muster/placement":"true"}}}`))))
	n := f.placer(shop)
	rp := n.places(f.workspace+"/"+name, nil)
	f.untilRP(rp, "Scheduled", metav1.ConditionFalse, "it accepts no ResourcePlacement of namespace "+shop)
	admits := func(value string) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"muster/placement-from":%s}}}`, value))
		f.check(f.Patch(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.workspace}}, patch))
	}
	admits(`"other"`)
	f.untilRP(rp, "Scheduled", metav1.ConditionFalse, "it accepts no ResourcePlacement of namespace "+shop)
	if err := f.get(&placement.Work{}, victim, shop+".greedy-work"); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("reading its Work: %v", err)
	}
	admits(`"other, ` + shop + `"`)
	n.untilHolds(rp, victim, "ConfigMap settings")
	admits(`null`)
	f.untilRP(rp, "Scheduled", metav1.ConditionTrue, "")
	n.touched(victim, func(followed bool, objects []string) error { // what is there stays as it is
		f.check(f.Get(context.Background(), client.ObjectKeyFromObject(rp), rp))
		synced := meta.FindStatusCondition(rp.Status.Conditions, "ResourcePlacementWorkSynchronized")
		if followed || !slices.Equal(objects, []string{"ConfigMap settings"}) || synced == nil ||
			!strings.Contains(synced.Message, "placed objects stay as they are") {
			return fmt.Errorf("it holds %v, follows: %t; %+v", objects, followed, synced)
		}
		return nil
	})
}

// TestWithoutThePolicyNobodyIsBelievedToBeAnAuthor runs a hub without the admission policies of its
// chart, and then with them.
func TestWithoutThePolicyNobodyIsBelievedToBeAnAuthor(t *testing.T) {
	f := newAlone(t, `{"placement": {"authorRights": "ignore"}}`)
	f.hub.Kill()
	f.reinstallsAuthorPolicies()
	mutating := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "muster-placement-author"}}
	validating := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "muster-placement-author"}}
	f.check(f.Get(context.Background(), client.ObjectKeyFromObject(validating), validating))
	f.check(f.Delete(context.Background(), mutating))
	f.check(f.Delete(context.Background(), validating))
	forged := func() (author string, err error) {
		rp := &placement.ResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "dry", Annotations: map[string]string{"muster/author": "forged"}},
		}
		rp.Spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "none"}}
		err = f.Create(context.Background(), rp, client.DryRunAll)
		return rp.Annotations["muster/author"], err
	}
	f.eventually("the policies have no effect any more", func() error {
		if author, err := forged(); err != nil || author != "forged" {
			return fmt.Errorf("the author is %s, %w", author, err)
		}
		return nil
	})
	f.hub.Start()
	m, shop := f.joined("policy"), f.shop()
	n := f.placer(shop)
	rp := n.places(m.name, map[string]string{"muster/author": "forged", "muster/author-groups": "system:masters"})
	n.untilHolds(rp, m.namespaceName(), "ConfigMap settings", "Secret password") // as with KubeFleet

	f.configure(`{}`)
	f.untilRP(rp, "ResourceSelected", metav1.ConditionFalse, "helm upgrade of the chart fleet")
	system := f
	system.workspace = naming.SystemNamespace
	f.eventually("an event says so, too", func() error {
		return system.event("PolicyMissing", naming.HubConfigMap, "helm upgrade of the chart fleet")
	})
	kept := func(followed bool, objects []string) error {
		if followed || !slices.Equal(objects, []string{"ConfigMap settings", "Secret password"}) {
			return fmt.Errorf("it holds %v, follows: %t", objects, followed)
		}
		return nil
	}
	n.touched(m.namespaceName(), kept) // what is placed stays
	f.check(n.as.Patch(context.Background(), rp, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`))))

	validating.ResourceVersion, validating.UID = "", ""
	f.check(f.Create(context.Background(), validating))
	f.eventually("nobody can be forged", func() error {
		if _, err := forged(); err == nil || !strings.Contains(err.Error(), "leave it out") {
			return fmt.Errorf("it says %v", err)
		}
		return nil
	})
	f.untilRP(rp, "ResourceSelected", metav1.ConditionFalse, "the author of the placement is unknown")
	n.touched(m.namespaceName(), kept)
	f.refused("he makes himself somebody else", n.as.Patch(context.Background(), rp,
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"muster/author":"system:admin"}}}`))))
	f.check(n.as.Patch(context.Background(), rp,
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"muster/author":%q}}}`, n.name))))
	n.confirm(rp) // the removal of the Secret, placed while no author's rights counted
	n.untilHolds(rp, m.namespaceName(), "ConfigMap settings")
}
