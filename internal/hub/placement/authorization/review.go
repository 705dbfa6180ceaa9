// Package authorization checks the rights of authors on the hub. A placement's author needs read
// rights; an override's or envelope's author needs write rights. The author of an object is the
// last user to change its spec or data.
//
// An admission policy of the hub's chart stores the author in annotations. This package reads
// them, sends SubjectAccessReviews to the API server, and writes nothing. Its invariant: a failed
// review is an error, and never "no".
package authorization

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/author"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// answerLife is the time to live of a cached answer.
	answerLife = time.Minute
	// maxAnswers limits the number of cached answers.
	maxAnswers = 20000
	// maxEvaluation limits the length of an authorizer's error in messages.
	maxEvaluation = 300
	// anything stands for every verb, group or resource in Kubernetes.
	anything = "*"
)

// Right is a right to one object if it has a name. Otherwise it covers all objects of a resource,
// in a namespace or everywhere.
type Right struct {
	// Verb is the verb of the right. Empty means the right to read: get with a name, list
	// without.
	Verb            string
	Resource        schema.GroupVersionResource
	Namespace, Name string
}

// verb returns the verb of the request.
func (r Right) verb() string {
	switch {
	case r.Verb != "":
		return r.Verb
	case r.Name != "":
		return "get"
	}
	return "list"
}

// String returns the right in words.
func (r Right) String() string {
	text := r.verb() + " " + r.Resource.GroupResource().String()
	if r.Name != "" {
		text += " " + r.Name
	}
	switch {
	case r.Namespace != "":
		text += " in namespace " + r.Namespace
	case r.Name == "":
		text += " cluster-wide"
	}
	return text
}

// UnansweredError reports unknown rights of an author: the API server was unreachable, or one of
// its authorizers did not answer.
type UnansweredError struct{ cause error }

// Unanswered returns an UnansweredError with a cause.
func Unanswered(cause error) *UnansweredError { return &UnansweredError{cause} }

// Error implements error.
func (e *UnansweredError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *UnansweredError) Unwrap() error { return e.cause }

// Reviewer checks the rights of authors at the API server, and caches the answers for a minute.
type Reviewer struct {
	client client.Client
	clock  clock.PassiveClock

	mu      sync.Mutex
	answers map[question]answer
}

type question struct {
	author    author.Author
	verb      string
	resource  schema.GroupResource
	namespace string
	name      string
}

type answer struct {
	allowed bool
	expires time.Time
}

// NewReviewer returns a Reviewer without answers.
func NewReviewer(c client.Client, clock clock.PassiveClock) *Reviewer {
	return &Reviewer{client: c, clock: clock, answers: map[question]answer{}}
}

// AllowsEverything reports whether an author may do everything, with one review for all
// resources. A failed review counts as no: the next review is answered, or fails in the same way.
func (r *Reviewer) AllowsEverything(ctx context.Context, author author.Author) bool {
	everything := question{author: author, verb: anything, resource: schema.GroupResource{Group: anything, Resource: anything}}
	allowed, err := r.ask(ctx, everything)
	return err == nil && allowed
}

// Allows reports whether an author has a right. It first checks whether the author may do
// everything.
func (r *Reviewer) Allows(ctx context.Context, author author.Author, right Right) (bool, error) {
	if r.AllowsEverything(ctx, author) {
		return true, nil
	} // a failed review fails again below, unless an answering authorizer allows the right
	asked := question{
		author: author, verb: right.verb(), resource: right.Resource.GroupResource(), namespace: right.Namespace, name: right.Name,
	}
	if asked.resource == (schema.GroupResource{Resource: "namespaces"}) {
		asked.namespace = right.Name // as in the API server: a Role in a namespace may grant reading the Namespace itself
	}
	return r.ask(ctx, asked)
}

func (r *Reviewer) ask(ctx context.Context, q question) (bool, error) {
	now := r.clock.Now()
	r.mu.Lock()
	cached, found := r.answers[q]
	r.mu.Unlock()
	if found && now.Before(cached.expires) {
		return cached.allowed, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: q.author.Name, Groups: q.author.Groups(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: q.verb, Group: q.resource.Group, Resource: q.resource.Resource, Namespace: q.namespace, Name: q.name,
		},
	}}
	if err := r.client.Create(ctx, review); err != nil {
		return false, &UnansweredError{fmt.Errorf("asking whether %s may %s: %w",
			q.author.Name, strings.TrimSpace(q.verb+" "+q.resource.String()), err)}
	}
	allowed := review.Status.Allowed && !review.Status.Denied
	if evaluation := review.Status.EvaluationError; !allowed && !review.Status.Denied && evaluation != "" {
		return false, &UnansweredError{fmt.Errorf("asking whether %s may %s: %s",
			q.author.Name, strings.TrimSpace(q.verb+" "+q.resource.String()), kube.Clip(evaluation, maxEvaluation))}
	}
	r.cache(q, answer{allowed: allowed, expires: now.Add(answerLife)}, now)
	return allowed, nil
}

// cache stores an answer. If there are too many, it drops the expired ones, and if there are
// still too many, all.
func (r *Reviewer) cache(q question, a answer, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.answers) >= maxAnswers {
		for asked, known := range r.answers {
			if !now.Before(known.expires) {
				delete(r.answers, asked)
			}
		}
	}
	if len(r.answers) >= maxAnswers {
		clear(r.answers)
	}
	r.answers[q] = a
}
