package dashboard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/restore"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// The resources in the cache of the fleet, by their names in the API server.
const (
	clusters          = "clusters"
	memberClusters    = "memberclusters"
	tokens            = "clusterregistrationtokens"
	requests          = "clusterregistrations"
	bundles           = "bundles"
	gitRepos          = "gitrepos"
	helmOps           = "helmops"
	clusterPlacements = "clusterresourceplacements"
	placements        = "resourceplacements"
	clusterRuns       = "clusterstagedupdateruns"
	runs              = "stagedupdateruns"
)

// kind is the data for listing and watching a resource.
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
	gitRepos:          {fleet.GroupVersion.Group, &fleet.GitRepoList{}, &fleet.GitRepo{}, true},
	helmOps:           {fleet.GroupVersion.Group, &fleet.HelmOpList{}, &fleet.HelmOp{}, true},
	clusterPlacements: {placement.GroupVersion.Group, &placement.ClusterResourcePlacementList{}, &placement.ClusterResourcePlacement{}, false},
	placements:        {placement.GroupVersion.Group, &placement.ResourcePlacementList{}, &placement.ResourcePlacement{}, true},
	clusterRuns:       {placement.GroupVersion.Group, &placement.ClusterStagedUpdateRunList{}, &placement.ClusterStagedUpdateRun{}, false},
	runs:              {placement.GroupVersion.Group, &placement.StagedUpdateRunList{}, &placement.StagedUpdateRun{}, true},
}

// fleetCache is the current state of the fleet.
type fleetCache struct {
	mu      sync.Mutex
	entries map[string]map[string]*entry // by resource and name
	sorted  map[string][]*entry          // the same in order; created on demand
	runs    map[runsOf]map[string]*entry // staged update runs by placement and name
	trends  trends
	delays  delayTrends
	failure map[string]error // why a resource is not up to date; nil if it is
	listed  map[string]bool
	readers map[*reader]bool
}

// reader waits for changes of some resources.
type reader struct {
	resources []string
	// name is the name of the only object shown in full; of others it shows table rows. Empty if there
	// is none.
	name string
	// changed is signalled.
	changed chan struct{}
}

func newFleetCache() *fleetCache {
	return &fleetCache{
		entries: map[string]map[string]*entry{}, sorted: map[string][]*entry{}, failure: map[string]error{}, listed: map[string]bool{},
		readers: map[*reader]bool{}, runs: map[runsOf]map[string]*entry{}, trends: trends{},
		delays: delayTrends{},
	}
}

// keep watches the objects of all kinds, in one namespace or in all, until the context ends.
func (r *fleetCache) keep(ctx context.Context, c client.WithWatch, namespace string) {
	log := logr.FromContextOrDiscard(ctx)
	var watches sync.WaitGroup
	for resource, k := range kinds {
		from := objects{c, k.list, namespace}
		if !k.namespaced {
			from.namespace = ""
		}
		watches.Go(func() {
			kubeclient.FollowBy(ctx, restore.ListWatch(from, func(*metav1.ListOptions) {}), k.example, r.store(resource), func(err error) {
				switch changed := r.fail(resource, err); {
				case changed && err != nil:
					log.Info("Failed to read a resource", "resource", resource, "reason", err.Error())
				case changed:
					log.Info("Resource is readable again", "resource", resource)
				}
			})
		})
	}
	watches.Wait()
}

func (r *fleetCache) put(resource string, o client.Object) {
	after := entryOf(resource, o)
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.entries[resource][after.name]
	if before != nil && before.resourceVersion == after.resourceVersion {
		return
	}
	if r.entries[resource] == nil {
		r.entries[resource] = map[string]*entry{}
	}
	r.entries[resource][after.name] = after
	r.indexRun(resource, before, after)
	r.count(before, -1)
	r.count(after, 1)
	r.wake(resource, after.name, before == nil || before.shown != after.shown)
}

func (r *fleetCache) drop(resource, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.indexRun(resource, r.entries[resource][name], nil)
	r.count(r.entries[resource][name], -1)
	delete(r.entries[resource], name)
	r.wake(resource, name, true)
}

