package hub_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

// widgets defines a kind that the hub may place, and makes one.
func (f fixture) widgets(namespace string) *apiextensionsv1.CustomResourceDefinition {
	f.t.Helper()
	preserve := true
	group := f.workspace + ".example.com"
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "widgets", Kind: "Widget",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}}}},
		}}
	f.check(f.Create(context.Background(), definition))
	widget := &unstructured.Unstructured{}
	widget.SetAPIVersion(group + "/v1")
	widget.SetKind("Widget")
	widget.SetNamespace(namespace)
	widget.SetName("data")
	f.eventually("the kind is served", func() error { return f.Create(context.Background(), widget) })
	return definition
}

// placeable sets which rules the hub has to read what is placed, and returns those from before.
func (f fixture) placeable(rules []rbacv1.PolicyRule) (before []rbacv1.PolicyRule) {
	f.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fleet-controller-placement"}}
	f.change(role, func() { before, role.Rules = role.Rules, rules })
	return before
}

// TestWhatTheHubCannotReadStaysOnMembers takes away what the hub decides by: a right, with a
// restart, then a kind.
func TestWhatTheHubCannotReadStaysOnMembers(t *testing.T) {
	f := newAlone(t, "")
	shop := f.shop()
	definition := f.widgets(shop)
	rule := rbacv1.PolicyRule{
		APIGroups: []string{definition.Spec.Group}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch"},
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fleet-controller-placement"}}
	f.check(f.get(role, "", role.Name))
	usual := slices.Clone(role.Rules)
	all := append(slices.Clone(usual), rule)
	t.Cleanup(func() { f.placeable(usual) })
	f.placeable(all)
	m := f.joined("m", "env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m)
	holds := func(want ...string) func() error {
		return func() error {
			got := manifests(t, f.works(crp)[0])
			for _, name := range want {
				if got[name] == nil {
					f.check(f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp))
					return fmt.Errorf("it has %v, and not %s; the placement says %s", slices.Sorted(maps.Keys(got)), name, crp.Status.Message)
				}
			}
			return nil
		}
	}
	f.eventually("the Work holds all", holds("Widget data", "ConfigMap settings", "Service web"))
	f.eventually("the status lists it", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		if len(crp.Status.SelectedResources) < 4 {
			return fmt.Errorf("it lists %v", crp.Status.SelectedResources)
		}
		return nil
	})

	unchanged := func(how string) {
		t.Helper()
		before := f.works(crp)[0]
		f.untilSays(crp, "ResourceSelected", metav1.ConditionFalse, "Widget "+shop+"/data: ")
		// which is an event of the placement
		f.check(f.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: how}}))
		f.untilSays(crp, "Scheduled", metav1.ConditionFalse, "placed objects stay as they are")
		if after := f.works(crp)[0]; after.UID != before.UID || after.Generation != before.Generation {
			t.Errorf("%s changed the Work: %v", how, slices.Sorted(maps.Keys(manifests(t, after))))
		}
	}
	f.placeable(usual)
	f.restartHub()
	unchanged("forbidden")
	f.placeable(all)
	f.eventually("it goes on when the hub may read it again", holds("Widget data", "ConfigMap forbidden"))

	f.check(f.Delete(context.Background(), definition))
	f.eventually("the kind is gone", func() error {
		return gone(f.get(&apiextensionsv1.CustomResourceDefinition{}, "", definition.Name))
	})
	unchanged("undefined")
	f.restartHub()
	unchanged("undefined-and-restarted")

	asked := confirmation.FindStringSubmatch(meta.FindStatusCondition(crp.Status.Conditions,
		"ClusterResourcePlacementResourceSelected").Message)
	f.check(f.Patch(context.Background(), crp, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, placement.AnnotationConfirmRemoval, asked[1]))))
	f.eventually("it goes when somebody confirms", func() error {
		if got := manifests(t, f.works(crp)[0]); got["Widget data"] != nil || got["ConfigMap undefined"] == nil {
			return fmt.Errorf("it has %v", slices.Sorted(maps.Keys(got)))
		}
		return nil
	})
}

// TestAnObjectStaysInItsWorkWhenOthersAreAdded fills a Work with what is sorted before the
// Service that is in it.
func TestAnObjectStaysInItsWorkWhenOthersAreAdded(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m := f.joined("m", "env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m)
	big := func(i int) {
		f.check(f.Create(context.Background(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: fmt.Sprintf("dashboard-%d", i)}, Data: map[string]string{
				"a": strings.Repeat("x", 300<<10),
			},
		}))
	}
	for i := range 4 {
		big(i)
	}
	f.eventually("there are two Works", func() error {
		works := f.works(crp)
		if len(works) != 2 {
			return fmt.Errorf("there are %d", len(works))
		}
		first, second := works[1], works[0] // crp-...-1 is sorted before crp-...-work
		if got := manifests(t, first); got["Service web"] == nil || got["ConfigMap settings"] == nil {
			return fmt.Errorf("the first has %v", slices.Sorted(maps.Keys(got)))
		}
		if got := manifests(t, second); len(got) == 0 || got["Service web"] != nil {
			return fmt.Errorf("the second has %v", slices.Sorted(maps.Keys(got)))
		}
		return nil
	})
}

