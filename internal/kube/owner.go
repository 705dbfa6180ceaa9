package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// taken is the error for an existing object of another owner.
type taken struct{ object, why string }

func (t *taken) Error() string {
	return fmt.Sprintf("%s exists and is not the hub's: %s; delete it if you do not need it", t.object, t.why)
}

// IsTaken reports whether an error means another owner of the object with this name.
func IsTaken(err error) bool {
	var t *taken
	return errors.As(err, &t)
}

// mine returns the existing object with the name of the desired one, if the hub created it for the
// same owner. The object is unstructured, because the client must read it from the API server and
// not from a cache.
func mine(ctx context.Context, c client.Client, desired client.Object) (client.Object, error) {
	gvk, err := apiutil.GVKForObject(desired, c.Scheme())
	if err != nil {
		return nil, err
	}
	have := &unstructured.Unstructured{}
	have.SetGroupVersionKind(gvk)
	if err := c.Get(ctx, client.ObjectKeyFromObject(desired), have); err != nil {
		return nil, err
	}
	if why := foreign(have, desired); why != "" {
		return nil, &taken{Describe(c.Scheme(), desired), why}
	}
	return have, nil
}

// foreign returns the reason why an existing object is not the desired one, or "" if the hub
// created it earlier. Its UID proves this if the desired object has one. So does an owner reference
// with the UID of a desired owner.
//
// Otherwise the label proves the hub as the creator. The kind and name in the owner references
// prove the owner, or an annotation for an owner in another namespace. An earlier owner of the same
// name counts as the same: its objects are being deleted or adopted.
func foreign(have, desired client.Object) string {
	switch desired.GetUID() {
	case "":
	case have.GetUID():
		return ""
	default:
		return "it was replaced"
	}
	for _, owner := range desired.GetOwnerReferences() {
		if slices.ContainsFunc(have.GetOwnerReferences(), func(is metav1.OwnerReference) bool { return is.UID == owner.UID }) {
			return ""
		}
	}
	if have.GetLabels()[fleet.LabelManaged] != "true" {
		return "it has no label " + fleet.LabelManaged + "=true"
	}
	for _, owner := range desired.GetOwnerReferences() {
		if !slices.ContainsFunc(have.GetOwnerReferences(), func(is metav1.OwnerReference) bool {
			return is.Name == owner.Name && IsOwner(is, kindOf(owner))
		}) {
			return fmt.Sprintf("%s %s does not own it", owner.Kind, owner.Name)
		}
	}
	for key, wanted := range desired.GetAnnotations() {
		if is, said := have.GetAnnotations()[key]; said && is != wanted {
			return fmt.Sprintf("its annotation %s is %q and not %q", key, is, wanted)
		}
	}
	return ""
}

// isOfEarlierOwner reports whether an existing object belongs to a deleted owner of the same kind
// and name as the desired owner. An object has a single controlling owner, so it cannot be handed
// over.
func isOfEarlierOwner(have, desired client.Object) bool {
	is, wanted := metav1.GetControllerOf(have), metav1.GetControllerOf(desired)
	return is != nil && wanted != nil && is.Name == wanted.Name && IsOwner(*is, kindOf(*wanted)) && is.UID != wanted.UID
}

// IsOwner reports whether an owner reference is to an object of a kind, in any version of its
// group.
func IsOwner(reference metav1.OwnerReference, kind schema.GroupKind) bool {
	return kindOf(reference) == kind
}

func kindOf(reference metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
}

// ControllerOf returns the controlling owner of an object if it is of a kind, in any version of its
// group, else nil.
func ControllerOf(o metav1.Object, kind schema.GroupKind) *metav1.OwnerReference {
	if owner := metav1.GetControllerOf(o); owner != nil && IsOwner(*owner, kind) {
		return owner
	}
	return nil
}
