// Package applied watches the applied objects on the member, kind by kind, and keeps a summary of
// each. It compares objects with their applied state, and counts the rest during removal. Bundles
// and Works both use it.
//
// It writes nothing. Its invariant: it keeps only summaries, and only of objects with Muster's
// label. Memory therefore grows with the number of objects, not with their size.
package applied

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/restore"
	"github.com/muster-fleet/muster/internal/retry"
)

// Query selects the objects of one watch: the objects of a resource with the label, or one named
// object.
type Query struct {
	schema.GroupVersionResource
	types.NamespacedName
}

// String formats the query for logs.
func (q Query) String() string {
	return q.GroupVersionResource.String() + " " + q.NamespacedName.String()
}

// Watcher keeps a summary S of each object selected by the queries in use.
type Watcher[S any] struct {
	// Objects reads the member; Label selects the objects of a query without a name.
	Objects   dynamic.Interface
	Label     string
	Summarize func(*unstructured.Unstructured) S
	// Changed is called after an object was added, changed or deleted, with its summary before and
	// after; nil if there is none.
	Changed func(object Query, before, after *S)
	// Listed is called after the first list of a query, with its users, because earlier deletions send
	// no event.
	Listed func(users []string)

	mu      sync.Mutex
	ctx     context.Context // nil unless Run is running
	running sync.WaitGroup
	stores  map[Query]*store[S]
	users   map[string]map[Query]bool
}

// Run watches until ctx ends.
func (w *Watcher[S]) Run(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for _, store := range w.stores {
		w.start(store)
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	w.ctx = nil // no watch starts any more
	w.mu.Unlock()
	// The last list of a watch takes the lock, so Run must not hold it here.
	w.running.Wait()
	return nil
}

// Use replaces the queries of a user. A query without users is no longer watched.
func (w *Watcher[S]) Use(user string, queries map[Query]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users == nil {
		w.users, w.stores = map[string]map[Query]bool{}, map[Query]*store[S]{}
	}
	w.users[user] = queries
	if len(queries) == 0 {
		delete(w.users, user)
	}
	needed := map[Query]bool{}
	for _, used := range w.users {
		maps.Copy(needed, used)
	}
	for query := range needed {
		if w.stores[query] == nil {
			w.stores[query] = newStore(w, query)
			w.start(w.stores[query])
		}
	}
	for query, store := range w.stores {
		if !needed[query] {
			store.stop()
			delete(w.stores, query)
		}
	}
}

func (w *Watcher[S]) usersOf(query Query) (users []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for user, queries := range w.users {
		if queries[query] {
			users = append(users, user)
		}
	}
	return users
}

// start starts a watch if Run is running. The caller holds the lock.
func (w *Watcher[S]) start(s *store[S]) {
	s.stop = func() {}
	if w.ctx == nil {
		return
	}
	// A kind without a watch cannot be applied either, and the apply reports it.
	ctx, cancel := context.WithCancel(klog.NewContext(w.ctx, logr.Discard()))
	s.stop = cancel
	objects := w.Objects.Resource(s.query.GroupVersionResource).Namespace(s.query.Namespace)
	narrow := func(options *metav1.ListOptions) { options.LabelSelector = w.Label }
	if s.query.Name != "" {
		narrow = func(options *metav1.ListOptions) { options.FieldSelector = kubeclient.Name(s.query.Name) }
	}
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			narrow(&options)
			list, err := objects.List(ctx, options)
			s.answered(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			narrow(&options)
			watching, err := objects.Watch(ctx, options)
			s.answered(err)
			return watching, err
		},
	}
	silent, backoff := logr.Discard(), retry.Watch()
	reflector := cache.NewReflectorWithOptions(restore.Survive(listWatch), &unstructured.Unstructured{}, s, cache.ReflectorOptions{
		Logger: &silent, Name: "applied " + s.query.String(), Backoff: &backoff,
	})
	w.running.Go(func() { reflector.RunWithContext(ctx) })
}

// Sight is the watches' knowledge of an object.
type Sight string

const (
	// Unsure means that no watch has reached the requested resource version.
	Unsure Sight = "Unsure"
	// Absent means that no watched object has the name.
	Absent Sight = "Absent"
	// Present means that the object exists.
	Present Sight = "Present"
)

