// Package removal is the only way for an agent to delete delivered objects: with a cause, and by
// the UID of the inspected object.
//
// Its invariant: a cause is a fact that the caller has verified, and an object that replaced the
// inspected one is not deleted.
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
	// WorkGone means: an AppliedWork owns the object, and no other Work of the placement has it. The
	// hub has confirmed that the Work is deleted or no longer has the object, or the member leaves.
	WorkGone Cause = "WorkGone"
	// ReleaseGone means: the object has the mark of a release. The hub has confirmed that the
	// BundleDeployment is deleted, or the release has moved, or the member leaves.
	ReleaseGone Cause = "ReleaseGone"
	// LeftRelease means: the object has the mark of a release, but the deployed
	// revision no longer has it.
	LeftRelease Cause = "LeftRelease"
	// Replaced means: a field of the object cannot be changed. The object holds no data, may be
	// created again, and is.
	Replaced Cause = "Replaced"
	// HookRan means: the object is an earlier run of a hook of a release. It makes way for the next
	// run, or has ended, and its delete policy deletes it.
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

// Delete deletes the inspected object with its dependents. Another object of its name is a
// Conflict, and so is a later version of an object to be replaced. The error comes from the API
// server.
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
