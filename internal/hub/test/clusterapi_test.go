package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// capiSecret makes a Secret as Cluster API does, owned by a cluster of that kind.
func (f fixture) capiSecret(name, cluster string, uid ...types.UID) {
	f.t.Helper()
	uid = append(uid, "0e6b9a52")
	f.check(f.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.workspace, Name: name, Labels: map[string]string{"cluster.x-k8s.io/cluster-name": cluster},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Cluster", Name: cluster, UID: uid[0]}},
		},
		Type: "cluster.x-k8s.io/secret",
		Data: map[string][]byte{"value": []byte("{}")},
	}))
}

func (f fixture) optIn() {
	f.t.Helper()
	var namespace corev1.Namespace
	f.check(f.Get(context.Background(), types.NamespacedName{Name: f.workspace}, &namespace))
	before := namespace.DeepCopy()
	metav1.SetMetaDataLabel(&namespace.ObjectMeta, fleet.LabelClusterAPI, "true")
	f.check(f.Patch(context.Background(), &namespace, client.MergeFrom(before)))
}

func TestKubeconfigOfClusterAPIBecomesAClusterWhereTheWorkspaceAsksForIt(t *testing.T) {
	f := newFixture(t)
	quiet := f.neighbour()
	quiet.capiSecret("web-kubeconfig", "web")
	f.capiSecret("web-kubeconfig", "web")
	f.capiSecret("web-ca", "web")
	f.check(f.Create(context.Background(), &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "taken"}}))
	f.capiSecret("taken-kubeconfig", "taken")
	f.optIn()
	var got fleet.Cluster
	f.eventually("the Cluster exists", func() error {
		return f.Get(context.Background(), types.NamespacedName{Namespace: f.workspace, Name: "web"}, &got)
	})
	if got.Spec.KubeConfigSecret != "web-kubeconfig" {
		t.Errorf("its kubeConfigSecret is %q", got.Spec.KubeConfigSecret)
	}
	want := []metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Cluster", Name: "web", UID: "0e6b9a52"}}
	if diff := cmp.Diff(want, got.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	f.eventually("the Cluster in the way says so", func() error {
		var list eventsv1.EventList
		if err := f.List(context.Background(), &list, client.InNamespace(f.workspace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == "NotFromClusterAPI" && e.Regarding.Name == "taken" &&
				strings.Contains(e.Note, "set spec.kubeConfigSecret to taken-kubeconfig") {
				return nil
			}
		}
		return fmt.Errorf("there are %d other events", len(list.Items))
	})
	for workspace, want := range map[string]int{f.workspace: 2, quiet.workspace: 0} {
		var list fleet.ClusterList
		f.check(f.List(context.Background(), &list, client.InNamespace(workspace)))
		if len(list.Items) != want {
			t.Errorf("%s has %d Clusters, want %d", workspace, len(list.Items), want)
		}
	}
}

// TestAClusterOfClusterAPIThatALabelKeepsOutIsNotCreatedAgain deletes a Cluster whose Secret has
// the label. Without the label, the hub creates a deleted Cluster again, because it stores no
// deletions.
func TestAClusterOfClusterAPIThatALabelKeepsOutIsNotCreatedAgain(t *testing.T) {
	f := newFixture(t)
	f.optIn()
	f.capiSecret("web-kubeconfig", "web")
	web := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "web"}}
	exists := func(name string) func() error {
		return func() error { return f.get(&fleet.Cluster{}, f.workspace, name) }
	}
	f.eventually("the Cluster exists", exists("web"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "web-kubeconfig"}}
	f.check(merge(f, secret, `{"metadata":{"labels":{"muster/cluster-api":"false"}}}`))
	f.check(f.Delete(context.Background(), web))
	f.eventually("the Cluster is gone", func() error { return gone(exists("web")()) })
	f.check(merge(f, secret, `{"metadata":{"annotations":{"changed":"1"}}}`))
	f.capiSecret("later-kubeconfig", "later")
	f.eventually("the hub has looked at a later Secret", exists("later"))
	if err := gone(exists("web")()); err != nil {
		t.Errorf("the Cluster that was kept out: %v", err)
	}
	f.check(merge(f, secret, `{"metadata":{"labels":{"muster/cluster-api":null}}}`))
	f.eventually("without the label it is registered again", exists("web"))
}

