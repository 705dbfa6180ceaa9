package dashboard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/explain"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/restore"
	"github.com/muster-fleet/muster/internal/view"
)

// A resource is a kind of objects that the roll has, by the name that it has for the API server.
const (
	clusters          = "clusters"
	memberClusters    = "memberclusters"
	tokens            = "clusterregistrationtokens"
	requests          = "clusterregistrations"
	bundles           = "bundles"
	clusterPlacements = "clusterresourceplacements"
	placements        = "resourceplacements"
)

// kind is how a resource is listed and watched.
type kind struct {
	group      string
	list       client.ObjectList
	example    client.Object
	namespaced bool
}

var kinds = map[string]kind{
	clusters:          {fleet.GroupVersion.Group, &fleet.ClusterList{}, &fleet.Cluster{}, true},
	memberClusters:    {clusterv1beta1.GroupVersion.Group, &clusterv1beta1.MemberClusterList{}, &clusterv1beta1.MemberCluster{}, false},
	tokens:            {fleet.GroupVersion.Group, &fleet.ClusterRegistrationTokenList{}, &fleet.ClusterRegistrationToken{}, true},
	requests:          {fleet.GroupVersion.Group, &fleet.ClusterRegistrationList{}, &fleet.ClusterRegistration{}, true},
	bundles:           {fleet.GroupVersion.Group, &fleet.BundleList{}, &fleet.Bundle{}, true},
	clusterPlacements: {placement.GroupVersion.Group, &placement.ClusterResourcePlacementList{}, &placement.ClusterResourcePlacement{}, false},
	placements:        {placement.GroupVersion.Group, &placement.ResourcePlacementList{}, &placement.ResourcePlacement{}, true},
}

// entry is an object of the roll with what the views say of it. It is never changed: a change of the object makes another one.
type entry struct {
	namespace, bare string
	name            string // with the namespace
	resource        string
	resourceVersion string
	labels          map[string]string
	state, why      string
	// version of Kubernetes, only of a member.
	version string
	// finding is what is wrong first; nil if nothing is.
	finding *explain.Finding
	// since is when a condition of it changed last; when it was made if none has.
	since time.Time
	// object is the whole, without what no view shows; nil of a member, of which there are many.
	object client.Object
}

// Name, State and Why are what templates show of it.
func (e *entry) Name() string  { return e.name }
func (e *entry) State() string { return e.state }

// Why is why it is not well; empty if it is.
func (e *entry) Why() string {
	if e.why == view.Nothing {
		return ""
	}
	return e.why
}

// roll is the fleet as it is now.
type roll struct {
	mu      sync.Mutex
	entries map[string]map[string]*entry // by resource and name
	sorted  map[string][]*entry          // the same in order; made when it is asked for
	failure map[string]error             // why a resource is not kept; nil if it is
	listed  map[string]bool
	changed chan struct{} // is closed by the next change
}

func newRoll() *roll {
	return &roll{entries: map[string]map[string]*entry{}, sorted: map[string][]*entry{}, failure: map[string]error{}, listed: map[string]bool{}, changed: make(chan struct{})}
}

// keep keeps the objects of all kinds, of one namespace or of all, until the context ends.
func (r *roll) keep(ctx context.Context, c client.WithWatch, namespace string) {
	var all sync.WaitGroup
	for resource, k := range kinds {
		from := objects{c, k.list, namespace, &atomic.Bool{}}
		if !k.namespaced {
			from.namespace = ""
		}
		all.Go(func() { r.follow(ctx, resource, from) })
	}
	all.Wait()
}

func (r *roll) follow(ctx context.Context, resource string, from objects) {
	store := &kubeclient.Store[client.Object]{
		Changed: make(chan struct{}, 1), // nobody reads it: viewers wait for the next change of the roll
		Strip:   slim,
		Put:     func(o client.Object) bool { return r.put(resource, o) },
		Drop:    func(o client.Object) { r.drop(resource, view.NameOf(o)) },
		Reset:   func() { r.reset(resource) },
	}
	everything := restore.ListWatch(from, func(*metav1.ListOptions) {})
	kubeclient.FollowBy(ctx, everything, kinds[resource].example, store, func(err error) {
		if err == nil && from.interrupted.Load() {
			err = errInterrupted
		}
		r.fail(resource, err)
	})
}

func (r *roll) put(resource string, o client.Object) bool {
	made := entryOf(resource, o)
	r.mu.Lock()
	defer r.mu.Unlock()
	if is := r.entries[resource][made.name]; is != nil && is.resourceVersion == made.resourceVersion {
		return false
	}
	if r.entries[resource] == nil {
		r.entries[resource] = map[string]*entry{}
	}
	r.entries[resource][made.name] = made
	r.touch(resource)
	return true
}

func (r *roll) drop(resource, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries[resource], name)
	r.touch(resource)
}