// TestAWorkThatIsFullMovesNothing lets one of three objects grow that fill a Work.
func TestAWorkThatIsFullMovesNothing(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m := f.joined("m", "env=prod")
	big := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "big"}, Data: map[string]string{"a": strings.Repeat("x", 400<<10)},
	}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "other"}, Data: big.Data}
	f.check(f.Create(context.Background(), big))
	f.check(f.Create(context.Background(), other))
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m)
	before := f.works(crp)[0]
	f.change(big, func() { big.Data = map[string]string{"a": strings.Repeat("x", 900<<10)} })
	f.untilSays(crp, "ResourceSelected", metav1.ConditionFalse, "Work number 0 of a member is full: its objects have grown to 13")
	if works := f.works(crp); len(works) != 1 || works[0].Generation != before.Generation {
		t.Errorf("there are %d Works, the first of generation %d, before it was %d", len(works), works[0].Generation, before.Generation)
	}
	f.change(big, func() { big.Data = map[string]string{"a": strings.Repeat("x", 500<<10)} })
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, "1 members picked")
}

// prodGroup makes a ClusterGroup of the Clusters with the label env=prod.
func (f fixture) prodGroup() *fleet.ClusterGroup {
	f.t.Helper()
	group := &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "prod"}}
	group.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	f.check(f.Create(context.Background(), group))
	return group
}

// TestAGroupThatWouldTakeABundleFromManyClustersIsAskedAbout changes the selector of a group of
// six.
func TestAGroupThatWouldTakeABundleFromManyClustersIsAskedAbout(t *testing.T) {
	f := newFixture(t)
	var places []place
	for i := range 6 {
		places = append(places, f.place(fmt.Sprintf("c%d", i), map[string]string{"env": "prod"}))
	}
	group := f.prodGroup()
	b := f.bundle("app", configMap+"\ntargets: [{clusterGroup: prod}]\n")
	before := map[string]types.UID{}
	for _, p := range places {
		before[p.name] = p.deployment("app", there).UID
	}
	f.observedOn(b, 6)
	f.change(group, func() { group.Spec.Selector.MatchLabels["env"] = "production" })
	f.untilBundle("app", "Processed", corev1.ConditionFalse,
		"6 of the 6 Clusters with the Bundle would lose it, although the Bundle has not changed: c0, c1, c2, c3, c4, c5; ")
	f.observedOn(b, 0) // an edit of something else confirms nothing
	for _, p := range places {
		if is := p.deployment("app", there); is.UID != before[p.name] {
			t.Errorf("%s has another deployment now", p.name)
		}
	}
	f.brake("half")
	held := f.untilBundle("app", "Processed", corev1.ConditionFalse,
		`of Namespace `+f.workspace+` is "half", which is no percentage from 0 to 100, and is ignored`)
	asked := confirmation.FindStringSubmatch(kube.FindCondition(held.Status.Conditions, fleet.ConditionProcessed).Message)
	f.change(b, func() { metav1.SetMetaDataAnnotation(&b.ObjectMeta, fleet.AnnotationConfirmRemoval, asked[1]) })
	for _, p := range places {
		p.without("app")
	}

	f.change(group, func() { group.Spec.Selector.MatchLabels["env"] = "prod" })
	for _, p := range places {
		p.deployment("app", there)
	}
	f.observedOn(b, 6)
	f.change(group, func() { group.Spec.Selector.MatchLabels["env"] = "production" })
	f.untilBundle("app", "Processed", corev1.ConditionFalse, "6 of the 6 Clusters with the Bundle would lose it")
	f.brake("100")
	for _, p := range places {
		p.without("app")
	}
}

// brake sets of which percentage of its Clusters a Bundle of the workspace may be taken without
// being confirmed.
func (f fixture) brake(share string) {
	f.t.Helper()
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.workspace}}
	f.change(o, func() { metav1.SetMetaDataAnnotation(&o.ObjectMeta, fleet.AnnotationRemovalBrake, share) })
}

// TestAGroupThatBecomesInvalidTakesNothingAway misspells an operator.
func TestAGroupThatBecomesInvalidTakesNothingAway(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", map[string]string{"env": "prod"})
	group := f.prodGroup()
	f.bundle("app", configMap+"\ntargets: [{clusterGroup: prod}]\n")
	before := p.deployment("app", there)
	f.change(group, func() {
		group.Spec.Selector = &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "in", Values: []string{"prod"}}},
		}
	})
	f.untilBundle("app", "Processed", corev1.ConditionFalse, "the Clusters of ClusterGroup "+f.workspace+"/prod",
		"deployed objects stay as they are")
	if after := p.deployment("app", there); after.UID != before.UID {
		t.Errorf("the deployment %s is another one now: %s", before.UID, after.UID)
	}
	f.change(group, func() { group.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}} })
	f.untilBundle("app", "Processed", corev1.ConditionTrue)
}
