package placement

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/author"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/placement/authorization"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

// minReview and maxReview limit the interval between reviews. No event reports granted or revoked
// rights, or the return of an API. The interval equals the age of the current answer, within these
// limits.
const minReview, maxReview = 10 * time.Second, time.Hour

const placedStays = "; placed objects stay as they are"

// readsAsAuthor reports whether the rights of the author limit the selection of a placement,
// besides the hub's rights.
func readsAsAuthor(setting string, s genericPlacement) bool {
	return countsAuthor(setting, s.key.Namespace)
}

// countsAuthor reports whether the rights of the author count for an object in a namespace, or
// without one.
func countsAuthor(setting, namespace string) bool {
	return setting == settings.AuthorRightsEnforce || setting == settings.AuthorRightsNamespaced && namespace != ""
}

// selectResources resolves the selectors of a placement with the rights of its author.
func (c *Controller) selectResources(ctx context.Context, s genericPlacement, o *observed) (err error) {
	var mayRead selection.MayRead
	if readsAsAuthor(c.Config.Current().PlacementAuthorRights, s) {
		writer, hasAuthor := author.Of(s.GetAnnotations())
		o.author = writer.Name
		missing, err := c.Policies.Authors(ctx)
		switch {
		case err != nil:
			o.setRightsError(err)
			return nil
		case missing != "":
			o.rightsProblem = condition{metav1.ConditionFalse, reasons.PolicyMissing, missing + placedStays}
			return nil
		case !hasAuthor:
			o.rightsProblem = condition{metav1.ConditionFalse, reasons.AuthorUnknown,
				fmt.Sprintf("the author of the placement is unknown: a user with the right to read the selected objects becomes its author by "+
					"kubectl annotate%s, with the user name from kubectl auth whoami%s", annotateCommand(s), placedStays)}
			return nil
		}
		mayRead = func(q selection.Query) (bool, error) {
			return c.reviewer.Allows(ctx, writer, rightOf(q))
		}
	}
	o.selected, err = c.selector.Select(s.key, mayRead, s.spec.ResourceSelectors)
	var unanswered *authorization.UnansweredError
	if errors.As(err, &unanswered) {
		o.setRightsError(err)
		return nil
	}
	return err
}

// rightOf returns the right to read the objects of a query.
func rightOf(q selection.Query) authorization.Right {
	return authorization.Right{Resource: q.Resource, Namespace: q.Namespace, Name: q.Name}
}

// annotateCommand returns the arguments of kubectl annotate for a user to become the author of a
// placement.
func annotateCommand(s genericPlacement) string {
	return fmt.Sprintf("%s %s=NAME", objectOf(s), author.AnnotationName)
}

// objectOf returns the placement as an argument of kubectl.
func objectOf(s genericPlacement) string {
	return argument(s.kind, s.key)
}

// argument returns an object as an argument of kubectl.
func argument(kind string, key types.NamespacedName) string {
	object := fmt.Sprintf(" %s %s", strings.ToLower(kind), key.Name)
	if key.Namespace != "" {
		object = " -n " + key.Namespace + object
	}
	return object
}

// setRightsError notes an error that leaves the rights of the author unknown.
func (o *observed) setRightsError(err error) {
	o.rightsErr = err
	o.rightsProblem = condition{metav1.ConditionUnknown, reasons.AuthorRightsUnknown, err.Error() + placedStays}
}

// selectionProblem returns the reason why the selection of the placement is unknown; the zero
// condition if it is known.
func (o observed) selectionProblem() condition {
	switch {
	case o.rightsProblem != (condition{}):
		return o.rightsProblem
	case o.selected.Problem != "":
		return condition{metav1.ConditionFalse, reasons.InvalidResourceSelectors, o.selected.Problem}
	case o.full != "":
		return condition{metav1.ConditionFalse, reasons.WorkFull, o.full + placedStays}
	}
	return o.unfounded
}

// withheld returns a condition about objects left out because an author may not read or write
// them; the zero condition without any.
func (o observed) withheld() condition {
	objects := o.withheldObjects()
	if len(o.selected.Withheld) == 0 {
		return objects
	}
	var rights []string
	for _, q := range o.selected.Withheld {
		rights = append(rights, rightOf(q).String())
	}
	unread := condition{metav1.ConditionFalse, reasons.AuthorMayNotRead, fmt.Sprintf(
		"left out, because %s, who last changed the spec, may not read it: %s; grant that right, or let a user with that right change the spec",
		o.author, list(rights))}
	if objects != (condition{}) {
		unread.message += "; " + objects.message
	}
	return unread
}

// nextReview returns the time of the next review of the author's rights, or of missing causes;
// zero if there is nothing to review.
func (o observed) nextReview(now time.Time) time.Time {
	selects := o.rightsProblem == (condition{}) && len(o.selected.Withheld)+len(o.resources.Withheld) == 0
	overrides := !o.overridesHeld && len(o.ignored) == 0
	switch {
	case o.unfounded != (condition{}):
		return now.Add(time.Minute) // the whole placement waits
	case selects && overrides && o.author == "" && !o.reviewed:
		return time.Time{}
	case selects && overrides:
		return now.Add(maxReview)
	}
	wait, kind := minReview, placement.ConditionResourceSelected
	if selects {
		kind = placement.ConditionOverridden
	}
	if before := meta.FindStatusCondition(o.before.Conditions, o.kind+kind); before != nil && before.Status != metav1.ConditionTrue {
		wait = min(max(now.Sub(before.LastTransitionTime.Time), minReview), maxReview)
	}
	return now.Add(wait)
}
