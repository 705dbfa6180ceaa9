package placement

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/placement/override"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
)

// overridden is what a member gets that overrides change, or that has it divided otherwise than the others.
type overridden struct {
	override.Resolved
	desired desiredWorks
	// problem is why the overrides cannot be applied: nothing is written to the member, which keeps what it has.
	problem string
}

// overrides returns the overrides that are for a placement and select something of it.
func (c *Controller) overrides(ctx context.Context, o observed) (override.Set, error) {
	var clusterwide placement.ClusterResourceOverrideList
	if err := c.Client.List(ctx, &clusterwide, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ClusterResourceOverrides: %w", err)
	}
	var namespaced placement.ResourceOverrideList
	if err := c.Client.List(ctx, &namespaced, client.InNamespace(o.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ResourceOverrides: %w", err)
	}
	all := make([]override.Override, 0, len(clusterwide.Items)+len(namespaced.Items))
	for i := range clusterwide.Items {
		all = append(all, override.OfCluster(&clusterwide.Items[i]))
	}
	for i := range namespaced.Items {
		all = append(all, override.OfNamespace(&namespaced.Items[i]))
	}
	return override.Choose(all, o.key, o.resources.Objects), nil
}

// override returns, by member namespace, what members get that is not as what the others get. Members that get the same share it.
func (o observed) override(result scheduling.Result, plain desiredWorks) map[string]overridden {
	if len(o.overrides) == 0 && len(o.otherHomes) == 0 {
		return nil
	}
	members, shared, common := map[string]overridden{}, map[string]overridden{}, plain.home()
	for _, d := range result.Decisions {
		if d.Member == nil || !d.Picked && o.current[d.Member.Namespace] == nil {
			continue
		}
		resolved := o.overrides.Resolve(override.Member{Name: d.Name, Labels: d.Member.Labels})
		other, elsewhere := o.otherHomes[d.Member.Namespace]
		if !resolved.Any() && !elsewhere {
			continue
		}
		at, key := other.home, resolved.Key+"\x00"+other.key
		if !elsewhere {
			at = common
		}
		if _, known := shared[key]; !known {
			shared[key] = o.applyOverrides(resolved, plain, at)
		}
		members[d.Member.Namespace] = shared[key]
	}
	return members
}

func (o observed) applyOverrides(resolved override.Resolved, desired desiredWorks, at home) overridden {
	result := overridden{Resolved: resolved, desired: desired}
	result.desired.overrides = map[string]string{}
	for key, hash := range map[string]string{
		placement.AnnotationClusterOverrides: resolved.ClusterHash, placement.AnnotationOverrides: resolved.NamespacedHash,
	} {
		if hash != "" {
			result.desired.overrides[key] = hash
		}
	}
	objects, problem := resolved.Apply(o.resources.Objects)
	if result.problem = problem; problem != "" {
		return result
	}
	var err error
	if result.desired.parts, err = pack(objects, at, maxManifests); err != nil {
		result.problem = err.Error()
	}
	return result
}

// desiredFor is what the member in a namespace gets.
func (d decision) desiredFor(namespace string) desiredWorks {
	if result, changed := d.overridden[namespace]; changed {
		return result.desired
	}
	return d.desired
}

// overriddenCondition is what the status says of the overrides of a member.
func (d decision) overriddenCondition(namespace string) condition {
	switch result, changed := d.overridden[namespace]; {
	case result.problem != "":
		return condition{metav1.ConditionFalse, reasonNotOverridden, result.problem}
	case !changed || !result.Any():
		return condition{metav1.ConditionTrue, reasonNoOverride, ""}
	}
	return condition{metav1.ConditionTrue, reasonOverridden, ""}
}
