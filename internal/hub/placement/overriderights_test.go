package placement

import (
	"context"
	"errors"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/author"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/joining/admission"
	"github.com/muster-fleet/muster/internal/hub/placement/authorization"
	"github.com/muster-fleet/muster/internal/hub/placement/override"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

// reviewing is a controller on a hub that answers reviews in one way, and whose policies have an
// effect, or have none, or cannot be tried.
func reviewing(answer authorizationv1.SubjectAccessReviewStatus, policies string) *Controller {
	clock := clocktesting.NewFakePassiveClock(now)
	api := interceptor.NewClient(fake.NewClientBuilder().Build(),
		interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			if review, is := o.(*authorizationv1.SubjectAccessReview); is {
				review.Status = answer
				return nil
			}
			switch policies {
			case "in force":
				o.SetAnnotations(nil)
			case "unknown":
				return errors.New("the server is busy")
			}
			return nil
		}})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	recorder := events.NewFakeRecorder(10)
	return &Controller{
		Deps: Deps{
			Deps:     controller.Deps{Config: settings.New(api, recorder, "system")},
			Policies: &admission.Checker{Client: api, Clock: clock, Recorder: recorder, Namespace: "system"},
		},
		selector: &selection.Selector{Mapper: mapper}, reviewer: authorization.NewReviewer(api, clock),
	}
}

// reviews are the answers of a hub about an author, and what becomes of what that author wrote.
var reviews = []struct {
	name, author   string
	answer         authorizationv1.SubjectAccessReviewStatus
	policies       string
	applied        bool
	counts, held   bool
	reason         string
	retried        bool
	envelopeReason string
}{
	{
		name: "the author may do that", author: "eve", answer: authorizationv1.SubjectAccessReviewStatus{Allowed: true},
		policies: "in force", counts: true,
	},
	{name: "the author may not", author: "eve", policies: "in force", envelopeReason: reasons.EnvelopeNotPermitted},
	{
		name: "the author may not any more", author: "eve", policies: "in force", applied: true, counts: true, held: true,
		reason: reasons.OverrideNotPermitted, envelopeReason: reasons.EnvelopeNotPermitted,
	},
	{
		name: "the author is not known", policies: "in force", counts: true, held: true, reason: reasons.AuthorUnknown,
		envelopeReason: reasons.AuthorUnknown,
	},
	{name: "no author is believed", author: "eve", answer: authorizationv1.SubjectAccessReviewStatus{Allowed: true},
		policies: "missing", counts: true, held: true,
		reason: reasons.PolicyMissing, envelopeReason: reasons.PolicyMissing},
	{
		name: "the policies cannot be tried", author: "eve", policies: "unknown", counts: true, held: true,
		reason: reasons.AuthorRightsUnknown, retried: true,
	},
	{name: "an authorizer fails", author: "eve",
		answer: authorizationv1.SubjectAccessReviewStatus{EvaluationError: "the webhook does not answer"}, policies: "in force",
		counts: true, held: true, reason: reasons.AuthorRightsUnknown, retried: true},
}

func TestAnOverrideIsAppliedIgnoredOrHeldByTheRightsOfItsAuthor(t *testing.T) {
	for _, row := range reviews {
		ro := &placement.ResourceOverride{
			ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "ro", Annotations: map[string]string{author.AnnotationName: row.author}},
		}
		ro.Spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "settings"}}
		ro.Spec.Policy = &placement.OverridePolicy{
			OverrideRules: []placement.OverrideRule{{ClusterSelector: &placement.ClusterSelector{}, OverrideType: placement.OverrideDelete}},
		}
		object := &unstructured.Unstructured{
			Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "app", "name": "settings"}},
		}
		o := observed{resources: selection.Resources{Objects: []*unstructured.Unstructured{object}}}
		of := override.OfNamespace(ro)
		if row.applied {
			work := &placement.Work{
				ObjectMeta: metav1.ObjectMeta{
					Annotations: map[string]string{placement.AnnotationOverrides: "x", placement.AnnotationOverriddenBy: of.ID()},
				},
			}
			o.current = map[string]*currentWorks{"ns-a": {works: []*placement.Work{work}}}
		}
		set, err := reviewing(row.answer, row.policies).reviewOverrides(t.Context(),
			override.Choose([]override.Override{of}, o.key, o.resources.Objects), &o)
		if err != nil {
			t.Fatal(err)
		}
		resolved := set.Resolve(override.Member{Name: "a"})
		if counts := len(set) == 1; counts != row.counts || resolved.Reason != row.reason || o.overridesHeld != row.held ||
			(o.rightsErr != nil) != row.retried || !o.reviewed {
			t.Errorf("%s: it counts %t; %+v, held %t, %v", row.name, counts, resolved, o.overridesHeld, o.rightsErr)
		}
		ignored := o.ignoredOverrides()
		if row.counts != (ignored == condition{}) ||
			!row.counts && !strings.Contains(ignored.message, "eve, who last changed it, may not delete configmaps settings in namespace app") {
			t.Errorf("%s: ignored is %+v", row.name, ignored)
		}
		if row.held && !strings.HasSuffix(resolved.Problem, placedStays) {
			t.Errorf("%s: it says %q", row.name, resolved.Problem)
		}
		if o.rightsProblem != (condition{}) {
			t.Errorf("%s: all of the placement waits: %+v", row.name, o.rightsProblem)
		}
	}
}

func TestAnObjectInAnEnvelopeIsPlacedOrLeftOutByTheRightsOfTheEnvelopesAuthor(t *testing.T) {
	for _, row := range reviews {
		envelope := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": placement.GroupVersion.String(), "kind": "ResourceEnvelope", "metadata": map[string]any{
				"namespace": "app", "name": "e", "annotations": map[string]any{author.AnnotationName: row.author},
			},
			"data": map[string]any{
				"a": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "app", "name": "a"}},
			},
		}}
		o := observed{selected: selection.Selection{Objects: []*unstructured.Unstructured{envelope}}}
		if err := reviewing(row.answer, row.policies).unwrap(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		placed := len(o.resources.Objects) == 1
		if c := o.withheld(); c.reason != row.envelopeReason || placed != (c == condition{} && !row.retried) {
			t.Errorf("%s: it is placed %t, and says %+v", row.name, placed, c)
		}
		if unknown := o.rightsProblem.reason == reasons.AuthorRightsUnknown && o.rightsErr != nil; unknown != row.retried {
			t.Errorf("%s: all of the placement waits %t: %+v", row.name, unknown, o.rightsProblem)
		}
	}
}
