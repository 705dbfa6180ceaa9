package kube

import (
	"context"
	"encoding/json"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/naming"
)

// Verified identifies a state of objects: by the desired content, and by the UID and version of
// each object. The objects were as desired in that state. A cache of metadata with the same state
// proves that no client has changed, deleted or replaced one since. A controller then reads
// nothing.
//
// A controller keeps it in a Memory, and forgets it with the owner of the objects.
type Verified struct{ desired, versions string }

// Shown returns the cached state of objects with the desired content, and the metadata of the
// objects in the cache.
func Shown(ctx context.Context, c client.Client, desired any, objects ...client.Object) (Verified, []client.Object, error) {
	text, err := json.Marshal(desired)
	if err != nil {
		return Verified{}, nil, fmt.Errorf("encoding the desired content: %w", err)
	}
	var shown []client.Object
	for _, object := range objects {
		have := MetadataOf(c.Scheme())(object)
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), have); err == nil {
			shown = append(shown, have)
		} else if !apierrors.IsNotFound(err) {
			return Verified{}, nil, fmt.Errorf("reading %s: %w", Describe(c.Scheme(), object), err)
		}
	}
	return Verified{desired: naming.Digest(text)}.At(shown...), shown, nil
}

// At returns the state with the same desired content and the given objects, as read or written.
func (v Verified) At(objects ...client.Object) Verified {
	v.versions = ""
	for _, object := range objects {
		v.versions += string(object.GetUID()) + " " + object.GetResourceVersion() + "\n"
	}
	return v
}

// SameDesired reports whether two states have the same desired content.
func (v Verified) SameDesired(other Verified) bool { return v.desired == other.desired }

// SameObjects reports whether two states have the same objects in the same versions.
func (v Verified) SameObjects(other Verified) bool { return v.versions == other.versions }

// ReadRight reads a Role or a RoleBinding from the API server. It reports whether the object
// exists, and whether it grants the desired rights. The Role of a binding is immutable.
func ReadRight(ctx context.Context, live client.Reader, desired client.Object) (have client.Object, found, same bool, err error) {
	switch desired := desired.(type) {
	case *rbacv1.Role:
		role := &rbacv1.Role{}
		found, err = read(ctx, live, desired, role)
		return role, found, found && equality.Semantic.DeepEqual(role.Rules, desired.Rules), err
	case *rbacv1.RoleBinding:
		binding := &rbacv1.RoleBinding{}
		found, err = read(ctx, live, desired, binding)
		return binding, found, found && equality.Semantic.DeepEqual(binding.Subjects, desired.Subjects), err
	}
	return nil, false, false, fmt.Errorf("%T is no right", desired)
}

func read(ctx context.Context, live client.Reader, named, into client.Object) (bool, error) {
	err := live.Get(ctx, client.ObjectKeyFromObject(named), into)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %T %s: %w", named, client.ObjectKeyFromObject(named), err)
	}
	return err == nil, nil
}
