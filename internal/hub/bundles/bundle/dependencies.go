package bundle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// indexDependsOn indexes Bundles by the names of the Bundles in spec.dependsOn. A Bundle with a
// selector there has anyDependency.
const (
	indexDependsOn = "dependsOn"
	anyDependency  = "*"
)

// maxCircle limits the Bundles in a message about a circle.
const maxCircle = 10

// endless is the reason why a Bundle waits for another one without end.
type endless struct{ reason, message string }

// dependencyKeys returns the values of indexDependsOn.
func dependencyKeys(o client.Object) (keys []string) {
	for _, ref := range o.(*fleet.Bundle).Spec.DependsOn {
		if ref.Name != "" && !slices.Contains(keys, ref.Name) {
			keys = append(keys, ref.Name)
		}
		if ref.Selector != nil && !slices.Contains(keys, anyDependency) {
			keys = append(keys, anyDependency)
		}
	}
	return keys
}

// findEndless returns the circle of dependsOn through a Bundle, or a missing Bundle among its
// dependencies. Dependencies are in its workspace.
func (c *Controller) findEndless(ctx context.Context, bundle *fleet.Bundle) (*endless, error) {
	if len(bundle.Spec.DependsOn) == 0 {
		return nil, nil
	}
	var missing []string
	circle, err := circleFrom(bundle.Name, func(name string) ([]string, error) {
		of := bundle
		if name != bundle.Name {
			of = &fleet.Bundle{}
			key := types.NamespacedName{Namespace: bundle.Namespace, Name: name}
			if err := c.Client.Get(ctx, key, of, client.UnsafeDisableDeepCopy); err != nil {
				return nil, client.IgnoreNotFound(err)
			}
		}
		return c.dependencies(ctx, of)
	})
	if err != nil {
		return nil, err
	}
	if circle != nil {
		shown := circle
		if len(shown) > maxCircle {
			shown = append(slices.Clone(circle[:maxCircle-1]), "...", bundle.Name)
		}
		return &endless{reasons.DependencyCircle, "spec.dependsOn is a circle; each Bundle waits for the next: " +
			strings.Join(shown, " → ")}, nil
	}
	for _, ref := range bundle.Spec.DependsOn {
		key := types.NamespacedName{Namespace: bundle.Namespace, Name: ref.Name}
		if ref.Name == "" || ref.Selector != nil || slices.Contains(missing, ref.Name) {
			continue
		}
		err := c.Client.Get(ctx, key, &fleet.Bundle{}, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Bundle %s: %w", key, err)
		}
		if apierrors.IsNotFound(err) {
			missing = append(missing, ref.Name)
		}
	}
	if len(missing) > 0 {
		return &endless{reasons.DependencyMissing, fmt.Sprintf("spec.dependsOn names no Bundle of workspace %s: %s", bundle.Namespace,
			strings.Join(missing[:min(len(missing), maxCircle)], ", "))}, nil
	}
	return nil, nil
}

// dependencies returns the names of a Bundle's dependencies.
func (c *Controller) dependencies(ctx context.Context, bundle *fleet.Bundle) (names []string, err error) {
	for _, ref := range bundle.Spec.DependsOn {
		if ref.Name != "" {
			names = append(names, ref.Name)
		}
		if ref.Selector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
		if err != nil {
			continue // the agent reports it
		}
		var list fleet.BundleList
		if err := c.Client.List(ctx, &list, client.InNamespace(bundle.Namespace), client.MatchingFields{indexCluster: anyCluster},
			client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the Bundles of %s: %w", bundle.Namespace, err)
		}
		for i := range list.Items {
			if name := list.Items[i].Name; name != bundle.Name { // an agent never waits for the Bundle itself
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// circleFrom returns the shortest path from a name back to itself, with the name at both ends; nil
// if there is none.
func circleFrom(name string, next func(string) ([]string, error)) ([]string, error) {
	cameFrom, queue := map[string]string{}, []string{name}
	for len(queue) > 0 {
		current := queue[0]
		queue = queue[1:]
		names, err := next(current)
		if err != nil {
			return nil, err
		}
		for _, to := range names {
			if to == name {
				path := []string{name}
				for ; current != name; current = cameFrom[current] {
					path = append(path, current)
				}
				path = append(path, name)
				slices.Reverse(path)
				return path, nil
			}
			if _, seen := cameFrom[to]; !seen {
				cameFrom[to] = current
				queue = append(queue, to)
			}
		}
	}
	return nil, nil
}

// onDependency enqueues the direct and indirect dependents of a Bundle, after a change that may
// open or close a circle.
func (c *Controller) onDependency(ctx context.Context, before, after *fleet.Bundle, q controller.Queue) {
	if before != nil && after != nil && maps.Equal(before.Labels, after.Labels) &&
		equality.Semantic.DeepEqual(before.Spec.DependsOn, after.Spec.DependsOn) {
		return
	}
	var queue []*fleet.Bundle
	for _, bundle := range []*fleet.Bundle{before, after} {
		if bundle != nil && clusterOf(bundle) == anyCluster {
			queue = append(queue, bundle)
		}
	}
	seen := map[string]bool{}
	for len(queue) > 0 {
		for _, dependent := range c.dependents(ctx, queue[0]) {
			if !seen[dependent.Name] {
				seen[dependent.Name] = true
				queue = append(queue, &dependent)
				enqueue(q, controller.Requests(&dependent))
			}
		}
		queue = queue[1:]
	}
}

// dependents returns the Bundles with a Bundle in their spec.dependsOn.
func (c *Controller) dependents(ctx context.Context, bundle *fleet.Bundle) (found []fleet.Bundle) {
	var named, selecting fleet.BundleList
	workspace := client.InNamespace(bundle.Namespace)
	c.list(ctx, &named, workspace, client.MatchingFields{indexDependsOn: bundle.Name})
	c.list(ctx, &selecting, workspace, client.MatchingFields{indexDependsOn: anyDependency})
	found = named.Items
	for _, other := range selecting.Items {
		if slices.ContainsFunc(other.Spec.DependsOn, func(ref fleet.BundleRef) bool {
			selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
			return err == nil && selector.Matches(labels.Set(bundle.Labels))
		}) {
			found = append(found, other)
		}
	}
	return found
}
