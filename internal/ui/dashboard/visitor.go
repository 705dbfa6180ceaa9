package dashboard

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// believed is the time to trust an answer about a visitor's rights. After a loss of rights
	// the visitor sees the same objects for this time.
	believed = 30 * time.Second
	// askedAtOnce limits the concurrent queries about workspaces, for one page of a visitor
	// without the right to list in all.
	askedAtOnce = 16
	// mostVisitors limits the cached visitors with their tokens and rights. forgotten is the time
	// before an absent visitor is dropped.
	mostVisitors = 1000
	forgotten    = time.Hour
	// anonymous is the API server's name for requests without a credential.
	anonymous = "system:anonymous"
)

// visitor is a user of the dashboard. The user's own rights limit all views and actions; the API
// server is queried with the user's credential.
type visitor struct {
	name string
	// Client acts as the visitor.
	client.Client
	// pace limits the visitor's requests. streams is the number of pages with live changes.
	pace    flowcontrol.RateLimiter
	streams atomic.Int64

	mu      sync.Mutex
	rights  map[authorizationv1.ResourceAttributes]bool
	renewed time.Time
}

// newVisitor returns the user with the credential of a config. If the API server does not know the
// user, its error is returned.
func newVisitor(ctx context.Context, config *rest.Config, mapper meta.RESTMapper) (*visitor, error) {
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	v := &visitor{Client: c, pace: flowcontrol.NewTokenBucketRateLimiter(20, 200), rights: map[authorizationv1.ResourceAttributes]bool{}}
	v.name, err = v.ask(ctx)
	return v, err
}

// ask queries the API server for the visitor's name.
func (v *visitor) ask(ctx context.Context) (name string, err error) {
	review := &authenticationv1.SelfSubjectReview{}
	err = v.Create(ctx, review)
	switch {
	case err == nil:
		return review.Status.UserInfo.Username, nil
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), strconv.Quote(anonymous)):
		return anonymous, nil
	case kube.NotServed(err), apierrors.IsForbidden(err): // before Kubernetes 1.28 there is no such review
		return "you", nil
	}
	return "", fmt.Errorf("getting your user name from the API server: %w", err)
}

