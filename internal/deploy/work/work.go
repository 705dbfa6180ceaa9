// Package work applies the manifests of every Work in the member namespace to this member. An
// AppliedWork owns the objects, and so all of them can be deleted again.
//
// On the hub it writes a finalizer, an annotation and the status of Works. On the member it writes
// AppliedWorks and the objects of the manifests.
//
// Its invariants: it deletes only objects applied under an AppliedWork of this membership. It
// deletes no object in another Work of the placement, and no object with data from before. Before
// it deletes objects of a deleted Work, it pauses, to let the hub create the Work again. It does
// not write an unchanged object.
package work

import (
	"cmp"
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
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/logging"
	"github.com/muster-fleet/muster/internal/restore"
)

const (
	// fieldOwner is the field manager of all applied objects; KubeFleet's agent uses the same.
	fieldOwner = "work-api-agent"
	// workers is the number of Works applied at once.
	workers = 4
	// firstRetry and lastRetry bound the delay of a Work after an error of the hub or of this cluster.
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// Deps are the dependencies of the controller.
type Deps struct {
	// Hub connects to the hub as the member, Member to this cluster as the agent.
	Hub, Member *rest.Config
	// Namespace is the member namespace on the hub. Membership is the UID of its report, to tell
	// AppliedWorks from the ones of an earlier membership under the same name.
	//
	// Lost are the UIDs of its reports from before a restore of the hub.
	Namespace  string
	Membership types.UID
	Lost       []string
	// Report is the name of the report, to recognize a Work with the label of another member.
	Report string
	Clock  clock.Clock
	Log    logr.Logger
	// Kept receives the deliveries unknown to a restored hub, at each change. The hub has KeptPause to
	// write its Works before; it defaults to two minutes. May be nil.
	Kept      func([]applied.Kept)
	KeptPause time.Duration
	// Idle receives true if there is no Work. A Work exists until its objects are deleted. May be nil.
	Idle func(bool)
	// Counted receives the states of the Works and the results at each change. May be nil.
	Counted func(protocol.Tally)
	// Seen receives each event of the watch of Works. May be nil.
	Seen func(protocol.Event)
	// ConfirmDeleted returns an error unless the hub confirms the deletion of a single Work, not of
	// the member or the CRD of Works. May be nil.
	ConfirmDeleted func(context.Context) error
	// Leaving is set if RemoveAll follows: no Work is applied any more.
	Leaving bool
}

// errUnserved describes the remedy for a cluster without AppliedWorks.
var errUnserved = errors.New("this cluster does not serve AppliedWork of placement.kubernetes-fleet.io, which owns what is applied: " +
	"upgrade the agent's chart, which installs the CRD; what is applied stays as it is until then")

// Controller applies Works.
type Controller struct {
	Deps
	// hub and member read Works and AppliedWorks from caches, hubLive and live from the API servers.
	hub, member         client.Client
	hubLive, live       client.Reader
	works, appliedWorks cache.Cache
	objects             dynamic.Interface
	mapper              meta.RESTMapper
	watcher             applied.Watcher[summary]
	tracker             tracker
	removals            removals
	expected            kube.Expectations
	counts              counts
	// unserved is closed to end Run once this cluster no longer serves AppliedWorks.
	unserved chan struct{}
	unserve  sync.Once
	// moved wakes RemoveAll after the deletion of an object.
	moved chan struct{}

	// reporting keeps the calls of Idle, Counted and Kept in order. kept was the last reported list,
	// if toldKept is set. settled is set after the pause of unknown deliveries.
	reporting         sync.Mutex
	kept              []applied.Kept
	toldKept, settled bool

	// leaving is set by RemoveAll; Reconcile holds the lock for reading.
	mu      sync.RWMutex
	leaving bool
}

// New makes a controller without sending a request.
func New(deps Deps) (*Controller, error) {
	scheme := runtime.NewScheme()
	if err := placement.AddToScheme(scheme); err != nil {
		return nil, err
	}
	deps.KeptPause = cmp.Or(deps.KeptPause, keptPause)
	c := &Controller{
		Deps: deps, moved: make(chan struct{}, 1), unserved: make(chan struct{}), leaving: deps.Leaving,
		expected: kube.Expectations{Clock: deps.Clock},
	}
	hub, err := connect(deps.Hub, scheme, hubKinds, cache.Options{DefaultNamespaces: map[string]cache.Config{deps.Namespace: {}}})
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the hub: %w", err)
	}
	member, err := connect(deps.Member, scheme, newMemberKinds, cache.Options{})
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to this cluster: %w", err)
	}
	c.hub, c.hubLive, c.works = hub.cached, hub.live, hub.cache
	c.member, c.live, c.appliedWorks = member.cached, member.live, member.cache
	c.mapper = member.live.RESTMapper()
	if c.objects, err = dynamic.NewForConfigAndClient(kubeclient.Unlimited(deps.Member), member.http); err != nil {
		return nil, fmt.Errorf("preparing the connection to this cluster: %w", err)
	}
	c.watcher.Objects, c.watcher.Label, c.watcher.Summarize = c.objects, labelWork, summarize
	c.watcher.Changed, c.watcher.Listed = c.objectChanged, c.listed
	return c, nil
}

