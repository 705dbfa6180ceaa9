// Package removal is the one way in which an agent deletes what was delivered to its member: with a cause,
// and by the UID of the object that was looked at.
//
// Its invariant: a cause is a fact, of which the caller has made sure, and an object that has taken the
// place of the one that was looked at is not deleted. Helm itself deletes the hooks of a release that is
// deployed or removed.
package removal

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

// Cause is why an object is deleted.
type Cause string

const (
	// WorkGone says that an AppliedWork owns the object; the hub has confirmed that the Work is deleted, or has it not any
	// more, or the member leaves, and no other Work of the placement has it.
	WorkGone Cause = "WorkGone"
	// ReleaseGone says that the object carries the mark of a release; the hub has confirmed that the BundleDeployment is
	// deleted, or the release has moved, or the member leaves.
	ReleaseGone Cause = "ReleaseGone"
	// LeftRelease says that the object carries the mark of a release, the revision of which that was deployed has it not.
	LeftRelease Cause = "LeftRelease"
	// Replaced says that a field of the object cannot be changed; it holds no data, may be created again, and is.
	Replaced Cause = "Replaced"
	// Copied says that the object is a revision of a release, which was copied to where the history belongs.
	Copied Cause = "Copied"
)

// Deleter deletes objects of one kind by their names.
type Deleter func(ctx context.Context, name string, options metav1.DeleteOptions) error

// Of deletes by a dynamic client.
func Of(objects dynamic.ResourceInterface) Deleter {
	return func(ctx context.Context, name string, options metav1.DeleteOptions) error {
		return objects.Delete(ctx, name, options)
	}
}

// Delete deletes the object that was found, and what it owns. Any other of its name, and a later version of one
// that is to be replaced, is a Conflict. The error is that of the API server.
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
