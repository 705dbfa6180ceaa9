package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// envelope creates a ResourceEnvelope, or a ClusterResourceEnvelope without a namespace,
// with manifests as YAML.
func (f fixture) envelope(namespace, name, data string) client.Object {
	f.t.Helper()
	var wrapped map[string]placement.Manifest
	f.check(yaml.Unmarshal([]byte(strings.ReplaceAll(data, "$NS", namespace)), &wrapped))
	of := metav1.ObjectMeta{Namespace: namespace, Name: name}
	var o client.Object = &placement.ResourceEnvelope{ObjectMeta: of, Data: wrapped}
	if namespace == "" {
		o = &placement.ClusterResourceEnvelope{ObjectMeta: of, Data: wrapped}
		f.t.Cleanup(func() { f.check(client.IgnoreNotFound(f.Delete(context.Background(), o))) })
	}
	f.check(f.Create(context.Background(), o))
	return o
}

// failing waits until a member's entry in the status lists failed resources, and returns it.
func (f fixture) failing(m *registered, o client.Object, status *placement.PlacementStatus, count int) (entry placement.PerClusterStatus) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("the status shows %d failed resources of %s", count, m.name), func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		for _, s := range status.PlacementStatuses {
			if s.ClusterName == m.name && len(s.FailedPlacements) == count {
				entry = s
				return nil
			}
		}
		return fmt.Errorf("it is %+v", status.PlacementStatuses)
	})
	return entry
}

func TestWhatIsWrappedIsPlacedAndNotMadeOnTheHub(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m := f.joined("wrapped", "env=prod")
	f.envelope(shop, "quotas", `
quota: {apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: $NS}, spec: {hard: {pods: "1"}}}
widget: {apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: $NS}, spec: {deep: {list: [1, {a: b}]}}}
`)
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m)
	work := f.works(crp)[0]
	got := manifests(t, work)
	if got["ResourceQuota small"] == nil || got["Widget w"] == nil || got["ResourceEnvelope quotas"] != nil ||
		got["ConfigMap settings"] == nil {
		t.Errorf("the Work holds %v", got)
	}
	if spec, _ := json.Marshal(got["Widget w"].Object["spec"]); string(spec) != `{"deep":{"list":[1,{"a":"b"}]}}` {
		t.Errorf("the wrapped object has lost something: %s", spec)
	}
	if err := f.get(&corev1.ResourceQuota{}, shop, "small"); !apierrors.IsNotFound(err) {
		t.Errorf("the hub has the quota: %v", err)
	}
	f.untilSays(crp, "WorkSynchronized", metav1.ConditionTrue, "")
	if !slices.Contains(crp.Status.SelectedResources, placement.ResourceIdentifier{
		Group: "placement.kubernetes-fleet.io", Version: "v1beta1", Kind: "ResourceEnvelope", Namespace: shop, Name: "quotas",
	}) {
		t.Errorf("selected are %v", crp.Status.SelectedResources)
	}
	// The agent cannot apply what is in the envelope: the status leads to it.
	m.eventually("the agent answers", func() error {
		w := &placement.Work{}
		if err := m.agent.Get(context.Background(), client.ObjectKeyFromObject(&work), w); err != nil {
			return err
		}
		before := w.DeepCopy()
		failed := metav1.Condition{
			Type: "Applied", Status: "False", Reason: "ManifestApplyFailed", Message: "no such kind", ObservedGeneration: w.Generation,
			LastTransitionTime: metav1.Now(),
		}
		w.Status.Conditions = []metav1.Condition{failed}
		w.Status.ManifestConditions = []placement.ManifestCondition{{
			Identifier: placement.WorkResourceIdentifier{Ordinal: 5, Group: "example.com", Version: "v1", Kind: "Widget", Namespace: shop,
				Name: "w"}, Conditions: []metav1.Condition{failed},
		}}
		return m.agent.Status().Patch(context.Background(), w, client.MergeFrom(before))
	})
	entry := f.failing(m, crp, &crp.Status, 1)
	want := &placement.EnvelopeIdentifier{Name: "quotas", Namespace: shop, Type: "ResourceEnvelope"}
	if diff := cmp.Diff(want, entry.FailedPlacements[0].Envelope); diff != "" {
		t.Errorf("the failed resource is in (-want +got):\n%s", diff)
	}
}