// connection holds the cache and the clients of one API server.
type connection struct {
	cache cache.Cache
	// cached reads from the cache, live from the API server.
	cached, live client.Client
	http         *http.Client
}

func connect(
	config *rest.Config, scheme *runtime.Scheme, kinds func(*rest.Config, *http.Client) (meta.RESTMapper, error), options cache.Options,
) (connection, error) {
	config = kubeclient.Unlimited(config)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return connection{}, err
	}
	mapper, err := kinds(config, httpClient)
	if err != nil {
		return connection{}, err
	}
	options.Scheme, options.HTTPClient, options.Mapper = scheme, httpClient, mapper
	options.DefaultTransform, options.NewInformer = cache.TransformStripManagedFields(), restore.NewInformer
	connected := connection{http: httpClient}
	if connected.cache, err = cache.New(config, options); err != nil {
		return connection{}, err
	}
	clientOptions := client.Options{Scheme: scheme, HTTPClient: httpClient, Mapper: mapper}
	if connected.live, err = client.New(config, clientOptions); err != nil {
		return connection{}, err
	}
	clientOptions.Cache = &client.CacheOptions{Reader: connected.cache}
	connected.cached, err = client.New(config, clientOptions)
	return connected, err
}

// Run applies Works until ctx ends or a connection fails for good.
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
		source.Kind(c.appliedWorks, client.Object(&placement.AppliedWork{}), handler.EnqueueRequestsFromMapFunc(c.ofApplied)),
		source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			c.tracker.enqueueBy(func(work string) { queue.Add(c.request(work)) })
			return nil
		}),
	} {
		if err := loop.Watch(from); err != nil {
			return err
		}
	}
	return c.runAll(ctx, c.works.Start, c.appliedWorks.Start, c.watcher.Run, loop.Start, c.reportFirst, c.passOn, c.untilUnserved)
}

// untilUnserved returns an error once this cluster no longer serves AppliedWorks.
func (c *Controller) untilUnserved(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.unserved:
		return errUnserved
	}
}

// endUnserved ends Run because this cluster no longer serves AppliedWorks.
func (c *Controller) endUnserved() { c.unserve.Do(func() { close(c.unserved) }) }

// reportFirst calls Idle once the Works are listed.
func (c *Controller) reportFirst(ctx context.Context) error {
	if _, err := c.works.GetInformer(ctx, &placement.Work{}); err == nil { // waits for the sync; the controller returns the error
		c.reportIdle(ctx)
		c.settle(ctx)
	}
	<-ctx.Done()
	return nil
}

// reportIdle calls Idle and Counted with the state of the cache.
func (c *Controller) reportIdle(ctx context.Context) {
	c.reporting.Lock()
	defer c.reporting.Unlock()
	var works placement.WorkList
	if err := c.hub.List(ctx, &works, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return // the cache is not synced yet
	}
	if c.Counted != nil {
		if told, is := c.counts.news(works.Items); is {
			c.Counted(told)
		}
	}
	if kept := c.reportKept(ctx, works.Items); c.Idle != nil {
		c.Idle(len(works.Items) == 0 && !kept)
	}
}

// runAll runs all functions until one returns, and returns its error.
func (c *Controller) runAll(ctx context.Context, parts ...func(context.Context) error) error {
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

// ofApplied maps an AppliedWork to its Work.
func (c *Controller) ofApplied(_ context.Context, o client.Object) []reconcile.Request {
	kubeclient.Notify(c.moved)
	if appliedWork := o.(*placement.AppliedWork); appliedWork.Spec.WorkNamespace != c.Namespace && !c.isFromLost(appliedWork) {
		return nil
	}
	return []reconcile.Request{c.request(o.GetName())}
}

// objectChanged enqueues the Works of an added, changed or deleted object.
func (c *Controller) objectChanged(_ applied.Query, before, after *summary) {
	kubeclient.Notify(c.moved)
	c.tracker.changed(before, after)
}

// listed enqueues the Works with objects of a newly listed kind.
func (c *Controller) listed(works []string) {
	kubeclient.Notify(c.moved)
	c.tracker.enqueue(works)
}
