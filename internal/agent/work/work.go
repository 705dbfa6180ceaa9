// Package work applies what the hub places on this member: the manifests of every Work in the member namespace, under an AppliedWork that
// owns them, so that all of it can be taken away again.
//
// It writes, on the hub, one finalizer, one annotation and the status of Works; on the member, AppliedWorks and what the manifests say. Its
// invariants: nothing is deleted that was not applied under an AppliedWork of this membership, and of a deleted Work only after a pause in which
// the hub can put right what somebody deleted by mistake; what is as it should be is not touched.
package work

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/logging"
	"github.com/muster-fleet/muster/internal/restore"
)

const (
	// fieldOwner is the field manager of everything that is applied; KubeFleet's agent has the same.
	fieldOwner = "work-api-agent"
	// workers is how many Works are applied at once.
	workers = 4
	// firstRetry and lastRetry bound how soon a Work is handled again after the hub or this cluster did not answer.
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// Deps is what the controller needs.
type Deps struct {
	// Hub acts on the hub as the member's identity, Member on this cluster as the agent.
	Hub, Member *rest.Config
	// Namespace is the member namespace on the hub, Membership the UID of the report in it, by which AppliedWorks are told apart from those of
	// an earlier membership under the same name.
	Namespace  string
	Membership types.UID
	Clock      clock.Clock
	Log        logr.Logger
	// Idle is told whether there is no Work; one is there until nothing is left of what was applied. It may be nil.
	Idle func(bool)
	// Tell is told how the Works stand and what was done, whenever there is news. It may be nil.
	Tell func(Tally)
	// Stays makes sure, before anything of a deleted Work is removed, that the Work was deleted by itself, and not because the member
	// leaves or the hub is about to serve no Works any more. It may be nil.
	Stays func(context.Context) error
	// Leaving says that RemoveAll follows, so that nothing is applied any more.
	Leaving bool
}

// errUnserved says what to do about a cluster without AppliedWorks.
var errUnserved = errors.New("this cluster does not serve AppliedWork of placement.kubernetes-fleet.io, which owns what is applied: " +
	"install the CRD in the directory crds of the agent's chart; what is applied stays as it is until then")

// Controller applies Works.
type Controller struct {
	Deps
	// hub and member read Works and AppliedWorks from caches, hubLive and live past them.
	hub, member    client.Client
	hubLive, live  client.Reader
	works, applied cache.Cache
	objects        dynamic.Interface
	mapper         meta.RESTMapper
	kinds          *kinds
	ledger         ledger
	removals       removals
	written        kube.Written
	tally          tally
	// unserved is closed when this cluster turns out to serve no AppliedWorks any more, which ends Run.
	unserved chan struct{}
	unserve  sync.Once
	// moved tells whoever waits for the member to become empty that something went.
	moved chan struct{}

	// resting keeps what Idle is told in order.
	resting sync.Mutex

	// leaving is set when nothing may be applied any more; whoever applies holds the lock for reading.
	mu      sync.RWMutex
	leaving bool
}

// New prepares a controller; nothing is sent yet.
func New(deps Deps) (*Controller, error) {
	scheme := runtime.NewScheme()
	if err := placement.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c := &Controller{
		Deps: deps, moved: make(chan struct{}, 1), unserved: make(chan struct{}), leaving: deps.Leaving, written: kube.Written{Clock: deps.Clock},
	}
	hub, err := connect(deps.Hub, scheme, cache.Options{DefaultNamespaces: map[string]cache.Config{deps.Namespace: {}}})
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the hub: %w", err)
	}
	member, err := connect(deps.Member, scheme, cache.Options{})
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to this cluster: %w", err)
	}
	c.hub, c.hubLive, c.works = hub.cached, hub.live, hub.cache
	c.member, c.live, c.applied = member.cached, member.live, member.cache
	c.mapper = member.live.RESTMapper()
	if c.objects, err = dynamic.NewForConfigAndClient(unlimited(deps.Member), member.http); err != nil {
		return nil, fmt.Errorf("preparing the connection to this cluster: %w", err)
	}
	c.kinds = newKinds(c.objects, c.notice, c.listed)
	return c, nil
}

// connection is the ways to one API server.
type connection struct {
	cache cache.Cache
	// cached reads from the cache, live past it.
	cached, live client.Client
	http         *http.Client
}

