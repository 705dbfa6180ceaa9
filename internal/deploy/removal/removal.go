// Package removal deletes delivered objects on a member; agents have no other way. Every deletion
// needs a Cause, and the UID of the inspected object. The mark of a release is the labels and
// annotations with its name.
//
// Its invariant: a cause is a fact verified by the caller, and an object is deleted only if it is
// still the inspected one.
package removal

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

// Cause is the reason for deleting an object.
type Cause string

const (
	// WorkGone means: an AppliedWork owns the object, and no other Work of the placement has it.
	// Either the member leaves, or the hub has confirmed: the Work is deleted, or no longer has the
	// object.
	WorkGone Cause = "WorkGone"
	// ReleaseGone means: the object has the mark of a release. The hub has confirmed the deletion of
	// the BundleDeployment, or the release has moved, or the member leaves.
	ReleaseGone Cause = "ReleaseGone"
	// LeftRelease means: the object has the mark of a release, but the deployed
	// revision no longer has it.
	LeftRelease Cause = "LeftRelease"
	// Replaced means: a changed field is immutable. The agent deletes and recreates the object. The
	// object holds no data.
	Replaced Cause = "Replaced"
	// HookRan means: a hook object remains from an earlier run. The next run, or its Helm delete
	// policy, requires its deletion.
	HookRan Cause = "HookRan"
	// Copied means: the object is a revision of a release, copied to the proper place of the history.
	Copied Cause = "Copied"
)

// Deleter deletes objects of one kind by their names.
type Deleter func(ctx context.Context, name string, options metav1.DeleteOptions) error

// Of returns a Deleter with a dynamic client.
func Of(objects dynamic.ResourceInterface) Deleter {
	return func(ctx context.Context, name string, options metav1.DeleteOptions) error {
		return objects.Delete(ctx, name, options)
	}
}

// Delete deletes the inspected object with its dependents. It returns a Conflict error of the API
// server if the object has another UID or, for Replaced, another resource version.
func Delete(ctx context.Context, deletes Deleter, found metav1.Object, cause Cause) error {
	uid, version, propagation := found.GetUID(), found.GetResourceVersion(), metav1.DeletePropagationBackground
	if uid == "" || cause == "" {
		return fmt.Errorf("%s stays: it was not looked at (UID %q), or there is no cause (%q)", found.GetName(), uid, cause)
	}
	proved := &metav1.Preconditions{UID: &uid}
	if cause == Replaced {
		proved.ResourceVersion = &version
	}
	return deletes(ctx, found.GetName(), metav1.DeleteOptions{Preconditions: proved, PropagationPolicy: &propagation})
}
