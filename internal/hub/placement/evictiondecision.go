package placement

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
)

// decideEviction is pure: it has neither client nor clock. Both conditions are final, and the
// second counts only if the first is True.
func decideEviction(o observedEviction) (valid, executed condition) {
	if why := o.invalid(); why != "" {
		return condition{metav1.ConditionFalse, placement.ReasonEvictionInvalid, why}, condition{}
	}
	valid = condition{metav1.ConditionTrue, placement.ReasonEvictionValid, "the eviction is valid"}
	begun := slices.ContainsFunc(o.works, func(w *placement.Work) bool { return w.Annotations[placement.AnnotationEvicted] == string(o.uid) })
	if begun || o.wasValid && len(o.works) == 0 {
		return valid, condition{metav1.ConditionTrue, placement.ReasonEvictionExecuted,
			"the resources of the placement are being removed from the member"}
	}
	if why := o.blocked(); why != "" {
		return valid, condition{metav1.ConditionFalse, placement.ReasonEvictionNotExecuted, why}
	}
	message := "the resources of the placement are being removed from the member; no ClusterResourcePlacementDisruptionBudget bounds that"
	if o.budget != nil {
		message = fmt.Sprintf("the resources of the placement are being removed from the member; before, %d of %d were available",
			o.totalAvailable, o.total)
	}
	return valid, condition{metav1.ConditionTrue, placement.ReasonEvictionExecuted, message}
}

// invalid returns the reason why there is nothing to evict; "" if there is.
func (o observedEviction) invalid() string {
	name := "ClusterResourcePlacement " + o.spec.PlacementName
	switch {
	case o.placement == nil:
		return fmt.Sprintf("there is no %s; create another eviction when there is", name)
	case o.placementDeleting:
		return name + " is being deleted, and its resources are being removed from all members"
	case o.paused && !o.wasValid:
		return fmt.Sprintf("%s or member %s is paused or quarantined, and nothing changes: %s, or muster quarantine %s --undo", name,
			o.spec.ClusterName, membership.Unpause("NAME"), o.spec.ClusterName)
	case placementType(o.placement) == placement.PickFixed:
		return fmt.Sprintf("%s picks members by their names (PickFixed): take %s out of its spec.policy.clusterNames", name, o.spec.ClusterName)
	case len(o.works) == 0 && !o.picked && !o.wasValid:
		return fmt.Sprintf("%s has not picked member %s", name, o.spec.ClusterName)
	case o.drains && o.stays != "" && !o.wasValid:
		return name + " stays: " + o.stays
	}
	return ""
}

// stays returns the reason why a drain leaves a placement on a member; "" if another member takes
// it.
func (e evictor) stays(spec *placement.PlacementSpec, members []*scheduling.Member, current map[string]*currentWorks, name string) string {
	index := slices.IndexFunc(members, func(m *scheduling.Member) bool { return m.Name == name })
	policy, err := scheduling.Compile(spec.Policy, "")
	switch {
	case index < 0:
		return fmt.Sprintf("there is no member %s that placements may pick", name)
	case !members[index].Cordoned:
		return fmt.Sprintf("member %s is not cordoned", name)
	case placementType(spec) != placement.PickN:
		return "it picks all members (PickAll), so no other member takes its place"
	case isStaged(spec):
		return "only staged update runs move it (strategy External)"
	case err != nil:
		return err.Error()
	}
	bound := map[string]bool{}
	for namespace, w := range current {
		bound[namespace] = !w.deleting && !e.memory.evicted(w)
	}
	if !policy.Replaces(members, bound, members[index]) {
		return "no other member qualifies now; status.obstacles of the placement has the reasons"
	}
	return ""
}

// blocked returns the reason why a valid eviction must not be executed; "" if it may be.
func (o observedEviction) blocked() string {
	if len(o.works) == 0 || o.worksDeleting {
		return fmt.Sprintf("the placement has nothing on member %s yet, or is being removed from it", o.spec.ClusterName)
	}
	if o.budget == nil || o.budget.MaxUnavailable == nil && o.budget.MinAvailable == nil {
		return o.blockedByStrategy()
	}
	picksAll := placementType(o.placement) != placement.PickN
	if picksAll && (o.budget.MaxUnavailable != nil || o.budget.MinAvailable.Type == intstr.String) {
		return fmt.Sprintf("ClusterResourcePlacementDisruptionBudget %s is misconfigured: for a PickAll it can have only minAvailable, as a "+
			"number",
			o.spec.PlacementName)
	}
	if !o.available {
		return "" // its eviction makes nothing unavailable
	}
	desired := o.total
	if !picksAll && o.placement.Policy.NumberOfClusters != nil {
		desired = int(*o.placement.Policy.NumberOfClusters)
	}
	bound, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(o.budget.MaxUnavailable, o.budget.MinAvailable), desired, true)
	least := bound
	if o.budget.MaxUnavailable != nil {
		least = desired - bound
	}
	if err == nil && o.totalAvailable-1 >= least {
		return ""
	}
	return fmt.Sprintf("ClusterResourcePlacementDisruptionBudget %s does not allow it: availablePlacements: %d, totalPlacements: %d",
		o.spec.PlacementName, o.totalAvailable, o.total)
}

// blockedByStrategy returns the reason why a drain without a budget waits: it makes no more members
// unavailable than a rollout does.
func (o observedEviction) blockedByStrategy() string {
	if !o.drains || !o.available {
		return ""
	}
	desired := o.total
	if policy := o.placement.Policy; policy != nil && policy.NumberOfClusters != nil {
		desired = int(*policy.NumberOfClusters)
	}
	maxUnavailable, _ := limits(o.placement.Strategy.RollingUpdate, desired)
	if o.totalAvailable-1 >= desired-maxUnavailable {
		return ""
	}
	return fmt.Sprintf("maxUnavailable of the placement's strategy does not allow it: %d of %d members are available",
		o.totalAvailable, desired)
}

// placementType returns the placement type of a placement.
func placementType(spec *placement.PlacementSpec) placement.PlacementType {
	if spec.Policy == nil {
		return placement.PickAll
	}
	return cmp.Or(spec.Policy.PlacementType, placement.PickAll)
}
