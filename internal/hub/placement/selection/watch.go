package selection

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/restore"
)

// Query is what one watch asks for. Whoever asks the same shares the watch.
type Query struct {
	Resource schema.GroupVersionResource
	// Namespace, Name and Labels restrict it, unless they are empty.
	Namespace, Name, Labels string
}

// Watches keeps a watch for every query that somebody uses, and none for others.
type Watches struct {
	client dynamic.Interface
	// notify is called when the answer to a query of a user has changed.
	notify func(user types.NamespacedName)

	mu sync.Mutex
	//nolint:containedctx // the life of all watches, which are started one by one
	ctx  context.Context
	byID map[Query]*answer
	used map[types.NamespacedName]map[Query]bool
}

// NewWatches returns none.
func NewWatches(client dynamic.Interface, notify func(types.NamespacedName)) *Watches {
	return &Watches{client: client, notify: notify, byID: map[Query]*answer{}, used: map[types.NamespacedName]map[Query]bool{}}
}

// Start lets watches run until the context ends.
func (w *Watches) Start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx = ctx
}

// Use makes queries those of a user, instead of those before: it starts what is missing and stops what nobody uses any more.
func (w *Watches) Use(user types.NamespacedName, queries map[Query]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.used[user]
	if w.used[user] = maps.Clone(queries); len(queries) == 0 {
		delete(w.used, user)
	}
	for query := range queries {
		if w.byID[query] == nil {
			w.start(query)
		}
		w.byID[query].users[user] = true
	}
	for query := range before {
		if !queries[query] {
			answer := w.byID[query]
			delete(answer.users, user)
			if len(answer.users) == 0 {
				answer.cancel()
				delete(w.byID, query)
			}
		}
	}
}

func (w *Watches) start(query Query) {
	ctx, cancel := context.WithCancel(w.ctx)
	answer := &answer{cancel: cancel, users: map[types.NamespacedName]bool{}, objects: map[types.NamespacedName]*unstructured.Unstructured{}}
	answer.changed = func() {
		w.mu.Lock()
		users := maps.Clone(answer.users)
		w.mu.Unlock()
		for user := range users {
			w.notify(user)
		}
	}
	w.byID[query] = answer
	go follow(ctx, w.client, query, answer)
}

// Answer is what a watch knows. It is known if the server has answered once; failure is why it has not, or not lately.
func (w *Watches) Answer(query Query) (objects []*unstructured.Unstructured, known bool, failure error) {
	w.mu.Lock()
	answer := w.byID[query]
	w.mu.Unlock()
	if answer == nil {
		return nil, false, nil
	}
	answer.mu.Lock()
	defer answer.mu.Unlock()
	for _, o := range answer.objects {
		objects = append(objects, o)
	}
	return objects, answer.known, answer.failure
}

// Count is how many watches run.
func (w *Watches) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byID)
}

// answer is the store that a reflector keeps equal to the server.
type answer struct {
	cancel  context.CancelFunc
	users   map[types.NamespacedName]bool // guarded by Watches
	changed func()

	mu      sync.Mutex
	objects map[types.NamespacedName]*unstructured.Unstructured
	known   bool
	failure error
}

func (a *answer) update(change func()) error {
	a.mu.Lock()
	change()
	a.mu.Unlock()
	a.changed()
	return nil
}

func keyOf(o *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// keep takes away what is only noise to the hub, for the sake of memory.
func keep(obj any) *unstructured.Unstructured {
	o := obj.(*unstructured.Unstructured)
	o.SetManagedFields(nil)
	return o
}

// Add implements cache.ReflectorStore.
func (a *answer) Add(obj any) error { return a.Update(obj) }

// Update implements cache.ReflectorStore.
func (a *answer) Update(obj any) error {
	o := keep(obj)
	return a.update(func() { a.objects[keyOf(o)] = o })
}

// Delete implements cache.ReflectorStore.
func (a *answer) Delete(obj any) error {
	return a.update(func() { delete(a.objects, keyOf(obj.(*unstructured.Unstructured))) })
}

// Replace implements cache.ReflectorStore.
func (a *answer) Replace(list []any, _ string) error {
	return a.update(func() {
		a.known, a.failure = true, nil
		a.objects = make(map[types.NamespacedName]*unstructured.Unstructured, len(list))
		for _, obj := range list {
			o := keep(obj)
			a.objects[keyOf(o)] = o
		}
	})
}

// Resync implements cache.ReflectorStore.
func (a *answer) Resync() error { return nil }

// fail records why the server did not answer, and says so once.
func (a *answer) fail(err error) {
	a.mu.Lock()
	news := a.failure == nil || a.failure.Error() != err.Error()
	a.failure = err
	a.mu.Unlock()
	if news {
		a.changed()
	}
}

// retry is how long a watch that failed waits: half a second to five minutes, because most often a right is missing.
func retry() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Cap: 5 * time.Minute, Factor: 2, Jitter: 0.3, Steps: 1 << 30}
}

// follow keeps the answer equal to what the server has until the context ends.
func follow(ctx context.Context, client dynamic.Interface, query Query, into *answer) {
	resource := client.Resource(query.Resource).Namespace(query.Namespace)
	restrict := func(options *metav1.ListOptions) {
		options.LabelSelector = query.Labels
		if query.Name != "" {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, query.Name).String()
		}
	}
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			restrict(&options)
			return resource.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			restrict(&options)
			return resource.Watch(ctx, options)
		},
	}
	// The placement says what failed; the reflector would say it again, at every attempt.
	ctx = klog.NewContext(ctx, logr.Discard())
	silent, again := logr.Discard(), retry()
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(restore.Survive(listWatch), client), &unstructured.Unstructured{}, into, cache.ReflectorOptions{Logger: &silent, Name: "placement", Backoff: &again})
	delay := retry().DelayWithReset(clock.RealClock{}, 10*time.Minute)
	for ctx.Err() == nil {
		if err := reflector.ListAndWatchWithContext(ctx); err != nil && ctx.Err() == nil {
			into.fail(err)
		}
		select {
		case <-ctx.Done():
		case <-clock.RealClock{}.After(delay()):
		}
	}
}
