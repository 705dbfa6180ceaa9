package selection

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

// firstDoubt is the first time to trust a refusal. The time doubles with each refusal, up to
// longestDoubt. It starts again at firstDoubt after a change of the hub's role: the API server
// needs a moment to follow it.
const firstDoubt, longestDoubt = time.Second, time.Hour

// role is the query for the role with the resources allowed by the chart. Its values
// placement.resources and extraResources set them. ofRole takes the place of a placement as its
// user: no namespace has such a name.
var (
	role   = Query{Resource: rbacv1.SchemeGroupVersion.WithResource("clusterroles"), Name: "fleet-controller-placement"}
	ofRole = types.NamespacedName{Namespace: "/", Name: role.Name}
)

var (
	errNoRight   = errors.New("the hub has no right to list it")
	rulesReviews = authorizationv1.SchemeGroupVersion.WithResource("selfsubjectrulesreviews")
)

// rights holds the hub's list rights in each namespace with a query. One review covers all kinds
// there. A placement of a whole namespace therefore does not try each kind forbidden to the hub.
type rights struct {
	client dynamic.Interface
	clock  clock.Clock

	mu    sync.Mutex
	known map[string]*namespaceRights
	// last is the newest answer. Most namespaces share it.
	last *authorizationv1.SubjectRulesReviewStatus
	// renewed is closed after a change of the hub's role.
	renewed chan struct{}
}

// namespaceRights are the known rights in one namespace.
type namespaceRights struct {
	// queries is their number. The mutex of rights guards it.
	queries int

	// mu is held during a review: only queries of this namespace wait for the one answer.
	mu sync.Mutex
	// answer is nil without a complete answer.
	answer  *authorizationv1.SubjectRulesReviewStatus
	renewed chan struct{}
	doubt   time.Duration
	until   time.Time
}

func newRights(client dynamic.Interface) *rights {
	return &rights{client: client, clock: clock.RealClock{}, known: map[string]*namespaceRights{}, renewed: make(chan struct{})}
}

// add counts one more query, or one fewer, of a namespace.
func (r *rights) add(namespace string, queries int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.known[namespace]
	if n == nil {
		n = &namespaceRights{}
		r.known[namespace] = n
	}
	if n.queries += queries; n.queries == 0 {
		delete(r.known, namespace)
	}
}

// renew makes every refused query try again.
func (r *rights) renew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.renewed)
	r.renewed = make(chan struct{})
}

// refused returns the remaining time of a query's refusal, and a channel to end it earlier. A query
// is not refused if the API server cannot answer.
func (r *rights) refused(ctx context.Context, query Query) (wait time.Duration, renewed <-chan struct{}) {
	r.mu.Lock()
	n, now := r.known[query.Namespace], r.renewed
	r.mu.Unlock()
	if n == nil || query.Namespace == "" { // a review covers one namespace, and proves nothing for all of them
		return 0, now
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.renewed != now {
		n.renewed, n.doubt, n.until = now, 0, time.Time{}
	}
	if left := n.until.Sub(r.clock.Now()); left > 0 {
		if allows(n.answer, query) {
			return 0, now
		}
		return left, now
	}
	answer, err := r.ask(ctx, query.Namespace)
	if err != nil || answer.Incomplete || len(answer.ResourceRules) == 0 { // a client with the right to send the review has a right
		answer = nil
	}
	n.answer = r.shared(answer)
	n.doubt = min(max(2*n.doubt, firstDoubt), longestDoubt)
	n.until = r.clock.Now().Add(n.doubt)
	if allows(n.answer, query) {
		return 0, now
	}
	return n.doubt, now
}

// contradict drops the known rights in a namespace, because the API server has refused an allowed
// query.
func (r *rights) contradict(namespace string) {
	r.mu.Lock()
	n := r.known[namespace]
	r.mu.Unlock()
	if n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.until = time.Time{}
	}
}

// shared returns an existing equal answer, so thousands of namespaces share one.
func (r *rights) shared(answer *authorizationv1.SubjectRulesReviewStatus) *authorizationv1.SubjectRulesReviewStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	if answer != nil && !reflect.DeepEqual(answer, r.last) {
		r.last = answer
	}
	if answer == nil {
		return nil
	}
	return r.last
}

func (r *rights) ask(ctx context.Context, namespace string) (*authorizationv1.SubjectRulesReviewStatus, error) {
	question := &authorizationv1.SelfSubjectRulesReview{
		TypeMeta: metav1.TypeMeta{APIVersion: rulesReviews.GroupVersion().String(), Kind: "SelfSubjectRulesReview"},
		Spec:     authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(question)
	if err != nil {
		return nil, fmt.Errorf("reviewing the rights of the hub in namespace %s: %w", namespace, err)
	}
	said, err := r.client.Resource(rulesReviews).Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("reviewing the rights of the hub in namespace %s: %w", namespace, err)
	}
	answer := &authorizationv1.SelfSubjectRulesReview{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(said.Object, answer); err != nil {
		return nil, fmt.Errorf("reading the rights of the hub in namespace %s: %w", namespace, err)
	}
	return &answer.Status, nil
}

// allows reports whether an answer lets the hub list and watch the resource of a query. Without
// an answer nothing is forbidden.
func allows(answer *authorizationv1.SubjectRulesReviewStatus, query Query) bool {
	if answer == nil {
		return true
	}
	verbs := map[string]bool{}
	for _, rule := range answer.ResourceRules {
		if !either(rule.APIGroups, query.Resource.Group) || !either(rule.Resources, query.Resource.Resource) ||
			len(rule.ResourceNames) > 0 && (query.Name == "" || !slices.Contains(rule.ResourceNames, query.Name)) {
			continue
		}
		for _, verb := range rule.Verbs {
			verbs[verb] = true
		}
	}
	return verbs["*"] || verbs["list"] && verbs["watch"]
}

// either reports whether a rule's list has a value, or stands for all.
func either(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// refusal returns the error that the API server would return.
func refusal(query Query) error {
	return apierrors.NewForbidden(query.Resource.GroupResource(), query.Name, errNoRight)
}
