package work

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/restore"
)

// query is what one watch follows: the objects of a kind that carry the agent's label, or the one of a name.
type query struct {
	schema.GroupVersionResource
	types.NamespacedName
}

// labelled follows what was applied of a kind.
func labelled(resource schema.GroupVersionResource) query {
	return query{GroupVersionResource: resource}
}

// kinds watches the kinds that are applied, and of each only what was applied, or is to be compared. It keeps a record per object.
type kinds struct {
	objects dynamic.Interface
	notify  func(before, after *record)
	// listed is told whose kind was listed for the first time: what went before that is no event.
	listed func(who []string)

	mu      sync.Mutex
	ctx     context.Context // nil until run
	running sync.WaitGroup
	watched map[query]*kind
	users   map[string]map[query]bool
}

func newKinds(objects dynamic.Interface, notify func(before, after *record), listed func(who []string)) *kinds {
	return &kinds{
		objects: objects, notify: notify, listed: listed,
		watched: map[query]*kind{}, users: map[string]map[query]bool{},
	}
}

// run watches until ctx ends.
func (k *kinds) run(ctx context.Context) error {
	k.mu.Lock()
	k.ctx = ctx
	for of, one := range k.watched {
		k.start(of, one)
	}
	k.mu.Unlock()
	<-ctx.Done()
	k.mu.Lock()
	k.ctx = nil // no watch begins any more
	k.mu.Unlock()
	// A watch that ends with a first list wants the lock, so it is not held here.
	k.running.Wait()
	return nil
}

// use tells which watches somebody needs from now on; what nobody needs is no longer watched.
func (k *kinds) use(who string, queries map[query]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.users[who] = queries
	if len(queries) == 0 {
		delete(k.users, who)
	}
	needed := map[query]bool{}
	for _, used := range k.users {
		maps.Copy(needed, used)
	}
	for of := range needed {
		if k.watched[of] == nil {
			k.watched[of] = &kind{notify: k.notify, listed: func() { k.listed(k.usersOf(of)) }, records: map[types.NamespacedName]*record{}}
			k.start(of, k.watched[of])
		}
	}
	for of, one := range k.watched {
		if !needed[of] {
			one.cancel()
			delete(k.watched, of)
		}
	}
}

// usersOf are those who need a watch.
func (k *kinds) usersOf(of query) (who []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for user, queries := range k.users {
		if queries[of] {
			who = append(who, user)
		}
	}
	return who
}

// start begins to watch, if this is running. The lock is held.
func (k *kinds) start(of query, one *kind) {
	one.cancel = func() {}
	if k.ctx == nil {
		return
	}
	// What fails to be watched fails to be applied, too, and that is where it is reported.
	ctx, cancel := context.WithCancel(klog.NewContext(k.ctx, logr.Discard()))
	one.cancel = cancel
	objects := k.objects.Resource(of.GroupVersionResource).Namespace(of.Namespace)
	narrow := func(options *metav1.ListOptions) { options.LabelSelector = labelWork }
	if of.Name != "" {
		narrow = func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, of.Name).String()
		}
	}
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			narrow(&options)
			list, err := objects.List(ctx, options)
			one.served(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			narrow(&options)
			watching, err := objects.Watch(ctx, options)
			one.served(err)
			return watching, err
		},
	}
	silent, again := logr.Discard(), retry.Watch()
	reflector := cache.NewReflectorWithOptions(restore.Survive(listWatch), &unstructured.Unstructured{}, one, cache.ReflectorOptions{
		Logger: &silent, Name: "applied " + of.String(), Backoff: &again,
	})
	k.running.Go(func() { reflector.RunWithContext(ctx) })
}

// unserved stands for the version of a kind that the API does not serve.
const unserved = "unserved"

// sight is what is known of an object without asking.
type sight string

const (
	// unsure: the watch is not yet as far as the version that was asked about.
	unsure sight = "Unsure"
	// absent: there is no such object among those that are watched.
	absent sight = "Absent"
	// present: there is.
	present sight = "Present"
)

// catchUp is how long a watch may be behind a version that was written. One that still is after that follows an API server whose versions have
// gone back, because it was restored from a snapshot, and is believed.
const catchUp = 30 * time.Second

// look returns what is known of an object, as of the given version or later.
func (k *kinds) look(of query, name types.NamespacedName, since string) (record, sight) {
	k.mu.Lock()
	one := k.watched[of]
	k.mu.Unlock()
	if one == nil {
		return record{}, unsure
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.version == "" || one.version != unserved && since != "" && older(one.version, since) {
		return record{}, unsure
	}
	if found := one.records[name]; found != nil {
		return *found, present
	}
	return record{}, absent
}

func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// String is the query for logs.
func (q query) String() string {
	return q.GroupVersionResource.String() + " " + q.NamespacedName.String()
}

// kind is the store of one watch.
type kind struct {
	notify func(before, after *record)
	listed func()
	cancel context.CancelFunc

	mu      sync.Mutex
	records map[types.NamespacedName]*record
	// version is how far the watch has come; empty before it has begun.
	version string
}

// put takes over an object, or with nil that it is gone.
func (k *kind) put(object *unstructured.Unstructured, gone bool) {
	is := recordOf(object)
	k.mu.Lock()
	was, after := k.records[is.key.NamespacedName], &is
	if gone {
		after = nil
		delete(k.records, is.key.NamespacedName)
	} else {
		k.records[is.key.NamespacedName] = after
	}
	if k.version != "" && older(k.version, is.version) {
		k.version = is.version
	}
	k.mu.Unlock()
	k.notify(was, after)
}

// served learns from the answer whether the kind is still served; if it is not, nothing of it is there.
func (k *kind) served(err error) {
	if apierrors.IsNotFound(err) {
		_ = k.Replace(nil, unserved) // it returns no error
	}
}

// Add implements cache.ReflectorStore.
func (k *kind) Add(object any) error {
	k.put(object.(*unstructured.Unstructured), false)
	return nil
}

// Update implements cache.ReflectorStore.
func (k *kind) Update(object any) error { return k.Add(object) }

// Delete implements cache.ReflectorStore.
func (k *kind) Delete(object any) error {
	k.put(object.(*unstructured.Unstructured), true)
	return nil
}

// Replace implements cache.ReflectorStore.
func (k *kind) Replace(list []any, version string) error {
	k.mu.Lock()
	before := k.records
	k.records = make(map[types.NamespacedName]*record, len(list))
	for _, object := range list {
		r := recordOf(object.(*unstructured.Unstructured))
		k.records[r.key.NamespacedName] = &r
	}
	first := k.version == ""
	k.version = version
	after := maps.Clone(k.records)
	k.mu.Unlock()
	for name, r := range after {
		k.notify(before[name], r)
		delete(before, name)
	}
	for _, r := range before {
		k.notify(r, nil)
	}
	if first {
		k.listed()
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (k *kind) Resync() error { return nil }
