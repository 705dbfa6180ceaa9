package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// override creates a ResourceOverride, or a ClusterResourceOverride without a
// namespace, of a spec as YAML.
func (f fixture) override(namespace, name, spec string) client.Object {
	f.t.Helper()
	o := &unstructured.Unstructured{}
	f.check(yaml.Unmarshal([]byte("spec:\n  "+strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")), &o.Object))
	kind := "ResourceOverride"
	if namespace == "" {
		kind = "ClusterResourceOverride"
		f.t.Cleanup(func() { f.check(client.IgnoreNotFound(f.Delete(context.Background(), o))) })
	}
	o.SetGroupVersionKind(placement.GroupVersion.WithKind(kind))
	o.SetNamespace(namespace)
	o.SetName(name)
	f.check(f.Create(context.Background(), o))
	return o
}

// setting is what the Work of a member says of a key of the ConfigMap "settings"; "-"
// if it is not there.
func (f fixture) setting(crp *placement.ClusterResourcePlacement, m *registered, field ...string) string {
	f.t.Helper()
	for _, work := range f.works(crp) {
		if work.Namespace == m.namespaceName() {
			if o := manifests(f.t, work)["ConfigMap settings"]; o != nil {
				value, _, _ := unstructured.NestedString(o.Object, field...)
				return value
			}
		}
	}
	return "-"
}

// untilSetting waits until the Works of members say something of the ConfigMap "settings".
func (f fixture) untilSetting(crp *placement.ClusterResourcePlacement, want map[*registered]string, field ...string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("the members have %v", want), func() error {
		for m, value := range want {
			if got := f.setting(crp, m, field...); got != value {
				if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
					return err
				}
				return fmt.Errorf("%s has %q, want %q; it says %q", m.name, got, value, crp.Status.Message)
			}
		}
		return nil
	})
}

func (f fixture) statusOf(crp *placement.ClusterResourcePlacement, m *registered) placement.PerClusterStatus {
	f.t.Helper()
	f.check(f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp))
	i := slices.IndexFunc(crp.Status.PlacementStatuses, func(s placement.PerClusterStatus) bool { return s.ClusterName == m.name })
	if i < 0 {
		return placement.PerClusterStatus{}
	}
	return crp.Status.PlacementStatuses[i]
}

func TestOverridesGiveMembersTheirOwnAndRollOutLikeAnyChange(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m1, m2 := f.joined("over-a", "env=prod", "region=eu"), f.joined("over-b", "env=prod", "region=us")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m1, m2)
	f.untilSays(crp, "Overridden", metav1.ConditionTrue, "")
	if c := meta.FindStatusCondition(crp.Status.Conditions, "ClusterResourcePlacementOverridden"); c.Reason != "NoOverrideSpecified" {
		t.Errorf("without overrides the reason is %s", c.Reason)
	}
	for _, m := range []*registered{m1, m2} {
		m.apply(crp.Name+"-work", "")
	}
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 2 members")

	ro := f.override(shop, "own", `
placement: {name: `+crp.Name+`}
resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: settings}]
policy:
  overrideRules:
  - clusterSelector: {clusterSelectorTerms: []}
    jsonPatchOverrides: [{op: replace, path: /data/a, value: "${MEMBER-CLUSTER-NAME} in ${MEMBER-CLUSTER-LABEL-KEY-region}"}]
`)
	changed := func() (who []*registered) {
		for _, m := range []*registered{m1, m2} {
			if f.setting(crp, m, "data", "a") != "1" {
				who = append(who, m)
			}
		}
		return who
	}
	f.eventually("one member gets the change", func() error {
		if who := changed(); len(who) != 1 {
			return fmt.Errorf("%d have it", len(who))
		}
		return nil
	})
	f.untilSays(crp, "RolloutStarted", metav1.ConditionFalse, "at most 1 of 2 members may be unavailable")
	if len(changed()) != 1 {
		t.Fatal("the other did not wait")
	}
	changed()[0].apply(crp.Name+"-work", "")
	f.untilSetting(crp, map[*registered]string{m1: m1.name + " in eu", m2: m2.name + " in us"}, "data", "a")
	f.eventually("the status names the override", func() error {
		s := f.statusOf(crp, m1)
		c := meta.FindStatusCondition(s.Conditions, "Overridden")
		if c == nil || c.Reason != "OverriddenSucceeded" || !slices.Equal(s.ApplicableResourceOverrides, []placement.NamespacedName{{
			Namespace: shop, Name: "own-0",
		}}) {
			return fmt.Errorf("it is %+v", s)
		}
		return nil
	})
	for _, work := range f.works(crp) {
		if work.Annotations[placement.AnnotationOverrides] == "" {
			t.Errorf("Work %s/%s has the annotations %v", work.Namespace, work.Name, work.Annotations)
		}
	}
	if crp.Status.ObservedResourceIndex != "0" {
		t.Errorf("the index of the resources is %s", crp.Status.ObservedResourceIndex)
	}

	// A label that changes changes what the member gets; a label that goes leaves it with what it has,
	// and the status says so.
	for _, m := range []*registered{m1, m2} {
		m.apply(crp.Name+"-work", "")
	}
	m1.label("region=asia")
	f.untilSetting(crp, map[*registered]string{m1: m1.name + " in asia"}, "data", "a")
	m1.label("region=")
	f.untilSays(crp, "Overridden", metav1.ConditionFalse, "uses label region, which member "+m1.name+" does not have")
	f.untilSetting(crp, map[*registered]string{m1: m1.name + " in asia"}, "data", "a")

	f.check(f.Delete(context.Background(), ro))
	for _, m := range []*registered{m1, m2} {
		m.apply(crp.Name+"-work", "")
	}
	f.eventually("what was overridden is as selected again", func() error {
		for _, m := range []*registered{m1, m2} {
			m.apply(crp.Name+"-work", "") // the next one waits for this one's answer
			if f.setting(crp, m, "data", "a") != "1" {
				return fmt.Errorf("%s has its own", m.name)
			}
		}
		return nil
	})
}