func TestClusterOfClusterAPIWhoseNameNoMemberCanHaveGetsAnother(t *testing.T) {
	f := newFixture(t)
	f.capiSecret("prod.eu-kubeconfig", "prod.eu")
	f.optIn()
	f.eventually("the Cluster exists", func() error {
		var got fleet.Cluster
		return f.get(&got, f.workspace, naming.CleanCluster("prod.eu"))
	})
	err := f.Create(context.Background(), &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "edge-1.22"}})
	if err == nil || !strings.Contains(err.Error(), "may have at most 63 lower case letters, digits and dashes and no dots") ||
		!strings.Contains(err.Error(), "use edge-1-22") {
		t.Errorf("a Cluster with a dot in its name: %v", err)
	}
	for name, refused := range map[string]bool{strings.Repeat("a", 63): false, strings.Repeat("a", 64): true} {
		err := f.Create(context.Background(), &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}})
		if (err != nil) != refused {
			t.Errorf("a Cluster of %d letters: %v", len(name), err)
		}
	}
}

// definitionOfClusterAPI is the part of the definition that the API server needs.
const definitionOfClusterAPI = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusters.cluster.x-k8s.io}
spec:
  group: cluster.x-k8s.io
  scope: Namespaced
  names: {kind: Cluster, listKind: ClusterList, plural: clusters, singular: cluster}
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestMetadataOfClusterAPIIsCopiedByARule begins before the hub cluster serves the clusters of
// Cluster API.
func TestMetadataOfClusterAPIIsCopiedByARule(t *testing.T) {
	f := newAlone(t, `{"clusterAPI":{"labels":["env","team.example.com/*"],"annotations":["note"],"classLabel":"class"}}`)
	ctx := context.Background()
	f.serveClusterAPI()
	theirs := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"topology": map[string]any{"class": "edge"}}}}
	theirs.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "Cluster"})
	theirs.SetNamespace(f.workspace)
	theirs.SetName("web")
	theirs.SetLabels(map[string]string{"env": "prod", "team.example.com/name": "a", "other": "x", "muster/approved": "true"})
	theirs.SetAnnotations(map[string]string{"note": "n", "muster/cordoned": "true"})
	f.eventually("the API server serves it", func() error { return f.Create(ctx, theirs) })
	f.optIn()
	f.capiSecret("web-kubeconfig", "web", theirs.GetUID())
	f.capiSecret("fake-kubeconfig", "fake", "0e6b9a52")
	labelled := func(what string, want map[string]string) {
		t.Helper()
		f.eventually(what, func() error {
			var got fleet.Cluster
			if err := f.get(&got, f.workspace, "web"); err != nil {
				return err
			}
			have := map[string]string{"note": got.Annotations["note"]}
			for _, key := range []string{"env", "team.example.com/name", "other", "muster/approved", "class"} {
				if value, is := got.Labels[key]; is {
					have[key] = value
				}
			}
			if diff := cmp.Diff(want, have); diff != "" || got.Annotations["muster/cordoned"] != "" {
				return fmt.Errorf("-want +got:\n%s", diff)
			}
			return nil
		})
	}
	labelled("the metadata is copied", map[string]string{"env": "prod", "team.example.com/name": "a", "class": "edge", "note": "n"})
	f.check(merge(f, theirs, `{"metadata":{"labels":{"env":"test","team.example.com/name":null}}}`))
	labelled("a change is copied", map[string]string{"env": "test", "class": "edge", "note": "n"})
	web := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "web"}}
	f.check(merge(f, web, `{"metadata":{"labels":{"env":"mine"}}}`))
	f.configure(`{"clusterAPI":{"labels":["env","other"]}}`)
	labelled("another rule counts, and a user's label stays", map[string]string{"env": "mine", "other": "x", "note": ""})
	f.configure("{}")
	labelled("without a rule nothing is left", map[string]string{"env": "mine", "note": ""})
}
