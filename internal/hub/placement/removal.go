package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/naming"
)

// reasonUnfounded: something that was selected is missing, and nothing is known by which it may be removed from members.
const reasonUnfounded = "RemovalUnfounded"

// requireCauses looks at what was selected and is not any more. If an object is gone from the selection and no cause is known by which it may be removed
// from members, the whole selection is not acted on, until it is back, a cause is found, or somebody confirms the removal.
func (c *Controller) requireCauses(ctx context.Context, s genericPlacement, o *observed) {
	lost := o.lost()
	if o.selected.Waiting || len(lost) == 0 || o.selectionProblem() != (condition{}) || s.GetAnnotations()[placement.AnnotationConfirmRemoval] == o.confirmation(lost) {
		return
	}
	causes := selection.NewCauses(c.Live, s.key, s.spec.ResourceSelectors)
	var unknown []string
	more := 0
	for i, was := range lost {
		if len(unknown) == maxListed {
			more = len(lost) - i
			break
		}
		if cause, why := causes.Of(ctx, was); cause == selection.NoCause {
			unknown = append(unknown, nameOf(was)+": "+clip(why))
		}
	}
	if len(unknown) == 0 {
		return
	}
	message := andMore(list(unknown), more)
	if unread := o.selected.Unread; len(unread) > 0 {
		message += "; the hub cannot read " + list(unread)
	}
	reason := reasonUnfounded
	if withheld := o.withheld(); withheld != (condition{}) {
		reason, message = reasonWithheld, withheld.message
	}
	o.unfounded = condition{metav1.ConditionFalse, reason, fmt.Sprintf("%s%s; to have it removed from members all the same, kubectl annotate --overwrite%s %s=%s",
		message, placedStays, objectOf(s), placement.AnnotationConfirmRemoval, o.confirmation(lost))}
}

// lost returns what was selected and is not any more: by the status, and by the Works if the status does not list everything.
func (o observed) lost() (lost []placement.ResourceIdentifier) {
	selected := map[string]bool{}
	for _, r := range o.selected.Objects {
		selected[identity(r.GetKind(), r.GetAPIVersion(), r.GetNamespace(), r.GetName())] = true
	}
	for _, was := range o.before.SelectedResources {
		if !selected[identity(was.Kind, metav1.GroupVersion{Group: was.Group, Version: was.Version}.String(), was.Namespace, was.Name)] {
			lost = append(lost, was)
		}
	}
	if listsAll(o.before.SelectedResources) {
		return lost
	}
	for _, r := range o.resources.Objects {
		selected[identity(r.GetKind(), r.GetAPIVersion(), r.GetNamespace(), r.GetName())] = true
	}
	for id := range o.home {
		if !selected[id] {
			lost = append(lost, parseIdentity(id))
		}
	}
	slices.SortFunc(lost, func(a, b placement.ResourceIdentifier) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return lost
}

// confirmation is what the annotation says to have just these objects removed, and once.
func (o observed) confirmation(lost []placement.ResourceIdentifier) string {
	var names strings.Builder
	fmt.Fprintln(&names, o.before.ObservedResourceIndex)
	for _, was := range lost {
		fmt.Fprintln(&names, was.Group, nameOf(was))
	}
	return naming.Digest([]byte(names.String()))[:8]
}