func TestManifestsThatCannotBePlacedFailThePlacementAndTheOthersAreApplied(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m := f.joined("refused", "env=prod")
	f.envelope(shop, "mixed", `
a-good: {apiVersion: v1, kind: ConfigMap, metadata: {name: good, namespace: $NS}}
b-undecodable: {metadata: {name: bad, namespace: $NS}, stringData: {p: s3cret-of-nobody}}
c-twice: {apiVersion: v1, kind: ConfigMap, metadata: {name: good, namespace: $NS}, data: {a: b}}
d-cluster: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: everything, namespace: $NS}, rules: `+
		`[{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}
`)
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m)
	m.apply(crp.Name+"-work", "") // the agent has applied all that it got
	f.untilSays(crp, "Applied", metav1.ConditionFalse, "ResourceEnvelope "+shop+"/mixed")
	entry := f.failing(m, crp, &crp.Status, 3)
	var got []string
	for _, failed := range entry.FailedPlacements {
		got = append(got, strings.Join([]string{failed.Kind, failed.Name, failed.Envelope.Type, failed.Envelope.Namespace, failed.Envelope.Name,
			string(failed.Condition.Status)}, " "))
		if failed.Condition.LastTransitionTime.IsZero() {
			t.Errorf("%s failed at no time", failed.Name)
		}
	}
	in := " ResourceEnvelope " + shop + " mixed False"
	if diff := cmp.Diff([]string{" bad" + in, "ConfigMap good" + in, "ClusterRole everything" + in}, got); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
	if text, _ := json.Marshal(crp.Status); strings.Contains(string(text), "s3cret") || strings.Contains(logged.String(), "s3cret-of-nobody") {
		t.Error("the content of a manifest is revealed")
	}
	if got := manifests(t, f.works(crp)[0]); got["ConfigMap good"] == nil || got["ClusterRole everything"] != nil {
		t.Errorf("the Work holds %v", got)
	}
	// It can be set right.
	f.check(f.Get(context.Background(), client.ObjectKey{Namespace: shop, Name: "mixed"}, &placement.ResourceEnvelope{}))
	f.patch(&placement.ResourceEnvelope{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "mixed"}},
		`{"data":{"b-undecodable":null,"c-twice":null,"d-cluster":null}}`)
	f.untilSays(crp, "Applied", metav1.ConditionTrue, "on all 1 members")
}

func TestATenantsEnvelopeReachesNothingOutsideOfItsNamespace(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m := f.joined("tenant", "env=prod")
	f.envelope(shop, "greedy", `
binding: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: mine}}
bound-here: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: mine, namespace: $NS}}
elsewhere: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: kube-system}}
nowhere: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
namespace: {apiVersion: v1, kind: Namespace, metadata: {name: $NS}}
unknown: {apiVersion: example.com/v1, kind: ClusterWidget, metadata: {name: c}}
fine: {apiVersion: v1, kind: ConfigMap, metadata: {name: fine, namespace: $NS}}
`)
	rp := &placement.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "greedy"}}
	f.check(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(`
resourceSelectors: [{group: placement.kubernetes-fleet.io, version: v1beta1, kind: ResourceEnvelope, name: greedy}]
policy: {placementType: PickFixed, clusterNames: [$M]}
`, "$M", m.name)), &rp.Spec))
	f.check(f.Create(context.Background(), rp))
	var work placement.Work
	f.eventually("the member has it", func() error { return f.get(&work, m.namespaceName(), shop+".greedy-work") })
	var got []string
	for name := range manifests(t, work) {
		got = append(got, name)
	}
	if diff := cmp.Diff([]string{"ConfigMap fine"}, got); diff != "" {
		t.Errorf("the member gets (-want +got):\n%s", diff)
	}
	m.apply(work.Name, "")
	f.failing(m, rp, &rp.Status, 6)
	if c := meta.FindStatusCondition(rp.Status.Conditions, "ResourcePlacementApplied"); c == nil || c.Status != "False" {
		t.Errorf("the placement says %+v", rp.Status.Conditions)
	}
	f.check(f.Delete(context.Background(), rp))
	m.remove(work.Name)
}

