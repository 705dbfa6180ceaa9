package hub_test

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// snapshot creates a snapshot in the way of KubeFleet's hub, or of any other client.
func (f fixture) snapshot(kind, namespace, name string, set func(*unstructured.Unstructured)) *unstructured.Unstructured {
	f.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("placement.kubernetes-fleet.io/v1beta1")
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.Object["spec"] = map[string]any{"selectedResources": []any{}}
	set(o)
	f.eventually(kind+" is served", func() error { return f.Create(context.Background(), o) })
	f.t.Cleanup(func() {
		_ = merge(f.Client, o.DeepCopy(), `{"metadata":{"finalizers":null}}`) // it may be gone
		_ = f.Delete(context.Background(), o.DeepCopy())                      // likewise
	})
	return o
}

const parentCRP = "kubernetes-fleet.io/parent-CRP"

// TestTheHubsAccountTouchesNoSnapshotButLeftovers plays an attacker with the hub's account.
func TestTheHubsAccountTouchesNoSnapshotButLeftovers(t *testing.T) {
	f := newAlone(t, "")
	ctx, hub := context.Background(), f.asHub()
	theirs{f}.kind("ClusterResourceSnapshot", "clusterresourcesnapshots")
	of := func(name string, finalizers ...string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{parentCRP: name})
			o.SetFinalizers(finalizers)
		}
	}
	controlled := func(apiVersion, kind, name string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{parentCRP: "crp"})
			o.SetFinalizers([]string{"kubernetes-fleet.io/scheduler-cleanup"})
			o.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: apiVersion, Kind: kind, Name: name, UID: "1", Controller: new(true),
			}})
		}
	}
	for name, set := range map[string]func(*unstructured.Unstructured){
		"nobodys":       func(*unstructured.Unstructured) {},
		"unmarked":      of("crp"),
		"backup":        of("crp", "example.com/backup"),
		"of-another":    controlled("apps/v1", "Deployment", "crp"),
		"of-other-kind": controlled("example.com/v1", "ClusterResourcePlacement", "crp"),
		"of-other-name": controlled("placement.kubernetes-fleet.io/v1beta1", "ClusterResourcePlacement", "other"),
	} {
		o := f.snapshot("ClusterResourceSnapshot", "", f.workspace+"-"+name, set)
		f.denied("the deletion of one "+name, func() error { return hub.Delete(ctx, o.DeepCopy(), client.DryRunAll) })
		f.denied("to free one "+name, func() error { return merge(hub, o.DeepCopy(), `{"metadata":{"finalizers":null,"labels":{"a":"b"}}}`) })
	}

	left := f.snapshot("ClusterResourceSnapshot", "", f.workspace+"-left",
		of("crp", "kubernetes-fleet.io/scheduler-cleanup", "example.com/backup"))
	f.denied("to free a leftover that nobody deletes", func() error {
		return merge(hub, left.DeepCopy(), `{"metadata":{"finalizers":["example.com/backup"]}}`)
	})
	f.check(hub.Delete(ctx, left.DeepCopy()))
	for what, patch := range map[string]string{
		"the finalizer of another owner": `{"metadata":{"finalizers":null}}`,
		"its placement":                  `{"metadata":{"labels":{"kubernetes-fleet.io/parent-CRP":"other"}}}`,
		"its contents":                   `{"spec":{"selectedResources":[{"kind":"Secret"}]}}`,
		"an annotation":                  `{"metadata":{"annotations":{"a":"b"}}}`,
	} {
		f.denied("to change "+what, func() error { return merge(hub, left.DeepCopy(), patch) })
	}
	f.check(merge(hub, left.DeepCopy(), `{"metadata":{"finalizers":["example.com/backup"]}}`))
	forged := left.DeepCopy()
	forged.SetName(left.GetName() + "-forged")
	forged.SetResourceVersion("")
	f.denied("to create one", func() error { return hub.Create(ctx, forged) })
}

// TestATenantForgesNoSnapshot plays a tenant who may do everything in a namespace. A hub of
// KubeFleet that comes back would place what a snapshot says.
func TestATenantForgesNoSnapshot(t *testing.T) {
	f := newAlone(t, "")
	ctx := context.Background()
	theirs{f}.scopedKind(apiextensionsv1.NamespaceScoped, "ResourceSnapshot", "resourcesnapshots")
	theirs{f}.scopedKind(apiextensionsv1.NamespaceScoped, "SchedulingPolicySnapshot", "schedulingpolicysnapshots")
	tenant, _ := f.userWith(f.workspace, "tenant", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	for _, kind := range []string{"ResourceSnapshot", "SchedulingPolicySnapshot"} {
		real := f.snapshot(kind, f.workspace, "app-0-snapshot", func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{parentCRP: "app", "kubernetes-fleet.io/is-latest-snapshot": "true"})
		})
		f.eventually("the tenant reads it", func() error { return tenant.Get(ctx, client.ObjectKeyFromObject(real), real.DeepCopy()) })
		forged := real.DeepCopy()
		forged.SetName("app-1-snapshot")
		forged.SetResourceVersion("")
		f.denied("to create a "+kind, func() error { return tenant.Create(ctx, forged.DeepCopy()) })
		f.denied("to change one", func() error {
			return merge(tenant, real.DeepCopy(), `{"spec":{"selectedResources":[{"kind":"Secret"}]}}`)
		})
		f.denied("to delete one", func() error { return tenant.Delete(ctx, real.DeepCopy()) })
		if err := f.Get(ctx, types.NamespacedName{Namespace: f.workspace, Name: "app-1-snapshot"}, forged); !apierrors.IsNotFound(err) {
			t.Errorf("reading the forged %s: %v", kind, err)
		}
	}
}
