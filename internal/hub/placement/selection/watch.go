package selection

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/restore"
)

// Query is the scope of one watch. Placements with the same query share its watch.
type Query struct {
	Resource schema.GroupVersionResource
	// Namespace, Name and Labels restrict it, unless they are empty.
	Namespace, Name, Labels string
}

// Watches runs one watch for every query. Each user of a query is a placement.
type Watches struct {
	client dynamic.Interface
	rights *rights
	// notify is called with each user of a query after a change of its objects.
	notify func(user types.NamespacedName)

	mu sync.Mutex
	//nolint:containedctx // all watches end with it, and are started one by one
	ctx     context.Context
	watches map[Query]*queryWatch
	queries map[types.NamespacedName]map[Query]bool
}

// NewWatches returns Watches without users.
func NewWatches(client dynamic.Interface, notify func(types.NamespacedName)) *Watches {
	return &Watches{
		client: client, rights: newRights(client), notify: notify, watches: map[Query]*queryWatch{},
		queries: map[types.NamespacedName]map[Query]bool{},
	}
}

// Start lets watches run until the context ends.
func (w *Watches) Start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx = ctx
}

// Use replaces the queries of a user: it starts missing watches and stops watches without users.
func (w *Watches) Use(user types.NamespacedName, queries map[Query]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.queries[user]
	if w.queries[user] = maps.Clone(queries); len(queries) == 0 {
		delete(w.queries, user)
	}
	for query := range queries {
		if w.watches[query] == nil {
			ctx, cancel := context.WithCancel(w.ctx)
			q := &queryWatch{
				owner: w, cancel: cancel, users: map[types.NamespacedName]bool{}, objects: map[types.NamespacedName]*unstructured.Unstructured{},
			}
			w.watches[query] = q
			w.rights.add(query.Namespace, 1)
			go q.run(ctx, w.client, query)
		}
		w.watches[query].users[user] = true
	}
	for query := range before {
		if q := w.watches[query]; !queries[query] {
			delete(q.users, user)
			if len(q.users) == 0 {
				q.cancel()
				delete(w.watches, query)
				w.rights.add(query.Namespace, -1)
			}
		}
	}
}

// WatchRole retries refused queries as soon as the hub's role changes.
func (w *Watches) WatchRole() { w.Use(ofRole, map[Query]bool{role: true}) }

// Objects returns the objects of a query. They are synced after the server has listed them once;
// failure is the error of the last attempt.
func (w *Watches) Objects(query Query) (objects []*unstructured.Unstructured, synced bool, failure error) {
	q := w.watch(query)
	if q == nil {
		return nil, false, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Values(q.objects)), q.synced, q.failure
}

// Object returns one object of a query, or nil.
func (w *Watches) Object(query Query, key types.NamespacedName) *unstructured.Unstructured {
	q := w.watch(query)
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.objects[key]
}

func (w *Watches) watch(query Query) *queryWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.watches[query]
}

// queryWatch runs the watch of one query.
type queryWatch struct {
	owner  *Watches
	cancel context.CancelFunc
	users  map[types.NamespacedName]bool // guarded by the owner's mutex

	mu      sync.Mutex
	objects map[types.NamespacedName]*unstructured.Unstructured
	synced  bool
	failure error
}

// notify notifies the users of the query about changed objects.
func (q *queryWatch) notify() {
	q.owner.mu.Lock()
	users := maps.Clone(q.users)
	q.owner.mu.Unlock()
	for user := range users {
		if user == ofRole {
			q.owner.rights.renew()
		} else {
			q.owner.notify(user)
		}
	}
}

func (q *queryWatch) change(change func()) {
	q.mu.Lock()
	change()
	q.mu.Unlock()
	q.notify()
}

func keyOf(o *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// store returns the store for a reflector, kept equal to the server.
func (q *queryWatch) store() kubeclient.Events[*unstructured.Unstructured] {
	return kubeclient.Events[*unstructured.Unstructured]{
		Read: trim,
		Put:  func(o *unstructured.Unstructured) { q.change(func() { q.objects[keyOf(o)] = o }) },
		Drop: func(o *unstructured.Unstructured) { q.change(func() { delete(q.objects, keyOf(o)) }) },
		List: func(objects []*unstructured.Unstructured, _ string) {
			q.change(func() {
				q.synced, q.failure = true, nil
				q.objects = make(map[types.NamespacedName]*unstructured.Unstructured, len(objects))
				for _, o := range objects {
					q.objects[keyOf(o)] = o
				}
			})
		},
	}
}

// fail stores the server's error, and notifies users if it is new.
func (q *queryWatch) fail(err error) {
	q.mu.Lock()
	isNew := q.failure == nil || q.failure.Error() != err.Error()
	q.failure = err
	q.mu.Unlock()
	if isNew {
		q.notify()
	}
}

// backoff returns the delays after a failed watch: half a second to five minutes.
func backoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Cap: 5 * time.Minute, Factor: 2, Jitter: 0.3, Steps: 1 << 30}
}

// run lists and watches until the context ends.
func (q *queryWatch) run(ctx context.Context, client dynamic.Interface, query Query) {
	resource := client.Resource(query.Resource).Namespace(query.Namespace)
	restrict := func(options *metav1.ListOptions) {
		options.LabelSelector = query.Labels
		if query.Name != "" {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, query.Name).String()
		}
	}
	// The placement's status shows the failure; the reflector would log it again at every
	// attempt.
	ctx = klog.NewContext(ctx, logr.Discard())
	silent, reflectorBackoff := logr.Discard(), backoff()
	source := cache.ToListWatcherWithWatchListSemantics(restore.Survive(restore.ListWatch(resource, restrict)), client)
	options := cache.ReflectorOptions{Logger: &silent, Name: "placement", Backoff: &reflectorBackoff}
	reflector := cache.NewReflectorWithOptions(source, &unstructured.Unstructured{}, q.store(), options)
	delay := backoff().DelayWithReset(clock.RealClock{}, 10*time.Minute)
	for ctx.Err() == nil {
		if wait, renewed := q.owner.rights.refused(ctx, query); wait > 0 {
			q.fail(refusal(query))
			select {
			case <-ctx.Done():
			case <-renewed:
			case <-clock.RealClock{}.After(wait):
			}
			continue
		}
		if err := reflector.ListAndWatchWithContext(ctx); err != nil && ctx.Err() == nil {
			if apierrors.IsForbidden(err) {
				q.owner.rights.contradict(query.Namespace)
			}
			q.fail(err)
		}
		select {
		case <-ctx.Done():
		case <-clock.RealClock{}.After(delay()):
		}
	}
}