// replace sets the objects of a resource, all at once.
func (r *fleetCache) replace(resource string, objects []client.Object) {
	entries := make(map[string]*entry, len(objects))
	for _, o := range objects {
		e := entryOf(resource, o)
		entries[e.name] = e
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries[resource] {
		r.indexRun(resource, e, nil)
	}
	maps.DeleteFunc(r.trends, func(of trendOf, _ map[int64]perReason) bool { return of.resource == resource })
	maps.DeleteFunc(r.delays, func(of trendOf, _ *delayCounts) bool { return of.resource == resource })
	for _, e := range entries {
		r.indexRun(resource, nil, e)
		r.count(e, 1)
	}
	r.entries[resource], r.listed[resource] = entries, true
	r.wake(resource, "", true)
}

// fail takes the outcome of an attempt to watch a resource, and reports whether it begins or ends
// a failure.
func (r *fleetCache) fail(resource string, err error) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = (r.failure[resource] == nil) != (err == nil)
	r.failure[resource] = err
	if changed {
		r.wake(resource, "", true)
	}
	return changed
}

// wake signals the readers waiting for a change of an object, or all readers if the name is empty.
// shown reports whether the object's table row changes. The caller has the lock.
func (r *fleetCache) wake(resource, name string, shown bool) {
	delete(r.sorted, resource)
	for waits := range r.readers {
		if slices.Contains(waits.resources, resource) && (name == "" || waits.name == name || shown && waits.name == "") {
			kubeclient.Notify(waits.changed)
		}
	}
}

// read signals changes of some resources, or of the object with a name, until it is ended.
func (r *fleetCache) read(name string, resources ...string) (waits *reader, end func()) {
	waits = &reader{resources, name, make(chan struct{}, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers[waits] = true
	return waits, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.readers, waits)
	}
}

// of returns the entries of a resource in the order of their names, and the reason why they are
// out of date.
func (r *fleetCache) of(resource string) ([]*entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sorted[resource] == nil {
		r.sorted[resource] = slices.SortedFunc(maps.Values(r.entries[resource]), func(a, b *entry) int { return strings.Compare(a.name, b.name) })
	}
	return r.sorted[resource], r.problem(resource)
}

// named returns the entry with a name, if there is one, as of does.
func (r *fleetCache) named(resource, name string) ([]*entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[resource][name]; e != nil {
		return []*entry{e}, r.problem(resource)
	}
	return nil, r.problem(resource)
}

// problem returns the reason why the entries of a resource are out of date; the caller has the
// lock.
func (r *fleetCache) problem(resource string) error {
	switch err := r.failure[resource]; {
	case err != nil && kube.NotServed(err):
		return fmt.Errorf("the hub does not serve %s: install or upgrade the chart fleet-crd", resource)
	case err != nil:
		return &accountError{resource, err}
	case !r.listed[resource]:
		return fmt.Errorf("%s have not been read yet", resource)
	}
	return nil
}

// accountError is the API server's answer to the account for reading the fleet.
type accountError struct {
	resource string
	error
}

func (e *accountError) Error() string { return e.resource + ": " + e.error.Error() }

func (e *accountError) Unwrap() error { return e.error }

// unanswered returns a resource without any answer of the API server so far, if there is one. A
// list, an unserved kind and a forbidden list are answers. listed is the number of listed
// resources.
func (r *fleetCache) unanswered() (resource string, listed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range kinds {
		if r.listed[one] {
			listed++
		} else if err := r.failure[one]; err == nil || !kube.NotServed(err) && !apierrors.IsForbidden(err) {
			resource = one
		}
	}
	return resource, listed
}

// store returns the store for the objects of a resource from a reflector.
func (r *fleetCache) store(resource string) kubeclient.Events[client.Object] {
	return kubeclient.Events[client.Object]{
		Read: func(o any) client.Object { return slim(o.(client.Object)) },
		Put:  func(o client.Object) { r.put(resource, o) },
		Drop: func(o client.Object) { r.drop(resource, view.NameOf(o)) },
		List: func(all []client.Object, _ string) { r.replace(resource, all) },
	}
}

// objects are the objects of a kind in a namespace, or in all.
type objects struct {
	client.WithWatch
	kind      client.ObjectList
	namespace string
}

// List implements restore.Objects.
func (o objects) List(ctx context.Context, options metav1.ListOptions) (client.ObjectList, error) {
	list := o.kind.DeepCopyObject().(client.ObjectList)
	return list, o.WithWatch.List(ctx, list, &client.ListOptions{Raw: &options, Namespace: o.namespace})
}

// Watch implements restore.Objects.
func (o objects) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return o.WithWatch.Watch(ctx, o.kind.DeepCopyObject().(client.ObjectList), &client.ListOptions{Raw: &options, Namespace: o.namespace})
}
