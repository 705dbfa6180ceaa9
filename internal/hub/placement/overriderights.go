package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/author"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/placement/authorization"
	"github.com/muster-fleet/muster/internal/hub/placement/override"
)

// written is an override or an envelope limited by its author's rights.
type written struct {
	// name is the name in messages, object the argument of kubectl.
	name, object string
	author       author.Author
	hasAuthor    bool
	// refused is the reason if the author lacks a right.
	refused string
}

// refusal is the reason why a user's object does not count; the zero refusal if it does.
type refusal struct{ reason, message string }

// policies returns a function for checking the admission policies at most once. It returns the
// reason why authors cannot be trusted.
func (c *Controller) policies(ctx context.Context) func() (missing string, err error) {
	return sync.OnceValues(func() (string, error) { return c.Policies.Authors(ctx) })
}

// reviewWriting checks whether the author of an override or an envelope may make its changes on
// the hub. The rights are computed only if they matter.
func (c *Controller) reviewWriting(ctx context.Context, w written, policies func() (string, error),
	rights func() ([]authorization.Right, error)) (refusal, error) {
	missing, err := policies()
	switch {
	case err != nil:
		return refusal{}, authorization.Unanswered(err)
	case missing != "":
		return refusal{reasons.PolicyMissing, fmt.Sprintf("%s: %s", w.name, missing)}, nil
	case !w.hasAuthor:
		return refusal{reasons.AuthorUnknown,
			fmt.Sprintf("the author of %s is unknown: a user who may make its changes on the hub becomes its author by "+
				"kubectl annotate%s %s=NAME, with their user name as kubectl auth whoami shows it", w.name, w.object, author.AnnotationName)}, nil
	case c.reviewer.AllowsEverything(ctx, w.author):
		return refusal{}, nil
	}
	needed, err := rights()
	if err != nil {
		return refusal{}, err
	}
	lacks, err := c.reviewer.Missing(ctx, w.author, needed)
	if err != nil || lacks == nil {
		return refusal{}, err
	}
	return refusal{w.refused,
		fmt.Sprintf("%s: %s, who last changed it, may not %s on the hub: grant them that right, or have a user who has it change the %s",
			w.name, w.author.Name, lacks, strings.Fields(w.name)[0])}, nil
}

// reviewOverrides returns the effective overrides, with the reasons against applying them. If the
// author is unknown or has lost a right, members keep their overridden workload. The hub ignores
// and names an override without a permission so far.
func (c *Controller) reviewOverrides(ctx context.Context, chosen override.Set, o *observed) (override.Set, error) {
	policies := c.policies(ctx)
	return chosen.Review(func(reviewed override.Override) (override.Standing, error) {
		if !countsAuthor(c.Config.Current().PlacementAuthorRights, reviewed.Namespace) {
			return override.Standing{}, nil
		}
		o.reviewed = true
		kind := "ClusterResourceOverride"
		if reviewed.Namespace != "" {
			kind = "ResourceOverride"
		}
		w := written{
			name: reviewed.String(), object: argument(kind, reviewed.NamespacedName), author: reviewed.Author, hasAuthor: reviewed.HasAuthor,
			refused: reasons.OverrideNotPermitted,
		}
		refused, err := c.reviewWriting(ctx, w, policies, func() ([]authorization.Right, error) {
			return reviewed.Rights(o.resources.Objects, c.selector.ResourceOf)
		})
		var unanswered *authorization.UnansweredError
		switch {
		case errors.As(err, &unanswered):
			o.rightsErr = err
			o.overridesHeld = true
			return override.Standing{Reason: reasons.AuthorRightsUnknown, Message: fmt.Sprintf("%s: %v%s", reviewed, err, placedStays)}, nil
		case err != nil:
			return override.Standing{}, err
		case refused == refusal{}:
			return override.Standing{}, nil
		case refused.reason == reasons.OverrideNotPermitted && !o.changedBy(reviewed):
			o.ignored = append(o.ignored, refused.message)
			return override.Standing{Ignored: true}, nil
		}
		o.overridesHeld = true
		return override.Standing{Reason: refused.reason, Message: refused.message + placedStays}, nil
	})
}

// changedBy reports whether an override may have changed an existing Work.
func (o observed) changedBy(changing override.Override) bool {
	kind := placement.AnnotationClusterOverrides
	if changing.Namespace != "" {
		kind = placement.AnnotationOverrides
	}
	id := changing.ID()
	for _, current := range o.current {
		for _, work := range current.works {
			ids, listed := work.Annotations[placement.AnnotationOverriddenBy]
			if work.Annotations[kind] != "" && (!listed || slices.Contains(strings.Fields(ids), id)) {
				return true
			}
		}
	}
	return false
}

// ignoredOverrides returns a condition with the ignored overrides; the zero condition if there
// are none.
func (o observed) ignoredOverrides() condition {
	if len(o.ignored) == 0 {
		return condition{}
	}
	return condition{metav1.ConditionFalse, reasons.OverrideNotPermitted, "ignored: " + list(o.ignored)}
}
