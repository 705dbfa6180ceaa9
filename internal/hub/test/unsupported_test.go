package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// unsupportedObjects are manifests of Rancher Fleet's.
var unsupportedObjects = []struct {
	kind    string
	fields  map[string]any
	instead string
}{
	{"ImageScan", map[string]any{"spec": map[string]any{"image": "registry.example.com/web"}}, "registries"},
}

func TestTheKindsThatTheCLIListsAreServedAndSayWhatDoesTheirJob(t *testing.T) {
	f := newFixture(t)
	for _, row := range unsupportedObjects {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		for field, value := range row.fields {
			object.Object[field] = value
		}
		object.SetGroupVersionKind(fleet.GroupVersion.WithKind(row.kind))
		object.SetNamespace(f.workspace)
		object.SetName("theirs")
		f.check(f.Create(context.Background(), object))
		supported := func(o *unstructured.Unstructured) (status, message string) {
			conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
			f.check(err)
			for _, c := range conditions {
				if c := c.(map[string]any); c["type"] == "Supported" {
					return c["status"].(string), c["message"].(string)
				}
			}
			return "", ""
		}
		says := func(part string) {
			t.Helper()
			f.eventually(row.kind+" says "+part, func() error {
				if err := f.get(object, f.workspace, "theirs"); err != nil {
					return err
				}
				if status, message := supported(object); status != "False" || !strings.Contains(message, part) {
					return fmt.Errorf("it is %s: %s", status, message)
				}
				return nil
			})
		}
		says(row.instead)
		for field, value := range row.fields {
			if got := object.Object[field]; fmt.Sprint(got) != fmt.Sprint(value) {
				t.Errorf("%s of the %s is %v", field, row.kind, got)
			}
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(fleet.GroupVersion.WithKind(row.kind + "List"))
		f.check(f.List(context.Background(), list, client.InNamespace(f.workspace)))
		if len(list.Items) != 1 {
			t.Errorf("%d of kind %s are listed", len(list.Items), row.kind)
		}

		// What another hub wrote there stays, and its finalizers are named.
		f.change(object, func() {
			object.SetFinalizers([]string{"fleet.cattle.io/theirs-finalizer"})
			status := object.Object["status"].(map[string]any)
			status["commit"] = "abc"
		})
		f.check(f.Delete(context.Background(), object))
		says("fleet.cattle.io/theirs-finalizer")
		f.change(object, func() { object.SetFinalizers(nil) })
		f.eventually("the "+row.kind+" is gone", func() error { return gone(f.get(object.DeepCopy(), f.workspace, "theirs")) })
	}
}

func TestWhatIsSaidOfAnUnsupportedKindIsSaidOnceAndLeavesTheRest(t *testing.T) {
	f := newFixture(t)
	scan := &fleet.ImageScan{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "theirs"}}
	f.check(f.Create(context.Background(), scan))
	said := func(o *fleet.ImageScan) error {
		f.check(f.get(o, f.workspace, o.Name))
		if len(o.Status.Conditions) == 0 || o.Status.Conditions[len(o.Status.Conditions)-1].Type != fleet.ConditionSupported {
			return fmt.Errorf("its conditions are %+v", o.Status.Conditions)
		}
		return nil
	}
	f.eventually("it says so", func() error { return said(scan) })
	f.check(f.Status().Patch(context.Background(), scan,
		client.RawPatch("application/merge-patch+json", []byte(`{"status":{"commit":"abc"}}`))))
	f.check(f.Patch(context.Background(), scan, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))))
	version := scan.ResourceVersion
	// Another one shows that the hub has seen the changes.
	other := &fleet.ImageScan{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "other"}}
	f.check(f.Create(context.Background(), other))
	f.eventually("the other says so", func() error { return said(other) })
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(fleet.GroupVersion.WithKind("ImageScan"))
	f.check(f.get(raw, f.workspace, "theirs"))
	if commit, _, _ := unstructured.NestedString(raw.Object, "status", "commit"); raw.GetResourceVersion() != version || commit != "abc" {
		t.Errorf("it was written again: %v", raw.Object)
	}
}
