package drift

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// AddFormer adds the remaining objects of earlier revisions to the set. Helm deleted them, and a
// finalizer may hold them.
func (d *Detector) AddFormer(ctx context.Context, s *Set, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		key, err := d.keyOf(s.release, object)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return err
		}
		if slices.Contains(s.keys, key) || slices.Contains(s.former, key) {
			continue
		}
		there, err := d.isDeleting(ctx, s, key)
		if err != nil {
			return err
		}
		if there {
			s.former = append(s.former, key)
		}
	}
	return nil
}

// isDeleting reports whether a former object of the release still exists. It reads with the agent's
// own account, because the account of the release may have no right to a dropped kind.
func (d *Detector) isDeleting(ctx context.Context, s *Set, key Key) (bool, error) {
	found, err := d.cluster.Dynamic.Resource(key.query().GroupVersionResource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %s, which left the Bundle: %w", key, err)
	}
	return release.Belongs(s.release, found) && found.GetDeletionTimestamp() != nil, nil
}

// countFormer counts the remaining former objects, and forgets the others.
func (d *Detector) countFormer(ctx context.Context, s *Set, o *Observation) error {
	var still []Key
	for _, key := range s.former {
		deleting, err := d.isDeleting(ctx, s, key)
		if err != nil {
			return err
		}
		if !deleting {
			continue
		}
		still = append(still, key)
		former := modifiedStatus(key)
		former.Delete = true
		o.Counts.Orphaned++
		o.note(result{modified: former}, fleet.BundleDeploymentOptions{})
	}
	s.former = still
	return nil
}