func TestAnOverrideThatCannotBeAppliedIsNamedAndNothingIsWritten(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m := f.joined("over-fail", "env=prod")
	f.override("", "cro-"+f.workspace, `
placement: {name: crp-`+f.workspace+`}
clusterResourceSelectors: [{group: "", version: v1, kind: Namespace, name: `+shop+`}]
policy:
  overrideRules:
  - clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {env: prod}}}]}
    jsonPatchOverrides: [{op: add, path: /metadata/labels/new-label, value: new-value}]
`)
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilSays(crp, "Overridden", metav1.ConditionFalse, "ClusterResourceOverride cro-"+f.workspace+": ")
	if works := f.works(crp); len(works) > 0 {
		t.Errorf("%d Works are written", len(works))
	}
	s := f.statusOf(crp, m)
	if diff := cmp.Diff([]string{"cro-" + f.workspace + "-0"}, s.ApplicableClusterResourceOverrides); diff != "" {
		t.Errorf("applicable (-want +got):\n%s", diff)
	}
	if c := meta.FindStatusCondition(s.Conditions, "Overridden"); c == nil || c.Reason != "OverriddenFailed" {
		t.Errorf("the member's entry says %+v", s.Conditions)
	}
	// Corrected, it selects the Namespace and everything in it.
	cro := &placement.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "cro-" + f.workspace}}
	f.check(f.Get(context.Background(), client.ObjectKeyFromObject(cro), cro))
	f.change(cro, func() {
		cro.Spec.Policy.OverrideRules[0].JSONPatchOverrides[0].Path = "/metadata/labels"
		cro.Spec.Policy.OverrideRules[0].JSONPatchOverrides[0].Value.Raw = []byte(`{"new-label":"new-value"}`)
	})
	f.untilSetting(crp, map[*registered]string{m: "new-value"}, "metadata", "labels", "new-label")
	for name, o := range manifests(t, f.works(crp)[0]) {
		if o.GetLabels()["new-label"] != "new-value" {
			t.Errorf("%s has the labels %v", name, o.GetLabels())
		}
	}
	f.eventually("the override is counted as changed once", func() error {
		if s := f.statusOf(crp, m); !slices.Equal(s.ApplicableClusterResourceOverrides, []string{"cro-" + f.workspace + "-1"}) {
			return fmt.Errorf("it is %v", s.ApplicableClusterResourceOverrides)
		}
		return nil
	})
}

func TestAnOverrideThatDeletesLeavesTheResourceOutOnSomeMembers(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m1, m2 := f.joined("over-del-a", "env=prod"), f.joined("over-del-b", "env=prod", "size=small")
	f.override(shop, "small", `
resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: settings}]
policy:
  overrideRules:
  - clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {size: small}}}]}
    overrideType: Delete
`)
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m1, m2)
	f.untilSetting(crp, map[*registered]string{m1: "1", m2: "-"}, "data", "a")
}

func TestOverridesThatCannotBeMeantAreRefused(t *testing.T) {
	f := newFixture(t)
	for spec, want := range map[string]string{
		`{placement: {name: a, scope: Namespaced}, clusterResourceSelectors: [{group: "", version: v1, kind: Namespace, name: a}], policy: ` +
			`{overrideRules: [{overrideType: Delete}]}}`: "scope must be Cluster",
		`{clusterResourceSelectors: [{group: "", version: v1, kind: Namespace, name: a}], policy: {overrideRules: [{overrideType: Delete, ` +
			`jsonPatchOverrides: [{op: remove, path: /a}]}]}}`: "overrideType JSONPatch only",
		`{clusterResourceSelectors: [{group: "", version: v1, kind: Namespace, name: a}], policy: {overrideRules: [{jsonPatchOverrides: [{op: ` +
			`move, path: /a}]}]}}`: "Unsupported value",
		`{clusterResourceSelectors: [], policy: {overrideRules: [{overrideType: ` +
			`Delete}]}}`: "should have at least 1 items",
	} {
		o := &unstructured.Unstructured{}
		f.check(yaml.Unmarshal([]byte("spec: "+spec), &o.Object))
		o.SetGroupVersionKind(placement.GroupVersion.WithKind("ClusterResourceOverride"))
		o.SetGenerateName("refused-")
		if err := f.Create(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}

func TestAnOverrideThatNamesNoPlacementSaysSo(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	const spec = `
placement: {name: $NAME}
resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: settings}]
policy: {overrideRules: [{overrideType: Delete}]}
`
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.override(shop, "right", strings.ReplaceAll(spec, "$NAME", crp.Name))
	wrong := f.override(shop, "wrong", strings.ReplaceAll(spec, "$NAME", "no-such"))
	f.eventually("an Event of the override says so", func() error {
		var list eventsv1.EventList
		if err := f.List(context.Background(), &list, client.InNamespace(shop)); err != nil {
			return err
		}
		for _, e := range list.Items {
			says := strings.Contains(e.Note, "names no-such, which does not exist")
			if e.Reason == "PlacementNotFound" && e.Regarding.UID == wrong.GetUID() && says {
				return nil
			}
		}
		return fmt.Errorf("%d other events", len(list.Items))
	})
	var list eventsv1.EventList
	f.check(f.List(context.Background(), &list, client.InNamespace(shop)))
	for _, e := range list.Items {
		if e.Regarding.Name == "right" {
			t.Errorf("the other override gets %s: %s", e.Reason, e.Note)
		}
	}
}
