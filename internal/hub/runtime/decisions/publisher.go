package decisions

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/kube"
)

// byOwner indexes PlacementDecisions by the UID of their controlling owner.
const byOwner = "owner"

// maxWaiting bounds the changes that wait for a controller.
const maxWaiting = 1024

// startsWithin is the usual time to start and fill the cache.
const startsWithin = time.Second

// Publisher writes PlacementDecisions. Nil publishes nothing.
type Publisher struct {
	controller.Deps
	mgr manager.Manager

	mu sync.Mutex
	// cache has the PlacementDecisions of the hub; nil until the API server serves the kind.
	cache cache.Cache
	// subscribers get the owner of each deleted or changed PlacementDecision, by the owner's kind.
	subscribers map[string]chan event.GenericEvent
	expected    kube.Expectations
	// reported has the PlacementDecisions of other owners with an Event.
	reported kube.Memory[types.NamespacedName, types.UID]
}

// New returns a publisher.
func New(deps controller.Deps, mgr manager.Manager) *Publisher {
	return &Publisher{Deps: deps, mgr: mgr, expected: kube.Expectations{Clock: deps.Clock}, subscribers: map[string]chan event.GenericEvent{}}
}

// Subscribe returns a channel of owners of a kind, whose PlacementDecisions were changed or
// deleted. Subscribe before the manager starts.
func (p *Publisher) Subscribe(kind string) <-chan event.GenericEvent {
	if p == nil {
		return nil
	}
	p.subscribers[kind] = make(chan event.GenericEvent, maxWaiting)
	return p.subscribers[kind]
}

// begin fills the cache, once the settings are on and the API server serves the kind. It returns
// the wait for an API server that has the definition and does not serve it yet.
func (p *Publisher) begin(ctx context.Context, on bool) (begun bool, wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cache != nil || !on {
		return p.cache != nil, 0, nil
	}
	for _, served := range []schemaKind{{kind.Kind, definition}, {"ClusterProfile", "clusterprofiles." + kind.Group}} {
		_, err := p.mgr.GetRESTMapper().RESTMapping(kind.GroupVersion().WithKind(served.kind).GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			err := p.Client.Get(ctx, types.NamespacedName{Name: served.definition}, kube.Metadata(servedkinds.DefinitionKind))
			if err != nil {
				return false, 0, client.IgnoreNotFound(err) // the event of the definition enqueues it
			}
			return false, servedAgain, nil
		} else if err != nil {
			return false, 0, fmt.Errorf("looking up %ss: %w", served.kind, err)
		}
	}
	made, err := p.fill(ctx)
	if err != nil {
		return false, 0, err
	}
	starting, cancel := context.WithTimeout(ctx, startsWithin)
	defer cancel()
	made.WaitForCacheSync(starting) // a read before it fails, and the controller repeats it
	p.cache = made
	return true, 0, nil
}

// schemaKind is a kind with its definition.
type schemaKind struct{ kind, definition string }

// fill makes the cache. The manager starts it.
func (p *Publisher) fill(ctx context.Context) (cache.Cache, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	filled, err := controller.NewLazyCache(p.mgr, "PlacementDecisions", map[client.Object]cache.ByObject{
		object: {Label: labels.SelectorFromSet(labels.Set{fleet.LabelManaged: "true"})},
	})
	if err != nil {
		return nil, err
	}
	err = filled.IndexField(ctx, object, byOwner, func(o client.Object) []string {
		if owner := metav1.GetControllerOf(o); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("indexing PlacementDecisions: %w", err)
	}
	informer, err := filled.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching PlacementDecisions: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, after any) { p.changed(after) }, DeleteFunc: p.changed,
	})
	return filled, err
}

// changed enqueues the owner of a changed PlacementDecision. The controller compares all of them.
func (p *Publisher) changed(o any) {
	if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	slice, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	owner := metav1.GetControllerOf(slice)
	if owner == nil || p.subscribers[owner.Kind] == nil || p.expected.Await(client.ObjectKeyFromObject(slice), slice) > 0 {
		return
	}
	named := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}}
	if owner.Kind != "ClusterResourcePlacement" {
		named.Namespace = slice.GetNamespace()
	}
	p.subscribers[owner.Kind] <- event.GenericEvent{Object: named}
}
