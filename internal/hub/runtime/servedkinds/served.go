// Package servedkinds tracks the kinds served by the hub cluster. The deletion of a
// CustomResourceDefinition then costs only the objects of the kind. Informers continue, and
// controllers write again as soon as the API server serves the kind again. Before a controller
// treats an object as deleted, it checks here for a deletion of the kind.
//
// Servedkinds writes nothing. Its invariant: the state of an object deleted with its definition is
// unknown, never gone.
package servedkinds

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/restore"
)

// DefinitionKind is the kind of definitions. The cache holds their metadata.
var DefinitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// retryInterval bounds the time until the hub notices a kind served again. Of several API servers,
// one may serve a kind later than another has its definition.
const retryInterval = 10 * time.Second

// Kinds tracks the missing kinds.
type Kinds struct {
	clock  clock.Clock
	log    logr.Logger
	scheme *runtime.Scheme
	live   client.Reader
	mapper meta.RESTMapper

	mu sync.Mutex
	// changed is closed when a definition changes.
	changed chan struct{}
	// missing holds the kinds with waiting informers.
	missing     map[schema.GroupVersionKind]bool
	subscribers []chan event.GenericEvent
}

// New returns a Kinds without missing kinds.
func New(clock clock.Clock, log logr.Logger, scheme *runtime.Scheme) *Kinds {
	return &Kinds{clock: clock, log: log, scheme: scheme, changed: make(chan struct{}), missing: map[schema.GroupVersionKind]bool{}}
}

// Register follows the definitions in the manager's cache. NewInformer creates the informers of
// this cache.
func (k *Kinds) Register(ctx context.Context, mgr ctrl.Manager) error {
	k.live, k.mapper = mgr.GetAPIReader(), mgr.GetRESTMapper()
	definitions, err := mgr.GetCache().GetInformer(ctx, kube.Metadata(DefinitionKind))
	if err != nil {
		return fmt.Errorf("watching CustomResourceDefinitions: %w", err)
	}
	_, err = definitions.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, atStart bool) {
			k.signal()
			if !atStart {
				k.created(o)
			}
		},
		UpdateFunc: func(any, any) { k.signal() },
	})
	return err
}

// created handles a new definition. No informer may have noticed a short absence of its kind.
func (k *Kinds) created(definition any) {
	o, ok := definition.(client.Object)
	if !ok {
		return
	}
	if _, group, _ := strings.Cut(o.GetName(), "."); k.scheme.IsGroupRegistered(group) {
		k.notify(o)
	}
}

// signal wakes the informers waiting for a kind.
func (k *Kinds) signal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.changed = make(chan struct{})
}

func (k *Kinds) nextChange() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

// Subscribe returns a channel with an event for each missing kind served again, and for each new
// definition of a kind. Subscribe before the manager starts.
func (k *Kinds) Subscribe() <-chan event.GenericEvent {
	subscriber := make(chan event.GenericEvent, 1)
	k.subscribers = append(k.subscribers, subscriber)
	return subscriber
}

// NewInformer returns an informer for a kind. While the API server does not serve the kind, the
// informer waits instead of retrying with back-off.
func (k *Kinds) NewInformer(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	kind, err := apiutil.GVKForObject(o, k.scheme)
	if err != nil {
		panic(err) // a bug in this program
	}
	patient := restore.Survive(lw)
	return toolscache.NewSharedIndexInformer(restore.InPages(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
			err = k.whenServed(ctx, kind, func() error {
				list, err = patient.ListWithContext(ctx, options)
				return err
			})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (events watch.Interface, err error) {
			err = k.whenServed(ctx, kind, func() error {
				events, err = patient.WatchWithContext(ctx, options)
				return err
			})
			return events, err
		},
	}), o, resync, indexers)
}

// whenServed calls ask, and again after each change of a definition as long as the API server does
// not serve the kind.
func (k *Kinds) whenServed(ctx context.Context, kind schema.GroupVersionKind, ask func() error) error {
	for {
		changed := k.nextChange() // before the call, to miss no change
		err := ask()
		if !kube.NotServed(err) {
			k.found(kind)
			return err
		}
		k.lost(kind)
		timer := k.clock.NewTimer(retryInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-changed:
		case <-timer.C():
		}
		timer.Stop()
	}
}

func (k *Kinds) lost(kind schema.GroupVersionKind) {
	k.mu.Lock()
	known := k.missing[kind]
	k.missing[kind] = true
	k.mu.Unlock()
	if !known {
		k.log.Info("The hub cluster does not serve a kind any more: install the fleet-crd chart again; until then nothing is removed because of "+
			"it", "kind", kind.String())
	}
}

func (k *Kinds) found(kind schema.GroupVersionKind) {
	k.mu.Lock()
	was := k.missing[kind]
	delete(k.missing, kind)
	k.mu.Unlock()
	if !was {
		return
	}
	k.log.Info("The hub cluster serves a kind again", "kind", kind.String())
	k.notify(kube.Metadata(kind))
}

func (k *Kinds) notify(o client.Object) {
	for _, subscriber := range k.subscribers {
		select {
		case subscriber <- event.GenericEvent{Object: o}:
		default: // an event is pending already
		}
	}
}

// Deleted returns the name of the first missing or terminating CustomResourceDefinition of the
// kinds, or "". It queries the API server, because a cache may show the deletion of an object
// before the deletion of its definition.
func (k *Kinds) Deleted(ctx context.Context, kinds ...client.Object) (string, error) {
	for _, object := range kinds {
		kind, err := apiutil.GVKForObject(object, k.scheme)
		if err != nil {
			return "", err
		}
		mapping, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if kube.NotServed(err) {
			resource, _ := meta.UnsafeGuessKindToResource(kind) // right for all kinds of the fleet
			return resource.GroupResource().String(), nil
		} else if err != nil {
			return "", fmt.Errorf("looking up %s: %w", kind.GroupKind(), err)
		}
		name := mapping.Resource.GroupResource().String()
		definition := kube.Metadata(DefinitionKind)
		err = k.live.Get(ctx, client.ObjectKey{Name: name}, definition)
		if apierrors.IsNotFound(err) || err == nil && definition.DeletionTimestamp != nil {
			return name, nil
		} else if err != nil {
			return "", fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
		}
	}
	return "", nil
}

// Kept returns the message on an object deleted with its definition: the hub keeps the object, and
// the remedy.
func Kept(definition string) string {
	return fmt.Sprintf("it is kept, and nothing is removed from any cluster, because the CustomResourceDefinition %s is gone or being "+
		"deleted: install the fleet-crd chart. If the definition waits for its objects, stop the hub, save them, take their finalizers off, "+
		"install the chart, create them again and start the hub", definition)
}

// Again enqueues every object in the lists when the API server serves a kind again, without the
// back-off of earlier failures.
func (k *Kinds) Again(reader client.Reader, lists ...client.ObjectList) source.Source {
	return source.Channel(k.Subscribe(), handler.Funcs{
		GenericFunc: func(ctx context.Context, _ event.GenericEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			for _, list := range lists {
				found := list.DeepCopyObject().(client.ObjectList)
				if err := reader.List(ctx, found, client.UnsafeDisableDeepCopy); err != nil {
					ctrl.LoggerFrom(ctx).Error(err, "Failed to list the objects that depend on a served kind")
					continue
				}
				_ = meta.EachListItem(found, func(o runtime.Object) error { // the function never fails
					request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o.(client.Object))}
					q.Forget(request)
					q.Add(request)
					return nil
				})
			}
		},
	})
}
