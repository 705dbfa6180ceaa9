// Package anyform reads objects of kinds with a looser schema in earlier releases.
//
// Its invariant: a misfit of an object and its type stops no program. A typed cache with one such
// object would never be filled.
package anyform

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// Object returns an empty object of a kind of the fleet.
func Object(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(fleet.GroupVersion.WithKind(kind))
	return object
}

// List returns an empty list of a kind of the fleet.
func List(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(fleet.GroupVersion.WithKind(kind + "List"))
	return list
}

// Decode reads an object into its type.
func Decode(object *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return fmt.Errorf("the object was stored by an earlier definition and does not fit the present one (%s): correct it, or delete it and "+
			"create it again", kube.Clip(err.Error(), 200))
	}
	return nil
}

// Read reads an object from the cache into its type, and reports whether to reconcile it. A missing
// object is not reconciled. A misfit gets the given reason in its status, and an object under
// deletion the names of its finalizers.
func Read(ctx context.Context, c client.Client, key client.ObjectKey, into client.Object, reason string, now time.Time) (bool, error) {
	stored := Object(reflect.TypeOf(into).Elem().Name())
	if err := c.Get(ctx, key, stored); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if err := Decode(stored, into); err != nil {
		return false, Refuse(ctx, c, stored, now, reason, err)
	}
	if !into.GetDeletionTimestamp().IsZero() {
		return false, Leave(ctx, c, stored, now)
	}
	return true, nil
}

// InNamespace enqueues the objects of a kind in the namespace of another object.
func InNamespace(c client.Reader, kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) (requests []reconcile.Request) {
		list := List(kind)
		if err := c.List(ctx, list, client.InNamespace(o.GetNamespace())); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to list objects", "kind", kind, "namespace", o.GetNamespace())
			return nil
		}
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	})
}

// Leave names the finalizers of an object under deletion. Muster sets and removes none.
func Leave(ctx context.Context, c client.Client, object *unstructured.Unstructured, now time.Time) error {
	if len(object.GetFinalizers()) == 0 {
		return nil
	}
	after := object.DeepCopy()
	SetCondition(after, now, kube.Condition(fleet.ConditionReady, false, reasons.Leaving, kube.HeldByFinalizers(object)))
	return client.IgnoreNotFound(kube.PatchStatus(ctx, c, object, after))
}

// Refuse reports a misfit in the conditions Ready and Accepted of the object.
func Refuse(ctx context.Context, c client.Client, object *unstructured.Unstructured, now time.Time, reason string, err error) error {
	after := object.DeepCopy()
	for _, name := range []string{fleet.ConditionReady, "Accepted"} {
		SetCondition(after, now, kube.Condition(name, false, reason, err.Error()))
	}
	return client.IgnoreNotFound(kube.PatchStatus(ctx, c, object, after))
}

// SetCondition sets a condition. Conditions of another form are replaced, and a status of another
// form stays.
func SetCondition(object *unstructured.Unstructured, now time.Time, condition fleet.Condition) {
	status := struct {
		Status struct {
			Conditions []fleet.Condition `json:"conditions"`
		} `json:"status"`
	}{}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &status)
	conditions := kube.SetCondition(status.Status.Conditions, now, condition)
	listed := make([]any, 0, len(conditions))
	for i := range conditions {
		if one, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i]); err == nil {
			listed = append(listed, one)
		}
	}
	_ = unstructured.SetNestedSlice(object.Object, listed, "status", "conditions")
}
