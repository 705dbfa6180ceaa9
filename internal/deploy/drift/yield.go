package drift

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/muster-fleet/muster/internal/delivery/manifest"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// scaling describes the replica counts to accept as unchanged.
type scaling struct {
	// scaler has the bounds of the autoscaler of the object; nil if it was not looked up.
	scaler *manifest.Bounds
	// free is set if the manifest names no number.
	free bool
	// taken is set if the manifest currently has values from the member; they may change.
	taken bool
}

// outdated reports whether an object must be compared again. A user owns each field after a manual
// edit, and the field digest leaves further edits of the field out. An autoscaler owns the number
// of replicas.
func (r result) outdated(is summary) bool {
	rescaled := r.replicas != is.replicas && !r.scaling.free && !r.scaling.scaler.Hold(is.replicas)
	return r.fields != is.fields || rescaled || r.modified != nil && r.content != is.content
}

// yielding returns a manifest without the fields owned by others.
func yielding(ctx context.Context, member dynamic.Interface, desired, found *unstructured.Unstructured) (*unstructured.Unstructured,
	scaling, error) {
	scale := scaling{free: manifest.Replicas(desired) == manifest.NoReplicas}
	if manifest.Rescaled(desired, found) {
		scalers, err := applied.Scalers(ctx, member, found.GetNamespace())
		if err != nil {
			return nil, scale, err
		}
		scale.scaler = manifest.BoundsOf(scalers, desired)
	}
	left := desired.DeepCopy()
	scale.taken = manifest.Yield(left, found, release.FieldManager, scale.scaler, manifest.Ignored{})
	return left, scale, nil
}

// revert resets one object to its manifest. With force, it replaces an object with an immutable
// field.
func (d *Detector) revert(ctx context.Context, s *Set, key Key, objects dynamic.ResourceInterface, desired *unstructured.Unstructured,
	force bool) error {
	whole := desired
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		left := desired
		found, err := objects.Get(ctx, key.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("reading %s: %w", key, err)
		default:
			var is scaling
			if left, is, err = yielding(ctx, d.cluster.Dynamic, desired, found); err != nil {
				return err
			}
			if is.taken {
				left.SetResourceVersion(found.GetResourceVersion())
			}
			whole = desired.DeepCopy()
			manifest.Fill(whole, found, is.scaler, manifest.Ignored{})
		}
		_, err = release.Apply(ctx, objects, left)
		return err
	})
	if err != nil && force {
		err = replace(ctx, s.release, objects, whole, err)
	}
	return err
}