func (r *roll) reset(resource string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, resource)
	r.listed[resource] = true
	r.touch(resource)
}

func (r *roll) fail(resource string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if (r.failure[resource] == nil) != (err == nil) {
		r.touch(resource)
	}
	r.failure[resource] = err
}

// touch notes a change; the caller has the lock.
func (r *roll) touch(resource string) {
	delete(r.sorted, resource)
	close(r.changed)
	r.changed = make(chan struct{})
}

// next returns a channel that is closed by the next change.
func (r *roll) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// of returns the entries of a resource in the order of their names, and why they are not what is so now.
func (r *roll) of(resource string) ([]*entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sorted[resource] == nil {
		r.sorted[resource] = slices.SortedFunc(maps.Values(r.entries[resource]), func(a, b *entry) int { return strings.Compare(a.name, b.name) })
	}
	return r.sorted[resource], r.problem(resource)
}

// named returns the entry of a name, if there is one, as of does.
func (r *roll) named(resource, name string) ([]*entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[resource][name]; e != nil {
		return []*entry{e}, r.problem(resource)
	}
	return nil, r.problem(resource)
}

// problem is why the entries of a resource are not what is so now; the caller has the lock.
func (r *roll) problem(resource string) error {
	switch err := r.failure[resource]; {
	case err != nil && kube.NotServed(err):
		return fmt.Errorf("the hub serves no %s: the chart fleet-crd is not installed there, or is an older one", resource)
	case err != nil:
		return fmt.Errorf("%s: %w", resource, err)
	case !r.listed[resource]:
		return fmt.Errorf("%s have not been read yet", resource)
	}
	return nil
}

// isListed says whether the objects of a resource have been read once.
func (r *roll) isListed(resource string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listed[resource]
}

func entryOf(resource string, o client.Object) *entry {
	e := &entry{namespace: o.GetNamespace(), bare: o.GetName(), name: view.NameOf(o), resource: resource, resourceVersion: o.GetResourceVersion(), labels: o.GetLabels(),
		state: view.State(o), why: view.Because(o), since: changedAt(o)}
	if findings := explain.Of(o); len(findings) > 0 && !findings[0].Aside {
		e.finding = &findings[0]
	}
	if resource == clusters || resource == memberClusters {
		e.version = strings.Clone(view.Column(o, "VERSION", time.Now()))
	} else {
		e.object = o
	}
	return e
}

// changedAt is when a condition of an object changed last.
func changedAt(o client.Object) time.Time {
	last := o.GetCreationTimestamp().Time
	later := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	switch o := o.(type) {
	case *fleet.Cluster:
		for _, c := range o.Status.Conditions {
			if at, err := time.Parse(time.RFC3339, c.LastTransitionTime); err == nil { // an agent may have written something else
				later(at)
			}
		}
	case *clusterv1beta1.MemberCluster:
		for _, c := range o.Status.Conditions {
			later(c.LastTransitionTime.Time)
		}
	}
	return last
}

// slim drops what no view shows.
func slim(o client.Object) client.Object {
	o.SetManagedFields(nil)
	switch o := o.(type) {
	case *fleet.Cluster:
		o.Annotations, o.Spec = nil, fleet.ClusterSpec{}
	case *clusterv1beta1.MemberCluster:
		o.Annotations, o.Status.Namespaces = nil, nil
	case *fleet.ClusterRegistration:
		o.Status.Answer = nil
	case *fleet.Bundle:
		o.Annotations, o.Spec, o.Status.PartitionStatus = nil, fleet.BundleSpec{}, nil
	case *placement.ClusterResourcePlacement:
		o.Annotations, o.Status.PlacementStatuses, o.Status.SelectedResources = nil, nil, nil
	case *placement.ResourcePlacement:
		o.Annotations, o.Status.PlacementStatuses, o.Status.SelectedResources = nil, nil, nil
	}
	return o
}

// errInterrupted says that a watch has ended before it began.
var errInterrupted = errors.New("the API server of the hub cannot be reached")

// objects are those of a kind in a namespace, or in all.
type objects struct {
	client.WithWatch
	kind      client.ObjectList
	namespace string
	// interrupted says that the last watch was an empty one, which client-go returns instead of an error when a connection breaks.
	interrupted *atomic.Bool
}

// List implements restore.Objects.
func (o objects) List(ctx context.Context, options metav1.ListOptions) (client.ObjectList, error) {
	list := o.kind.DeepCopyObject().(client.ObjectList)
	return list, o.WithWatch.List(ctx, list, &client.ListOptions{Raw: &options, Namespace: o.namespace})
}

// Watch implements restore.Objects.
func (o objects) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := o.WithWatch.Watch(ctx, o.kind.DeepCopyObject().(client.ObjectList), &client.ListOptions{Raw: &options, Namespace: o.namespace})
	o.interrupted.Store(err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()))
	return w, err
}
