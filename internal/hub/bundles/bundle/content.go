package bundle

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// keepUnused is the lifetime of an unused Content. The cache never lags so far.
const keepUnused = 15 * time.Second

var contentKind = fleet.GroupVersion.WithKind("Content")

// contents creates the Contents of Bundles, shared by any number of deployments, and removes them
// once they are unused.
type contents struct {
	client.Client
	live  client.Reader
	clock clock.PassiveClock
	// began is the time of this process's first check of a Content. References from Bundles
	// without a deployment are known only after the process has seen the Bundles.
	began func() time.Time
	// freed receives Contents after a Bundle drops its reference.
	freed chan event.GenericEvent

	mu sync.Mutex
	// desired is the Content of each Bundle. It protects a Content before the first reference is
	// written.
	desired map[types.NamespacedName]string
	// bundles is the reverse: the Bundles of each Content.
	bundles map[string]sets.Set[types.NamespacedName]
	// there holds the Contents found or created by this process, and not deleted since.
	there sets.Set[string]
}

func newContents(deps controller.Deps) contents {
	return contents{
		Client: deps.Client, live: deps.Live, clock: deps.Clock, began: sync.OnceValue(deps.Clock.Now),
		freed:   make(chan event.GenericEvent, workers),
		desired: map[types.NamespacedName]string{}, bundles: map[string]sets.Set[types.NamespacedName]{}, there: sets.Set[string]{},
	}
}

// share refers a Bundle to a Content of another one, and reports whether it exists.
func (c *contents) share(bundle types.NamespacedName, name string) bool {
	c.mu.Lock()
	there, before := c.there.Has(name), ""
	if there {
		before = c.refer(bundle, name)
	}
	c.mu.Unlock()
	c.free(before)
	return there
}

// ensure creates the Content of a Bundle if there is none, and keeps it as long as the Bundle
// refers to it.
func (c *contents) ensure(ctx context.Context, bundle types.NamespacedName, content *fleet.Content) error {
	c.setDesired(bundle, content.Name)
	// The cache may still have a deleted Content.
	err := c.live.Get(ctx, client.ObjectKeyFromObject(content), kube.Metadata(contentKind))
	if apierrors.IsNotFound(err) {
		content.Labels = map[string]string{fleet.LabelManaged: "true"}
		err = c.Create(ctx, content, kube.FieldOwner)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		c.setDesired(bundle, "")
		return fmt.Errorf("writing Content %s: %w", content.Name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.desired[bundle] == content.Name { // else it was deleted meanwhile
		c.there.Insert(content.Name)
	}
	return nil
}

// setDesired stores the Content referred to by a Bundle, "" for none.
func (c *contents) setDesired(bundle types.NamespacedName, name string) {
	c.mu.Lock()
	before := c.refer(bundle, name)
	c.mu.Unlock()
	c.free(before)
}

// free queues a Content for removal unless another Bundle refers to it.
func (c *contents) free(name string) {
	if name != "" {
		c.freed <- event.GenericEvent{Object: &fleet.Content{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	}
}

// refer changes both maps, and returns the Content without a reference from the Bundle any more, or
// "". The caller holds the lock.
func (c *contents) refer(bundle types.NamespacedName, name string) string {
	before := c.desired[bundle]
	if before == name {
		return ""
	}
	if users := c.bundles[before].Delete(bundle); before != "" && users.Len() == 0 {
		delete(c.bundles, before)
	}
	if delete(c.desired, bundle); name != "" {
		c.desired[bundle] = name
		if c.bundles[name] == nil {
			c.bundles[name] = sets.Set[types.NamespacedName]{}
		}
		c.bundles[name].Insert(bundle)
	}
	return before
}

// has reports whether the Content of a Bundle was created and not deleted since.
func (c *contents) has(bundle types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.desired[bundle] != ""
}

// lost returns the Bundles with a deleted Content; reconciling them creates it again.
func (c *contents) lost(name string) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	bundles := c.bundles[name].UnsortedList()
	for _, bundle := range bundles {
		delete(c.desired, bundle)
	}
	delete(c.bundles, name)
	c.there.Delete(name)
	return bundles
}

// register adds the controller for the removal of Contents.
func (c *contents) register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("content").
		For(&fleet.Content{}, builder.OnlyMetadata).
		Watches(&fleet.BundleDeployment{}, controller.On(func(_ context.Context, before, after *fleet.BundleDeployment, q controller.Queue) {
			still := contentNames(after)
			for name := range contentNames(before) {
				if !still[name] {
					enqueueLater(q, name)
				}
			}
		})).
		WatchesRawSource(source.Channel(c.freed,
			controller.On(func(_ context.Context, freed, _ *fleet.Content, q controller.Queue) { enqueueLater(q, freed.Name) }))).
		Complete(reconcile.Func(c.collect))
}

// enqueueLater enqueues a Content for the likely time without references.
func enqueueLater(q controller.Queue, name string) {
	q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, keepUnused)
}

// contentNames returns the Contents of a deployment: for its deployment ID, and for the staged
// one.
func contentNames(d *fleet.BundleDeployment) map[string]bool {
	names := map[string]bool{}
	if d != nil {
		for _, id := range []string{d.Spec.DeploymentID, d.Spec.StagedDeploymentID} {
			if id != "" {
				names[delivery.ContentName(id)] = true
			}
		}
	}
	return names
}

// collect removes a Content after it was unused for a while. It also removes a changed Content: its
// name is the hash of the original, so it is worthless.
func (c *contents) collect(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	content := kube.Metadata(contentKind)
	if err := c.Get(ctx, request.NamespacedName, content); err != nil || content.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if content.Generation <= 1 {
		began := c.began()
		if age := min(c.clock.Since(content.CreationTimestamp.Time), c.clock.Since(began)); age < keepUnused {
			return ctrl.Result{RequeueAfter: keepUnused - max(age, 0)}, nil
		}
		var users fleet.BundleDeploymentList
		if err := c.List(ctx, &users, client.MatchingFields{indexContent: content.Name}, client.Limit(1),
			client.UnsafeDisableDeepCopy); err != nil {
			return ctrl.Result{}, fmt.Errorf("listing the BundleDeployments of Content %s: %w", content.Name, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock() // until it is gone: a Bundle that needs it then creates it again
		if len(users.Items) > 0 || c.bundles[content.Name].Len() > 0 {
			return ctrl.Result{}, nil
		}
		c.there.Delete(content.Name)
	}
	return ctrl.Result{}, kube.DeleteByUID(ctx, c, content)
}
