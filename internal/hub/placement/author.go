package placement

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/admission"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/hub/placement/author"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/hub/removal"
)

// Reasons of the condition ResourceSelected that come from the rights of the author.
const (
	reasonAuthorUnknown = "AuthorUnknown"
	reasonRightsUnknown = "AuthorRightsUnknown"
)

// No event tells of granted or revoked rights, or of an API that answers again: they are reviewed after minReview, then after as long as
// the answer has been the same, and at least every maxReview.
const minReview, maxReview = 10 * time.Second, time.Hour

const placedStays = "; what is placed stays as it is"

// readsAsAuthor says whether the rights of the author count for what a placement selects, beside those of the hub.
func readsAsAuthor(setting string, s genericPlacement) bool {
	return setting == config.AuthorRightsEnforce || setting == config.AuthorRightsNamespaced && s.key.Namespace != ""
}

// selectResources resolves the selectors of a placement with the rights of its author.
func (c *Controller) selectResources(ctx context.Context, s genericPlacement, o *observed) (err error) {
	var mayRead selection.MayRead
	if readsAsAuthor(c.Config.Current().PlacementAuthorRights, s) {
		by, known := author.Of(s.GetAnnotations())
		o.author = by.Name
		missing, err := c.Policies.Authors(ctx)
		switch {
		case err != nil:
			o.setRightsError(err)
			return nil
		case missing != "":
			o.rightsProblem = condition{metav1.ConditionFalse, admission.ReasonMissing, missing + placedStays}
			return nil
		case !known:
			o.rightsProblem = condition{metav1.ConditionFalse, reasonAuthorUnknown,
				fmt.Sprintf("nobody knows who wrote the placement: whoever may read what it selects makes himself its author "+
					"by kubectl annotate%s, with his user name as it is in kubectl auth whoami%s", annotateCommand(s), placedStays)}
			return nil
		}
		mayRead = func(q selection.Query) (bool, error) {
			return c.reviewer.Allows(ctx, by, rightOf(q))
		}
	}
	o.selected, err = c.selector.Select(s.key, mayRead, s.spec.ResourceSelectors)
	var unanswered *author.UnansweredError
	if errors.As(err, &unanswered) {
		o.setRightsError(err)
		return nil
	}
	return err
}

// rightOf is the right to read what a query asks for.
func rightOf(q selection.Query) author.Right {
	return author.Right{Resource: q.Resource, Namespace: q.Namespace, Name: q.Name}
}

// annotateCommand is what a user appends to kubectl annotate to become the author of a placement.
func annotateCommand(s genericPlacement) string {
	return fmt.Sprintf("%s %s=NAME", objectOf(s), author.AnnotationName)
}

// objectOf is the placement as an argument of kubectl.
func objectOf(s genericPlacement) string {
	object := fmt.Sprintf(" %s %s", strings.ToLower(s.kind), s.key.Name)
	if s.key.Namespace != "" {
		object = " -n " + s.key.Namespace + object
	}
	return object
}

// setRightsError notes that the rights of the author are unknown because of an error.
func (o *observed) setRightsError(err error) {
	o.rightsErr = err
	o.rightsProblem = condition{metav1.ConditionUnknown, reasonRightsUnknown, err.Error() + placedStays}
}

// selectionProblem says why the selection of the placement is unknown; the zero condition if it is known.
func (o observed) selectionProblem() condition {
	switch {
	case o.rightsProblem != (condition{}):
		return o.rightsProblem
	case o.selected.Problem != "":
		return condition{metav1.ConditionFalse, reasonInvalid, o.selected.Problem}
	case o.full != "":
		return condition{metav1.ConditionFalse, reasonFull, o.full + placedStays}
	}
	return o.unfounded
}

// withheld says what is left out because the author may not read it; the zero condition if nothing is.
func (o observed) withheld() condition {
	if len(o.selected.Withheld) == 0 {
		return condition{}
	}
	var rights []string
	for _, q := range o.selected.Withheld {
		rights = append(rights, rightOf(q).String())
	}
	return condition{metav1.ConditionFalse, removal.ReasonWithheld, fmt.Sprintf(
		"left out, because %s, who last changed the spec, may not read it: %s; grant that, or let somebody change the spec who may",
		o.author, list(rights))}
}

// nextReview is when the rights of the author, or the causes that were missing, have to be reviewed again; zero if there is nothing to
// review.
func (o observed) nextReview(now time.Time) time.Time {
	switch {
	case o.rightsProblem == (condition{}) && o.author == "" && o.unfounded == (condition{}):
		return time.Time{}
	case o.rightsProblem == (condition{}) && len(o.selected.Withheld) == 0 && o.unfounded == (condition{}):
		return now.Add(maxReview)
	}
	wait := minReview
	if o.unfounded != (condition{}) {
		return now.Add(time.Minute) // all of the placement waits
	}
	if before := meta.FindStatusCondition(o.before.Conditions, o.kind+placement.ConditionResourceSelected); before != nil {
		wait = min(max(now.Sub(before.LastTransitionTime.Time), minReview), maxReview)
	}
	return now.Add(wait)
}
