package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// definitionOfDecisions has the schema of KEP-5313.
const definitionOfDecisions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: placementdecisions.multicluster.x-k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: multicluster.x-k8s.io
  scope: Namespaced
  names: {kind: PlacementDecision, listKind: PlacementDecisionList, plural: placementdecisions, singular: placementdecision}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          required: [decisions]
          properties:
            schedulerName: {type: string}
            decisions:
              type: array
              maxItems: 100
              items:
                type: object
                required: [clusterProfileRef]
                properties:
                  reason: {type: string}
                  clusterProfileRef:
                    type: object
                    required: [name]
                    properties: {name: {type: string}, namespace: {type: string}}
`

func sliceNamed(namespace, name string) *unstructured.Unstructured {
	slice := &unstructured.Unstructured{Object: map[string]any{"decisions": []any{}}}
	slice.SetGroupVersionKind(schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "PlacementDecision"})
	slice.SetNamespace(namespace)
	slice.SetName(name)
	return slice
}

// decided waits until a PlacementDecision names exactly these profiles, and returns it.
func (f fixture) decided(namespace, name string, want ...string) *unstructured.Unstructured {
	f.t.Helper()
	slice := sliceNamed(namespace, name)
	f.eventually(name+" names "+strings.Join(want, " "), func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(slice), slice); err != nil {
			return err
		}
		list, _, _ := unstructured.NestedSlice(slice.Object, "decisions")
		got := []string{}
		for _, each := range list {
			profile, _, _ := unstructured.NestedString(each.(map[string]any), "clusterProfileRef", "name")
			in, _, _ := unstructured.NestedString(each.(map[string]any), "clusterProfileRef", "namespace")
			got = append(got, in+"/"+profile)
		}
		for i := range want {
			if !strings.Contains(want[i], "/") {
				want[i] = inventoryNamespace + "/" + want[i]
			}
		}
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			return fmt.Errorf("-want +got:\n%s", diff)
		}
		return nil
	})
	return slice
}

// serveDecisions makes the API server serve PlacementDecisions until the test ends.
func (f fixture) serveDecisions() {
	f.t.Helper()
	ctx, definition := context.Background(), &unstructured.Unstructured{}
	f.check(yaml.Unmarshal([]byte(definitionOfDecisions), definition))
	f.check(f.Create(ctx, definition))
	f.t.Cleanup(func() {
		f.check(f.Delete(ctx, definition))
		f.eventually("the definition is gone", func() error { return gone(f.Get(ctx, client.ObjectKeyFromObject(definition), definition)) })
	})
}

// TestClustersThatGoWithTheirDefinitionStayInPlacementDecisions: a tool would delete what it has
// deployed there.
func TestClustersThatGoWithTheirDefinitionStayInPlacementDecisions(t *testing.T) {
	f := newUndefining(t)
	ctx := context.Background()
	f.configure(`{"importLoopback":true,"inventory":{"placementDecisions":true}}`)
	f.serveDecisions()
	f.check(f.Create(ctx, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "a"}}))
	group := &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "every"},
		Spec: fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{}}}
	f.check(f.Create(ctx, group))
	before := f.decided(f.workspace, "clustergroup-every-0", f.workspace+".a")
	const clusters = "clusters.fleet.cattle.io"
	f.undefine(clusters)
	t.Cleanup(func() {
		f.hub.Kill()
		f.letGo(clusters, fleet.GroupVersion.WithKind("ClusterList"))
		f.cluster.InstallCRDs(t)
	})
	cluster := &fleet.Cluster{}
	f.eventually("the Cluster goes with its definition", func() error {
		if err := f.get(cluster, f.workspace, "a"); err != nil || cluster.DeletionTimestamp == nil {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
	f.check(merge(f, group, `{"metadata":{"labels":{"again":"1"}}}`))
	f.check(f.Create(ctx, &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "later"}}))
	f.decided(f.workspace, "clustergroup-later-0")
	after := f.decided(f.workspace, "clustergroup-every-0", f.workspace+".a")
	if after.GetUID() != before.GetUID() || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("it was written: %v", after.Object)
	}
}

// TestPlacementsAndGroupsAreShownAsPlacementDecisions begins before the kind is served.
func TestPlacementsAndGroupsAreShownAsPlacementDecisions(t *testing.T) {
	f := newAlone(t, `{"importLoopback":true,"inventory":{"placementDecisions":true}}`)
	ctx := context.Background()
	for _, name := range []string{"a", "b", "c"} {
		f.check(f.Create(ctx, &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name, Labels: map[string]string{"env": "prod"}},
		}))
	}
	group := &fleet.ClusterGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.workspace, Name: "prod", Labels: map[string]string{"multicluster.x-k8s.io/placement-key": "web"},
		},
		Spec: fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}},
	}
	f.check(f.Create(ctx, group))
	m := f.joined("decided", "env=prod")
	shop := f.shop()
	crp, rp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop)), f.rp(shop)
	f.untilOn(crp, m)

	f.serveDecisions()
	taken := sliceNamed(f.workspace, "clustergroup-taken-0")
	f.eventually("the API server serves it", func() error { return f.Create(ctx, taken) })

	profile := func(name string) string { return f.workspace + "." + name }
	slice := f.decided(f.workspace, "clustergroup-prod-0", profile("a"), profile("b"), profile("c"))
	f.decided(inventoryNamespace, "crp-"+crp.Name+"-0", m.name)
	f.decided(shop, "rp-"+rp.Name+"-0", m.name)
	wantLabels := map[string]string{"fleet.cattle.io/managed": "true", "multicluster.x-k8s.io/decision-key": "clustergroup-prod",
		"multicluster.x-k8s.io/decision-index": "0", "multicluster.x-k8s.io/placement-key": "web"}
	if diff := cmp.Diff(wantLabels, slice.GetLabels()); diff != "" || !metav1.IsControlledBy(slice, group) {
		t.Errorf("its owners are %v, its labels (-want +got):\n%s", slice.GetOwnerReferences(), diff)
	}
	f.changesOfDecisions(group, slice, taken)

	f.configure(`{"importLoopback":true}`)
	for _, off := range []*unstructured.Unstructured{
		sliceNamed(f.workspace, "clustergroup-prod-0"), sliceNamed(inventoryNamespace, "crp-"+crp.Name+"-0"),
	} {
		f.eventually(off.GetName()+" goes with the setting", func() error { return gone(f.Get(ctx, client.ObjectKeyFromObject(off), off)) })
	}
	f.check(f.Get(ctx, client.ObjectKeyFromObject(taken), taken))
}

// changesOfDecisions has users who change Clusters, PlacementDecisions and groups.
func (f fixture) changesOfDecisions(group *fleet.ClusterGroup, slice, taken *unstructured.Unstructured) {
	f.t.Helper()
	ctx := context.Background()
	profile := func(name string) string { return f.workspace + "." + name }
	cluster := func(name string) *fleet.Cluster {
		return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}}
	}
	f.check(merge(f, cluster("b"), `{"metadata":{"labels":{"other":"x"}}}`))
	f.check(f.Create(ctx, &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "taken"}}))
	f.untilSaid("taken", "PlacementDecisionTaken", "is another owner's, and stays as it is")
	version := taken.GetResourceVersion()
	f.check(f.Get(ctx, client.ObjectKeyFromObject(taken), taken))
	if taken.GetResourceVersion() != version {
		f.t.Errorf("the hub has changed another owner's: %v", taken.Object)
	}
	same := f.decided(f.workspace, slice.GetName(), profile("a"), profile("b"), profile("c"))
	if same.GetResourceVersion() != slice.GetResourceVersion() {
		f.t.Error("the hub has written a PlacementDecision without a change")
	}

	f.check(merge(f, cluster("a"), `{"metadata":{"labels":{"env":null}}}`))
	f.check(f.Delete(ctx, cluster("c")))
	f.decided(f.workspace, slice.GetName(), profile("b"))
	f.check(merge(f, slice.DeepCopy(), `{"decisions":[],"schedulerName":"other"}`))
	f.decided(f.workspace, slice.GetName(), profile("b"))
	f.check(f.Delete(ctx, slice.DeepCopy()))
	f.decided(f.workspace, slice.GetName(), profile("b"))

	f.check(f.Create(ctx, &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "short"},
		Spec: fleet.ClusterGroupSpec{Selector: group.Spec.Selector}}))
	short := f.decided(f.workspace, "clustergroup-short-0", profile("b"))
	f.check(f.Delete(ctx, &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "short"}}))
	f.eventually("it goes with its group", func() error { return gone(f.Get(ctx, client.ObjectKeyFromObject(short), short)) })
	if owners := short.GetOwnerReferences(); slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.Name != "short" }) {
		f.t.Errorf("its owners are %v", owners)
	}
}
