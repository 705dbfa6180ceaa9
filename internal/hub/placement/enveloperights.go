package placement

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/fleet/author"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/placement/authorization"
	"github.com/muster-fleet/muster/internal/kube"
)

// unwrap replaces envelopes by their contents, as far as their authors may write them on the hub.
func (c *Controller) unwrap(ctx context.Context, o *observed) (err error) {
	policies := c.policies(ctx)
	mayWrap := func(envelope, wrapped *unstructured.Unstructured, resource schema.GroupVersionResource) (reason, message string, err error) {
		if !countsAuthor(c.Config.Current().PlacementAuthorRights, envelope.GetNamespace()) {
			return "", "", nil
		}
		o.reviewed = true
		by, known := author.Of(envelope.GetAnnotations())
		w := written{
			name:   kube.Name(envelope.GetKind(), envelope.GetNamespace(), envelope.GetName()),
			object: argument(envelope.GetKind(), types.NamespacedName{Namespace: envelope.GetNamespace(), Name: envelope.GetName()}),
			author: by, hasAuthor: known, refused: reasons.EnvelopeNotPermitted,
		}
		refused, err := c.reviewWriting(ctx, w, policies, func() ([]authorization.Right, error) {
			return authorization.ToCreate(resource, wrapped), nil
		})
		return refused.reason, refused.message, err
	}
	o.resources, err = c.selector.Unwrap(o.selected.Objects, mayWrap)
	var unanswered *authorization.UnansweredError
	if errors.As(err, &unanswered) {
		o.setRightsError(err)
		return nil
	}
	return err
}

// withheldObjects returns a condition about objects left out of envelopes; the zero condition
// without any.
func (o observed) withheldObjects() condition {
	if len(o.resources.Withheld) == 0 {
		return condition{}
	}
	var messages []string
	for _, w := range o.resources.Withheld {
		messages = append(messages, nameOf(w.ResourceIdentifier)+" is left out: "+w.Message)
	}
	return condition{metav1.ConditionFalse, o.resources.Withheld[0].Reason, list(messages)}
}
