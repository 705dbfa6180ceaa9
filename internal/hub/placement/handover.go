package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// divide divides the selected objects into parts. If a member's agent does not hand objects over,
// the member keeps each object in its Work. If no member's agent does, the placement reports the
// full Work.
func (c *Controller) divide(ctx context.Context, o *observed) error {
	var err error
	if o.parts, err = pack(o.resources.Objects, o.home, maxManifests, true); err != nil {
		return err
	}
	moves, able := o.home.leaves(o.parts), false
	for namespace := range o.current {
		other, elsewhere := o.otherHomes[namespace]
		if !moves && !elsewhere {
			continue
		}
		handsOver, err := c.handsOver(ctx, namespace)
		if err != nil {
			return err
		}
		if able = able || handsOver; handsOver {
			continue
		}
		if !elsewhere {
			other.home = o.home
		}
		other.fixed = true
		o.otherHomes[namespace] = other
	}
	if !moves || able {
		return nil
	}
	var full *fullError
	if o.parts, err = pack(o.resources.Objects, o.home, maxManifests, false); errors.As(err, &full) {
		o.full, o.parts = full.Error(), []part{{}}
		return nil
	}
	return err
}

// handsOver reports whether the agent of a member namespace hands objects over between Works.
func (c *Controller) handsOver(ctx context.Context, namespace string) (bool, error) {
	var reports clusterv1beta1.InternalMemberClusterList
	if err := c.Client.List(ctx, &reports, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("reading the features of the agent in member namespace %s: %w", namespace, err)
	}
	return slices.ContainsFunc(reports.Items, func(r clusterv1beta1.InternalMemberCluster) bool { return reportsHandOver(&r) }), nil
}

func reportsHandOver(report *clusterv1beta1.InternalMemberCluster) bool {
	return slices.Contains(report.Status.Features, clusterv1beta1.FeatureHandOver)
}

// onHandOver enqueues the placements of a member after its agent started or stopped to hand objects
// over.
func (c *Controller) onHandOver(ctx context.Context, namespace string, q controller.Queue) {
	var works placement.WorkList
	if err := c.Client.List(ctx, &works, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		c.enqueueAll(q)
		return
	}
	parents := map[types.NamespacedName]bool{}
	for i := range works.Items {
		if key, ok := parentOf(&works.Items[i]); ok && !parents[key] {
			parents[key] = true
			c.enqueueSoon(q, key)
		}
	}
}
