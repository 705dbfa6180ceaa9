// Package unsupported handles the kinds of Rancher Fleet without an implementation in the hub. A
// condition on each object names Muster's replacement for the kind.
//
// Unsupported alone writes the condition Supported of these objects. Its invariant: it does not
// write an object again once the condition is set.
package unsupported

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/anyform"
	"github.com/muster-fleet/muster/internal/kube"
)

// kind is a kind without effect on the hub.
type kind struct {
	object client.Object
	// instead names the replacement for the kind.
	instead string
	// set sets a condition of an object.
	set func(o client.Object, condition fleet.Condition, now time.Time)
}

// kinds returns the kinds from the command line of Rancher Fleet. GitRepos and HelmOps are among
// them if no program reads repositories.
func kinds(withoutGitOps bool) []kind {
	kept := []kind{
		ofFleet(func(o *fleet.ImageScan) *[]fleet.Condition { return &o.Status.Conditions },
			"Muster scans no registries: have a tool such as Renovate write new tags into the repository of the Bundles"),
	}
	if withoutGitOps {
		for _, name := range []string{"GitRepo", "HelmOp"} {
			kept = append(kept, ofAnyForm(name,
				"the value gitops.enabled of the chart fleet is false, so Muster reads no repositories: set it to true"))
		}
	}
	return kept
}

// pointer is a client.Object and a pointer to a T.
type pointer[T any] interface {
	*T
	client.Object
}

func ofFleet[T any, P pointer[T]](conditions func(P) *[]fleet.Condition, instead string) kind {
	return kind{P(new(T)), instead, func(o client.Object, condition fleet.Condition, now time.Time) {
		all := conditions(o.(P))
		*all = kube.SetCondition(*all, now, condition)
	}}
}

// ofAnyForm returns a kind whose objects are read as maps.
func ofAnyForm(name, instead string) kind {
	return kind{anyform.Object(name), instead, func(o client.Object, condition fleet.Condition, now time.Time) {
		anyform.SetCondition(o.(*unstructured.Unstructured), now, condition)
	}}
}

// Register adds a controller for each kind to the manager.
func Register(mgr ctrl.Manager, clock clock.PassiveClock, withoutGitOps bool) error {
	for _, k := range kinds(withoutGitOps) {
		_, name, _ := strings.Cut(fmt.Sprintf("%T", k.object), ".")
		if kind := k.object.GetObjectKind().GroupVersionKind().Kind; kind != "" {
			name = kind
		}
		c := &controller{Client: mgr.GetClient(), cached: mgr.GetCache(), clock: clock, kind: k}
		if err := ctrl.NewControllerManagedBy(mgr).Named("unsupported-" + strings.ToLower(name)).For(k.object).Complete(c); err != nil {
			return err
		}
	}
	return nil
}

type controller struct {
	client.Client
	// cached reads from the cache. The client of the manager reads maps from the API server.
	cached client.Reader
	clock  clock.PassiveClock
	kind   kind
}

// Reconcile sets the condition of an object. On a terminating object the condition names the
// finalizers, because Muster removes none of them.
func (c *controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	before := c.kind.object.DeepCopyObject().(client.Object)
	if err := c.cached.Get(ctx, request.NamespacedName, before); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	message := c.kind.instead
	if before.GetDeletionTimestamp() != nil && len(before.GetFinalizers()) > 0 {
		message = kube.HeldByFinalizers(before)
	}
	after := before.DeepCopyObject().(client.Object)
	c.kind.set(after, kube.Condition(fleet.ConditionSupported, false, reasons.KindNotImplemented, message), c.clock.Now())
	return reconcile.Result{}, client.IgnoreNotFound(kube.PatchStatus(ctx, c.Client, before, after))
}
