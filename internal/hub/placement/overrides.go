package placement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/placement/override"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxOverridden limits the total bytes of the overridden copies for members: each copy is created
// and hashed at every reconcile of the placement.
const maxOverridden = 256 << 20

// overridden is a member's version of the selection: changed by overrides, or divided differently
// from other members.
type overridden struct {
	override.Resolved
	// desired has no manifests: each member would need a copy of the selection. complete creates
	// the manifests of one member.
	desired desiredWorks
	at      otherHome
	// problem is the reason why the overrides cannot be applied: nothing is written to the
	// member, and its workload stays. reason is the reason of the condition.
	problem, reason string
}

// overrides returns the effective overrides of a placement with a match among its objects.
func (c *Controller) overrides(ctx context.Context, o *observed) (override.Set, error) {
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
	o.unmatched = override.Unmatched(all, o.key, o.resources.Objects)
	return c.reviewOverrides(ctx, override.Choose(all, o.key, o.resources.Objects), o)
}

// override returns the members, by namespace, with another version than the common one. Members
// with the same version share it.
func (o observed) override(result scheduling.Result, plain desiredWorks) map[string]overridden {
	if len(o.overrides) == 0 && len(o.otherHomes) == 0 {
		return nil
	}
	members, shared, common, bytes := map[string]overridden{}, map[string]overridden{}, plain.home(), plain.bytes()
	for _, d := range result.Decisions {
		if d.Member == nil || !d.Picked && o.current[d.Member.Namespace] == nil {
			continue
		}
		resolved := o.overrides.Resolve(override.Member{Name: d.Name, Labels: d.Member.Labels})
		other, elsewhere := o.otherHomes[d.Member.Namespace]
		if !resolved.Any() && !elsewhere {
			continue
		}
		if !elsewhere {
			other = otherHome{home: common}
		}
		key := fmt.Sprint(resolved.Key, "\x00", other.key, "\x00", other.fixed)
		if _, known := shared[key]; !known {
			if tooMany(len(shared)+1, bytes) {
				shared[key] = overridden{Resolved: resolved, desired: plain, reason: reasons.OverriddenFailed, problem: fmt.Sprintf(
					"overrides make another copy of the selected objects, which have %d KiB, for each of more than %d members: "+
						"have them select less by a placement of its own", bytes>>10, len(shared))}
			} else {
				shared[key] = o.applyOverrides(resolved, plain, other)
			}
		}
		members[d.Member.Namespace] = shared[key]
	}
	return members
}

func (o observed) applyOverrides(resolved override.Resolved, desired desiredWorks, place otherHome) overridden {
	result := overridden{Resolved: resolved, desired: desired, at: place, reason: cmp.Or(resolved.Reason, reasons.OverriddenFailed)}
	result.desired.overrides = map[string]string{}
	for key, hash := range map[string]string{
		placement.AnnotationClusterOverrides: resolved.ClusterHash, placement.AnnotationOverrides: resolved.NamespacedHash,
		placement.AnnotationOverriddenBy: strings.Join(resolved.IDs, " "),
	} {
		if hash != "" {
			result.desired.overrides[key] = hash
		}
	}
	objects, problem := resolved.Apply(o.resources.Objects)
	if result.problem = problem; problem != "" {
		return result
	}
	parts, err := pack(objects, place.home, maxManifests, !place.fixed)
	if err != nil {
		result.problem = err.Error()
	}
	if full := (*fullError)(nil); errors.As(err, &full) {
		result.reason = reasons.WorkFull
	}
	for i := range parts {
		parts[i] = part{digest: parts[i].digest}
	}
	result.desired.parts = parts
	return result
}

// tooMany reports whether this number of copies of this size exceeds the limit for one placement.
func tooMany(copies, bytes int) bool { return copies*bytes > maxOverridden }

// complete returns the desired Works of the member in a namespace, with the manifests.
func (o observed) complete(d decision, namespace string) (desiredWorks, error) {
	result, changed := d.overridden[namespace]
	if !changed || result.problem != "" {
		return d.desiredFor(namespace), nil
	}
	objects, problem := result.Apply(o.resources.Objects)
	if problem != "" {
		return desiredWorks{}, errors.New(problem)
	}
	var err error
	result.desired.parts, err = pack(objects, result.at.home, maxManifests, !result.at.fixed)
	return result.desired, err
}

// bytes returns the size of the manifests.
func (d desiredWorks) bytes() (sum int) {
	for _, p := range d.parts {
		for _, m := range p.manifests {
			sum += len(m.Raw)
		}
	}
	return sum
}

// desiredFor returns the desired Works of the member in a namespace.
func (d decision) desiredFor(namespace string) desiredWorks {
	if result, changed := d.overridden[namespace]; changed {
		return result.desired
	}
	return d.desired
}

// idleOverrides names the overrides for the placement without a matching resource or picked member.
func (o observed) idleOverrides(d decision) string {
	var members []override.Member
	for _, one := range d.result.Decisions {
		if one.Member != nil && one.Picked {
			members = append(members, override.Member{Name: one.Name, Labels: one.Member.Labels})
		}
	}
	all := slices.Concat(o.unmatched, o.overrides.Unselected(members))
	return kube.JoinTexts(all[:min(len(all), maxIdle)], len(all))
}

// maxIdle is the maximum number of such overrides in a message.
const maxIdle = 3

// overriddenCondition returns the condition for the overrides of a member.
func (d decision) overriddenCondition(namespace string) condition {
	switch result, changed := d.overridden[namespace]; {
	case result.problem != "":
		return condition{metav1.ConditionFalse, result.reason, result.problem}
	case !changed || !result.Any():
		return condition{metav1.ConditionTrue, reasons.NoOverrideSpecified, ""}
	}
	return condition{metav1.ConditionTrue, reasons.OverriddenSucceeded, ""}
}