// may reports whether the visitor has a right to a resource, or to a part of it such as
// bundles/status. It returns an error if the review fails.
func (v *visitor) may(ctx context.Context, verb, resource, namespace string) (bool, error) {
	bare, subresource, _ := strings.Cut(resource, "/")
	right := authorizationv1.ResourceAttributes{
		Verb: verb, Group: groupOf(bare), Resource: bare, Subresource: subresource, Namespace: namespace,
	}
	v.mu.Lock()
	if time.Since(v.renewed) > believed {
		clear(v.rights)
		v.renewed = time.Now()
	}
	allowed, reviewed := v.rights[right]
	v.mu.Unlock()
	if reviewed {
		return allowed, nil
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
	if err := v.Create(ctx, review); err != nil {
		return false, fmt.Errorf("checking whether you may %s %s: %w", verb, resource, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rights[right] = review.Status.Allowed
	return review.Status.Allowed, nil
}

// seen returns the entries the visitor may list: all, or the entries of allowed workspaces. It
// returns an error if a review fails.
func (v *visitor) seen(ctx context.Context, resource string, entries []*entry) ([]*entry, error) {
	every, err := v.may(ctx, "list", resource, "")
	if err != nil || every {
		return entries, err
	}
	allowed, err := v.mayIn(ctx, "list", resource, entries)
	if err != nil {
		return nil, err
	}
	var seen []*entry
	for _, e := range entries {
		if allowed[e.namespace] {
			seen = append(seen, e)
		}
	}
	return seen, nil
}

// mayIn reports for each namespace of some entries whether the visitor has a right there. It
// queries several unknown namespaces at once.
func (v *visitor) mayIn(ctx context.Context, verb, resource string, entries []*entry) (map[string]bool, error) {
	allowed := map[string]bool{}
	for _, e := range entries {
		if e.namespace != "" {
			allowed[e.namespace] = false
		}
	}
	every, err := v.may(ctx, verb, resource, "")
	if err != nil {
		return nil, err
	}
	namespaces := slices.Collect(maps.Keys(allowed))
	answers, problems := make([]bool, len(namespaces)), make([]error, len(namespaces))
	if !every {
		workqueue.ParallelizeUntil(ctx, askedAtOnce, len(namespaces), func(i int) {
			answers[i], problems[i] = v.may(ctx, verb, resource, namespaces[i])
		})
	}
	for i, namespace := range namespaces {
		allowed[namespace] = every || answers[i]
	}
	return allowed, errors.Join(append(problems, ctx.Err())...)
}

// errTooMany reports more requests than can be answered.
var errTooMany = errors.New("too many requests: try again in a few seconds")

// visitors are the visitors with a known token.
type visitors struct {
	config *rest.Config // with the address and the CA, and no credential
	mapper meta.RESTMapper
	limit  *reviewLimiter
	clock  clock.PassiveClock

	mu    sync.Mutex
	known map[[sha256.Size]byte]*welcomed
}

// welcomed is a visitor with an accepted token. at is the time of the last acceptance. ends is
// the token's end; zero if unknown.
type welcomed struct {
	*visitor
	at, ends time.Time
}

// isForgotten reports whether the token has ended, or the visitor has been absent for long.
func (w *welcomed) isForgotten(now time.Time) bool {
	return now.Sub(w.at) > forgotten || w.hasEnded(now)
}

func (w *welcomed) hasEnded(now time.Time) bool { return !w.ends.IsZero() && !w.ends.After(now) }

func newVisitors(config *rest.Config, mapper meta.RESTMapper) *visitors {
	return &visitors{
		config: rest.AnonymousClientConfig(config), mapper: mapper, limit: newReviewLimiter(), clock: clock.RealClock{},
		known: map[[sha256.Size]byte]*welcomed{},
	}
}

// by returns the visitor with a token from an address. The API server reviews the token from time
// to time.
func (vs *visitors) by(ctx context.Context, address netip.Addr, token string) (*visitor, error) {
	if !isToken(token) {
		return nil, errNoVisitor
	}
	key := sha256.Sum256([]byte(token))
	vs.mu.Lock()
	have := vs.known[key]
	vs.mu.Unlock()
	if have == nil {
		return vs.welcome(ctx, key, address, token)
	}
	now := vs.clock.Now()
	if now.Sub(have.at) < believed && !have.hasEnded(now) {
		return have.visitor, nil
	}
	_, err := have.ask(ctx)
	vs.mu.Lock()
	defer vs.mu.Unlock()
	switch {
	case err == nil:
		vs.known[key] = &welcomed{have.visitor, now, endOf(token, now)}
	case apierrors.IsUnauthorized(err):
		delete(vs.known, key)
	}
	return have.visitor, err
}

// remembered returns the number of tokens with recent visits.
func (vs *visitors) remembered() (n int) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.forget()
	return len(vs.known)
}

// forget drops visitors with an expired token, or after a long absence. The caller has the lock.
func (vs *visitors) forget() {
	now := vs.clock.Now()
	maps.DeleteFunc(vs.known, func(_ [sha256.Size]byte, w *welcomed) bool { return w.isForgotten(now) })
}

// welcome queries the API server about a new token. If there is no room, it drops the visitor
// with the longest absence.
func (vs *visitors) welcome(ctx context.Context, key [sha256.Size]byte, address netip.Addr, token string) (*visitor, error) {
	if !vs.limit.accept(address, time.Now()) {
		return nil, errTooMany
	}
	config := rest.CopyConfig(vs.config)
	config.BearerToken, config.QPS = token, -1
	v, err := newVisitor(ctx, config, vs.mapper)
	if err != nil {
		return nil, err
	}
	if v.name == anonymous {
		return nil, errNoVisitor
	}
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.forget()
	for len(vs.known) >= mostVisitors {
		last := slices.MinFunc(slices.Collect(maps.Keys(vs.known)), func(a, b [sha256.Size]byte) int {
			return vs.known[a].at.Compare(vs.known[b].at)
		})
		delete(vs.known, last)
	}
	now := vs.clock.Now()
	vs.known[key] = &welcomed{v, now, endOf(token, now)}
	return v, nil
}
