// Package kube has the functions of controllers for writing to the Kubernetes API, and for
// recognizing their own writes in the cache.
//
// Its invariant: every function can be called again after a crash at any line and has the same
// effect.
package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// FieldOwner is the field manager of all writes of the hub.
const FieldOwner = client.FieldOwner("muster-hub")

// Ensure makes each object exist as given. It creates a new object with a single write, and applies
// to an existing one of the same owner server-side. An object of an earlier owner of the same name
// is about to be deleted with its owner: Ensure deletes and creates it again.
//
// Ensure leaves another owner's object alone, and IsTaken is true for the error. On return the
// objects are as the server answered.
func Ensure(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		desired := object.DeepCopyObject().(client.Object)
		err := c.Create(ctx, object, FieldOwner)
		if apierrors.IsAlreadyExists(err) {
			var have client.Object
			if have, err = mine(ctx, c, desired); err == nil && isOfEarlierOwner(have, desired) {
				if err = DeleteByUID(ctx, c, have); err == nil {
					err = c.Create(ctx, object, FieldOwner)
				}
			} else if err == nil {
				err = apply(ctx, c, desired, object)
			}
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w", Describe(c.Scheme(), object), err)
		}
	}
	return nil
}

// EnsureOver is Ensure for an object whose current state was just read: no UID if there is none. It
// writes once, and returns a conflict if the object was replaced since.
func EnsureOver(ctx context.Context, c client.Client, have, desired client.Object) error {
	if have.GetUID() == "" || foreign(have, desired) != "" || isOfEarlierOwner(have, desired) {
		return Ensure(ctx, c, desired)
	}
	desired.SetUID(have.GetUID())
	if err := apply(ctx, c, desired, desired); err != nil {
		return fmt.Errorf("writing %s: %w", Describe(c.Scheme(), desired), err)
	}
	return nil
}

// Missing returns the nonexistent objects. It reads each in the given form, because a cache may
// hold only the metadata of a kind, or only whole objects.
func Missing(ctx context.Context, reader client.Reader, form func(client.Object) client.Object,
	objects ...client.Object) ([]client.Object, error) {
	var missing []client.Object
	for _, object := range objects {
		if err := reader.Get(ctx, client.ObjectKeyFromObject(object), form(object)); apierrors.IsNotFound(err) {
			missing = append(missing, object)
		} else if err != nil {
			return nil, fmt.Errorf("reading %T %s: %w", object, client.ObjectKeyFromObject(object), err)
		}
	}
	return missing, nil
}

// Whole returns the complete form of an object.
func Whole(object client.Object) client.Object { return object.DeepCopyObject().(client.Object) }

// MetadataOf returns a function for the form of an object with only its metadata.
func MetadataOf(scheme *runtime.Scheme) func(client.Object) client.Object {
	return func(object client.Object) client.Object {
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			panic(err) // a mistake in the program: the kind is unknown
		}
		return Metadata(gvk)
	}
}

// apply brings an existing object to the desired state and reads the answer into result.
func apply(ctx context.Context, c client.Client, desired, result client.Object) error {
	gvk, err := apiutil.GVKForObject(desired, c.Scheme())
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), FieldOwner, client.ForceOwnership); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, result)
}

// Delete deletes each existing object of the hub for the same owner. It ignores missing objects,
// and leaves other owners' objects alone.
func Delete(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		have, err := mine(ctx, c, object)
		if apierrors.IsNotFound(err) || IsTaken(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("deleting %s: %w", Describe(c.Scheme(), object), err)
		}
		if err := DeleteByUID(ctx, c, have); err != nil {
			return err
		}
	}
	return nil
}

// DeleteByUID deletes the object with the UID of the given one, and no new object of the same name.
// A missing object is no error.
func DeleteByUID(ctx context.Context, c client.Client, object client.Object) error {
	uid := object.GetUID()
	if err := c.Delete(ctx, object, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", Describe(c.Scheme(), object), err)
	}
	return nil
}

// Patch writes the difference between two versions of an object. It fails with a conflict if
// another client has written the object since before was read.
func Patch(ctx context.Context, c client.Client, before, after client.Object) error {
	return c.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), FieldOwner)
}

// PatchStatus writes the difference between before and after to the status of after, if there is
// one. It fails with a conflict if another client has written the object since before was read. A
// patch replaces lists such as conditions as a whole.
func PatchStatus(ctx context.Context, c client.Client, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) { // the usual case, and far cheaper than comparing both as JSON
		return nil
	}
	patch, err := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}).Data(after)
	if err != nil {
		return fmt.Errorf("comparing the status of %s: %w", Describe(c.Scheme(), after), err)
	}
	if string(patch) == fmt.Sprintf(`{"metadata":{"resourceVersion":%q}}`, before.GetResourceVersion()) {
		return nil
	}
	if err := c.Status().Patch(ctx, after, client.RawPatch(types.MergePatchType, patch), FieldOwner); err != nil {
		return &StatusError{after, fmt.Errorf("writing the status of %s: %w", Describe(c.Scheme(), after), err)}
	}
	return nil
}

// Annotate sets annotations of an object; nil removes one. It fails with a conflict if the object
// of this name has another UID.
func Annotate(ctx context.Context, c client.Client, o client.Object, values map[string]any, options ...client.PatchOption) error {
	return PatchMetadata(ctx, c, o, "annotations", values, options...)
}

// PatchMetadata sets annotations or labels of an object; nil removes one. It fails with a conflict
// if the object of this name has another UID.
func PatchMetadata(ctx context.Context, c client.Client, o client.Object, field string, values map[string]any,
	options ...client.PatchOption) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.GetUID(), field: values}})
	if err != nil {
		return fmt.Errorf("encoding %s of %s: %w", field, Describe(c.Scheme(), o), err)
	}
	return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), options...)
}

// StatusError is the error of a failed write of a status.
type StatusError struct {
	Object client.Object
	err    error
}

func (e *StatusError) Error() string { return e.err.Error() }
func (e *StatusError) Unwrap() error { return e.err }

// Lasts reports whether the API server refuses the status for its content, and would refuse it
// again.
func (e *StatusError) Lasts() bool {
	return apierrors.IsInvalid(e.err) || apierrors.IsForbidden(e.err) || apierrors.IsBadRequest(e.err) ||
		apierrors.IsRequestEntityTooLargeError(e.err) || strings.Contains(e.err.Error(), "request is too large")
}

// Describe names an object for people: kind, namespace and name.
func Describe(scheme *runtime.Scheme, object client.Object) string {
	kind := fmt.Sprintf("%T", object)
	if gvk, err := apiutil.GVKForObject(object, scheme); err == nil {
		kind = gvk.Kind
	}
	return Name(kind, object.GetNamespace(), object.GetName())
}

// CoreMetadata returns an object for only the metadata of a kind of the core group.
func CoreMetadata(kind string) *metav1.PartialObjectMetadata {
	return Metadata(corev1.SchemeGroupVersion.WithKind(kind))
}

// Metadata returns an object for only the metadata of a kind.
func Metadata(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(gvk)
	return metadata
}
