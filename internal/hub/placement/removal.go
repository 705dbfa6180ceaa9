package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// maxRemoved limits the objects in a message about a removal.
const maxRemoved = 10

// requireCauses checks the objects that have left the selection. If an object left the selection
// without a known cause, the hub does not act on the whole selection. It waits until the object is
// back, a cause is found, or a user confirms the removal. It also waits if the labels of a
// Namespace would remove a large part of the placement.
func (c *Controller) requireCauses(ctx context.Context, s genericPlacement, o *observed) {
	if o.selected.Waiting || hashParts(o.parts) == o.before.ResourceHash { // earlier versions had their causes
		return
	}
	lost := o.lost()
	confirmed := s.GetAnnotations()[placement.AnnotationConfirmRemoval] == o.confirmation(lost)
	if len(lost) == 0 || confirmed || o.selectionProblem() != (condition{}) {
		return
	}
	causes := selection.NewCauses(c.Live, s.key, s.spec.ResourceSelectors)
	var unknown []string
	more, relabelled, namespace := 0, 0, ""
	for i, was := range lost {
		if len(unknown) == maxListed {
			more = len(lost) - i
			break
		}
		if o.withholds(was) {
			unknown = append(unknown, nameOf(was)+" is in an envelope")
			continue // its existence on the hub proves nothing
		}
		switch cause, why := causes.Of(ctx, was); cause {
		case selection.NoCause:
			unknown = append(unknown, nameOf(was)+": "+clip(why))
		case selection.NamespaceLabelsChanged:
			relabelled, namespace = relabelled+1, was.Namespace
		default: // a cause for a removal
		}
	}
	message := andMore(list(unknown), more)
	if len(unknown) == 0 {
		if !removal.Many(relabelled, len(lost)+len(o.selected.Objects), c.Config.Current().RemovalShare) {
			return
		}
		message = fmt.Sprintf("%d objects are there and unchanged, and would be removed because the labels of their Namespace %s have changed",
			relabelled, namespace)
	}
	reason := reasons.RemovalUnfounded
	if withheld := o.withheld(); withheld != (condition{}) {
		reason, message = withheld.reason, withheld.message
	}
	how := fmt.Sprintf("%s; to have %s removed from members all the same, muster confirm placements %s, or "+
		"kubectl annotate --overwrite%s %s=%s",
		placedStays, namesOf(lost), strings.TrimPrefix(s.key.String(), "/"), objectOf(s), placement.AnnotationConfirmRemoval,
		o.confirmation(lost))
	o.unfounded = condition{metav1.ConditionFalse, reason, kube.Clip(message, kube.MaxMessage-len(how)-len("...")) + how}
}

// namesOf names the first objects of a removal from members.
func namesOf(lost []placement.ResourceIdentifier) string {
	var names []string
	for _, was := range lost[:min(maxRemoved, len(lost))] {
		names = append(names, nameOf(was))
	}
	return kube.JoinNames(names, len(lost))
}

// withholds reports whether an object is left out of an envelope, and so not removed.
func (o observed) withholds(was placement.ResourceIdentifier) bool {
	return slices.ContainsFunc(o.resources.Withheld, func(w selection.WithheldObject) bool {
		return w.Group == was.Group && w.Kind == was.Kind && w.Namespace == was.Namespace && w.Name == was.Name
	})
}

// lost returns the objects that have left the selection, by the status and by the Works. The status
// does not list everything, and may be outdated if the hub ended before writing it.
func (o observed) lost() (lost []placement.ResourceIdentifier) {
	seen := map[string]bool{}
	for _, r := range slices.Concat(o.selected.Objects, o.resources.Objects) {
		seen[identity(r.GetKind(), r.GetAPIVersion(), r.GetNamespace(), r.GetName())] = true
	}
	for _, was := range o.before.SelectedResources {
		id := identity(was.Kind, metav1.GroupVersion{Group: was.Group, Version: was.Version}.String(), was.Namespace, was.Name)
		if !seen[id] {
			lost = append(lost, was)
		}
		seen[id] = true
	}
	for id := range o.home {
		if !seen[id] {
			lost = append(lost, parseIdentity(id))
		}
	}
	for id := range o.wrappedIn() {
		if !seen[id] {
			lost = append(lost, parseIdentity(id))
		}
	}
	slices.SortFunc(lost, func(a, b placement.ResourceIdentifier) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return lost
}

// wrappedIn returns the envelopes of objects in Works. A missing envelope removes its objects
// only with a cause of its own.
func (o observed) wrappedIn() map[string]bool {
	all := map[string]bool{}
	for _, current := range o.current {
		for _, work := range current.works {
			for id := range strings.Lines(work.Annotations[placement.AnnotationEnvelopes]) {
				all[strings.TrimSpace(id)] = true
			}
		}
	}
	return all
}

// envelopes maps each wrapped object to its envelope.
func (o observed) envelopes() map[string]string {
	all := make(map[string]string, len(o.resources.Envelopes))
	for of, from := range o.resources.Envelopes {
		version := metav1.GroupVersion{Group: of.Group, Version: of.Version}.String()
		all[identity(of.Kind, version, of.Namespace, of.Name)] = identity(from.Type, placement.GroupVersion.String(), from.Namespace, from.Name)
	}
	return all
}

// confirmation returns the annotation value to confirm the removal of exactly these objects, once.
func (o observed) confirmation(lost []placement.ResourceIdentifier) string {
	var names strings.Builder
	fmt.Fprintln(&names, o.before.ObservedResourceIndex)
	for _, was := range lost {
		fmt.Fprintln(&names, was.Group, nameOf(was))
	}
	return naming.Digest(names.String())[:8]
}