func TestAClusterResourceEnvelopeIsSelectedByItsName(t *testing.T) {
	f := newFixture(t)
	m := f.joined("clusterwide", "env=prod")
	f.envelope("", "e-"+f.workspace, `
role: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: wrapped-reader}, rules: []}
inside: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}}
`)
	crp := f.crp(strings.ReplaceAll(prodOnly, `{group: "", version: v1, kind: Namespace, name: $SHOP}`,
		"{group: placement.kubernetes-fleet.io, version: v1beta1, kind: ClusterResourceEnvelope, name: e-"+f.workspace+"}"))
	f.untilOn(crp, m)
	if got := manifests(t, f.works(crp)[0]); len(got) != 1 || got["ClusterRole wrapped-reader"] == nil {
		t.Errorf("the Work holds %v", got)
	}
	if err := f.get(&rbacv1.ClusterRole{}, "", "wrapped-reader"); !apierrors.IsNotFound(err) {
		t.Errorf("the hub has the role: %v", err)
	}
	m.apply(crp.Name+"-work", "")
	entry := f.failing(m, crp, &crp.Status, 1)
	if e := entry.FailedPlacements[0].Envelope; e == nil || e.Type != "ClusterResourceEnvelope" || e.Namespace != "" {
		t.Errorf("the failed manifest is in %+v", e)
	}
}

func TestADeletedDefinitionOfEnvelopesOrOverridesChangesNothingOnMembers(t *testing.T) {
	f := newUndefining(t)
	shop := f.shop()
	m := f.joined("m", "env=prod")
	f.envelope(shop, "quotas",
		`quota: {apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: $NS}, spec: {hard: {pods: "1"}}}`)
	f.override(shop, "own", `
resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: settings}]
policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: replace, path: /data/a, value: "2"}]}]}
`)
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m)
	f.untilSetting(crp, map[*registered]string{m: "2"}, "data", "a")
	for _, definition := range []string{"resourceenvelopes.placement.kubernetes-fleet.io", "resourceoverrides.placement.kubernetes-fleet.io"} {
		f.eventually("the placement says that it is well", func() error {
			if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
				return err
			}
			wrapped := slices.ContainsFunc(crp.Status.SelectedResources, func(r placement.ResourceIdentifier) bool {
				return r.Kind == "ResourceEnvelope"
			})
			if strings.Contains(crp.Status.Message, "CustomResourceDefinition") || !wrapped ||
				manifests(t, f.works(crp)[0])["ResourceQuota small"] == nil {
				return fmt.Errorf("it says %q", crp.Status.Message)
			}
			return nil
		})
		f.undefine(definition)
		f.eventually("the placement names the definition "+definition, func() error {
			if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
				return err
			}
			if !strings.Contains(crp.Status.Message, definition) {
				return fmt.Errorf("it says %q", crp.Status.Message)
			}
			return nil
		})
		got := manifests(t, f.works(crp)[0])
		if value := f.setting(crp, m, "data", "a"); got["ResourceQuota small"] == nil || value != "2" {
			t.Errorf("the member has %v, and settings %q", got, value)
		}
		f.cluster.InstallCRDs(t)
		if definition == "resourceenvelopes.placement.kubernetes-fleet.io" {
			f.eventually("the envelope is made again", func() error {
				return f.Create(context.Background(), &placement.ResourceEnvelope{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "quotas"},
					Data: map[string]placement.Manifest{"quota": {RawExtension: runtime.RawExtension{
						Raw: []byte(`{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"small","namespace":"` + shop +
							`"},"spec":{"hard":{"pods":"1"}}}`)}}}})
			})
		}
	}
}