// CatchUp bounds the lag of a watch behind a written resource version. The watch is then trusted:
// its API server was restored from a snapshot, and its versions went back.
const CatchUp = 30 * time.Second

// Get returns the summary of an object, as of a resource version or later; any
// version if that is empty.
func (w *Watcher[S]) Get(query Query, name types.NamespacedName, since string) (summary S, sight Sight) {
	store := w.store(query)
	if store == nil {
		return summary, Unsure
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	if store.version == "" || store.version != unserved && since != "" && Older(store.version, since) {
		return summary, Unsure
	}
	if found := store.summaries[name]; found != nil {
		return *found, Present
	}
	return summary, Absent
}

// Failure returns the last error of listing or watching a query; nil after a success.
func (w *Watcher[S]) Failure(query Query) error {
	store := w.store(query)
	if store == nil {
		return nil
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	return store.failure
}

func (w *Watcher[S]) store(query Query) *store[S] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stores[query]
}

// Older reports whether one resource version of an API server is before another. An invalid version
// is before none.
func Older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// unserved replaces the resource version of an unserved kind.
const unserved = "unserved"

// store holds the summaries of one watch.
type store[S any] struct {
	kubeclient.Events[*summarized[S]]
	watcher *Watcher[S]
	query   Query
	stop    context.CancelFunc

	mu        sync.Mutex
	summaries map[types.NamespacedName]*S
	// version is the progress of the watch; empty before the first list.
	version string
	failure error
}

func newStore[S any](w *Watcher[S], query Query) *store[S] {
	s := &store[S]{watcher: w, query: query, summaries: map[types.NamespacedName]*S{}}
	s.Events = kubeclient.Events[*summarized[S]]{
		Read: s.reduce,
		Put:  func(o *summarized[S]) { s.put(o, false) },
		Drop: func(o *summarized[S]) { s.put(o, true) },
		List: s.replace,
	}
	return s
}

// summarized is the kept part of an object between the decoder and the store.
type summarized[S any] struct {
	metav1.ObjectMeta
	summary S
}

func (s *store[S]) reduce(obj any) *summarized[S] {
	if reduced, ok := obj.(*summarized[S]); ok {
		return reduced
	}
	object := obj.(*unstructured.Unstructured)
	return &summarized[S]{
		metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: object.GetName(), ResourceVersion: object.GetResourceVersion(), UID: object.GetUID(),
		},
		s.watcher.Summarize(object),
	}
}

// put stores the summary of an object, or removes it if the object was deleted.
func (s *store[S]) put(object *summarized[S], deleted bool) {
	name := nameOf(object)
	s.mu.Lock()
	before, after := s.summaries[name], &object.summary
	if deleted {
		after = nil
		delete(s.summaries, name)
	} else {
		s.summaries[name] = after
	}
	if s.version != "" && Older(s.version, object.ResourceVersion) {
		s.version = object.ResourceVersion
	}
	s.mu.Unlock()
	s.changed(name, before, after)
}

func (s *store[S]) changed(name types.NamespacedName, before, after *S) {
	s.watcher.Changed(Query{s.query.GroupVersionResource, name}, before, after)
}

// answered handles the answer to a list or the start of a watch. An unserved kind has no objects.
func (s *store[S]) answered(err error) {
	s.mu.Lock()
	s.failure = err
	s.mu.Unlock()
	if apierrors.IsNotFound(err) {
		s.replace(nil, unserved)
	}
}

func (s *store[S]) replace(list []*summarized[S], version string) {
	fresh := make(map[types.NamespacedName]*S, len(list))
	for _, object := range list {
		fresh[nameOf(object)] = &object.summary
	}
	s.mu.Lock()
	before, first := s.summaries, s.version == ""
	s.summaries, s.version = maps.Clone(fresh), version
	s.mu.Unlock()
	for name, summary := range fresh {
		s.changed(name, before[name], summary)
		delete(before, name)
	}
	for name, summary := range before {
		s.changed(name, summary, nil)
	}
	if first {
		s.watcher.Listed(s.watcher.usersOf(s.query))
	}
}

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}