func connect(config *rest.Config, scheme *runtime.Scheme, options cache.Options) (connection, error) {
	config = unlimited(config)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return connection{}, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return connection{}, err
	}
	options.Scheme, options.HTTPClient, options.Mapper = scheme, httpClient, mapper
	options.DefaultTransform, options.NewInformer = cache.TransformStripManagedFields(), restore.NewInformer
	made := connection{http: httpClient}
	if made.cache, err = cache.New(config, options); err != nil {
		return connection{}, err
	}
	clientOptions := client.Options{Scheme: scheme, HTTPClient: httpClient, Mapper: mapper}
	if made.live, err = client.New(config, clientOptions); err != nil {
		return connection{}, err
	}
	clientOptions.Cache = &client.CacheOptions{Reader: made.cache}
	made.cached, err = client.New(config, clientOptions)
	return made, err
}

// unlimited leaves pacing to the API server, which knows how busy it is.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandlerWithContext = rest.NoWarnings{}
	return config
}

// Run applies Works until ctx ends or a connection cannot be used.
func (c *Controller) Run(ctx context.Context) error {
	owner := placement.GroupVersion.WithKind("AppliedWork")
	if _, err := c.mapper.RESTMapping(owner.GroupKind(), owner.Version); meta.IsNoMatchError(err) {
		return errUnserved
	}
	loop, err := controller.NewTypedUnmanaged("work", controller.Options{
		Reconciler: c, MaxConcurrentReconciles: workers, SkipNameValidation: ptr.To(true),
		RateLimiter:    workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		LogConstructor: func(*reconcile.Request) logr.Logger { return logging.Libraries(c.Log) },
	})
	if err != nil {
		return err
	}
	for _, from := range []source.Source{
		source.Kind(c.works, client.Object(&placement.Work{}), &handler.TypedEnqueueRequestForObject[client.Object]{}),
		source.Kind(c.applied, client.Object(&placement.AppliedWork{}), handler.EnqueueRequestsFromMapFunc(c.ofApplied)),
		source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			c.ledger.wakeBy(func(work string) { queue.Add(c.request(work)) })
			return nil
		}),
	} {
		if err := loop.Watch(from); err != nil {
			return err
		}
	}
	return c.together(ctx, c.works.Start, c.applied.Start, c.kinds.run, loop.Start, c.begin, c.untilUnserved)
}

// untilUnserved ends everything when this cluster serves no AppliedWorks any more, so that it is said and Run begins anew.
func (c *Controller) untilUnserved(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.unserved:
		return errUnserved
	}
}

// endUnserved ends Run, because this cluster serves no AppliedWorks any more.
func (c *Controller) endUnserved() { c.unserve.Do(func() { close(c.unserved) }) }

// begin tells whether there is any Work at first.
func (c *Controller) begin(ctx context.Context) error {
	if _, err := c.works.GetInformer(ctx, &placement.Work{}); err == nil { // it returns when that is synced; an error is the loop's, too
		c.rest(ctx)
	}
	<-ctx.Done()
	return nil
}

// rest tells whether there is any Work, and how they stand.
func (c *Controller) rest(ctx context.Context) {
	c.resting.Lock()
	defer c.resting.Unlock()
	var works placement.WorkList
	if err := c.hub.List(ctx, &works, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return // the cache, which answers, is not there yet
	}
	if c.Tell != nil {
		if told, is := c.tally.news(works.Items); is {
			c.Tell(told)
		}
	}
	if c.Idle != nil {
		c.Idle(len(works.Items) == 0)
	}
}

// together runs all parts until one ends, and returns why.
func (c *Controller) together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() { cancel(part(ctx)) })
	}
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (c *Controller) request(work string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: c.Namespace, Name: work}}
}

// ofApplied leads from an AppliedWork to its Work.
func (c *Controller) ofApplied(_ context.Context, o client.Object) []reconcile.Request {
	c.poke()
	if applied := o.(*placement.AppliedWork); applied.Spec.WorkNamespace != c.Namespace {
		return nil
	}
	return []reconcile.Request{c.request(o.GetName())}
}

func (c *Controller) poke() {
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

// notice takes note of what became of an applied object: before and after, nil if there is none.
func (c *Controller) notice(before, after *record) {
	c.poke()
	c.ledger.noticed(before, after)
}

// listed looks again at the Works that have objects of a kind which is watched from now on.
func (c *Controller) listed(works []string) {
	c.poke()
	c.ledger.awake(works)
}
