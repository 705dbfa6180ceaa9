package placement

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/kube"
)

// minServedWait and maxServedWait limit the wait for a new kind: the API server serves it a moment
// after its definition exists. The wait doubles with each query. The queries end at maxServedWait,
// because a definition with conflicting names is never served.
const minServedWait, maxServedWait = 250 * time.Millisecond, 16 * time.Second

// definitions follows the CustomResourceDefinitions of the hub cluster. It reconciles one at a
// time and needs no lock.
type definitions struct {
	*Controller
	known map[string]definition
	// backoff is the last wait for an unserved definition.
	backoff map[string]time.Duration
}

// definition is the part of a CustomResourceDefinition with an effect on placements.
type definition struct {
	uid        types.UID
	generation int64
	served     bool
}

// invalidates reports whether a change can make the cache of kinds wrong: a cached kind has a
// changed definition now. A new definition makes nothing wrong, because the cache queries the
// server for unknown kinds.
func (d definition) invalidates(before definition) bool { return before.served && d != before }

// registerKinds adds the controller for added, changed and removed kinds: it requeues all
// placements.
func (c *Controller) registerKinds(mgr ctrl.Manager) error {
	d := &definitions{Controller: c, known: map[string]definition{}, backoff: map[string]time.Duration{}}
	return ctrl.NewControllerManagedBy(mgr).Named("placement-kinds").For(kube.Metadata(servedkinds.DefinitionKind)).Complete(d)
}

// Reconcile enqueues all placements if a definition's served state changed.
func (d *definitions) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := kube.Metadata(servedkinds.DefinitionKind)
	err := d.Client.Get(ctx, request.NamespacedName, object)
	if apierrors.IsNotFound(err) {
		delete(d.known, request.Name)
		delete(d.backoff, request.Name)
		d.selector.Kinds.Invalidate()
		d.enqueue(types.NamespacedName{})
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading CustomResourceDefinition %s: %w", request.Name, err)
	}
	isServed, err := d.selector.Kinds.Serves(schema.ParseGroupResource(request.Name)) // Kubernetes admits no other name
	if err != nil {
		return reconcile.Result{}, err
	}
	current := definition{uid: object.GetUID(), generation: object.GetGeneration(), served: isServed}
	if before := d.known[request.Name]; current != before {
		if current.invalidates(before) {
			d.selector.Kinds.Invalidate()
		}
		d.known[request.Name] = current
		delete(d.backoff, request.Name)
		d.enqueue(types.NamespacedName{})
	}
	wait := max(minServedWait, 2*d.backoff[request.Name])
	if current.served || wait > maxServedWait {
		return reconcile.Result{}, nil
	}
	d.backoff[request.Name] = wait
	return reconcile.Result{RequeueAfter: wait}, nil
}
