// Package importer is manager-initiated registration: it installs the agent on the cluster that a Cluster's kubeConfigSecret leads to,
// with a registration token of its own, and installs it again when what it was installed with has changed or the agent is gone.
//
// It writes the condition Imported and what was handed over: status.import, agentDeployedGeneration, agentConfigChanged,
// garbageCollectionInterval, the migration markers and the hashes of the agent's settings. It owns the
// ClusterRegistrationTokens import-token-<cluster>. Its invariants: a kubeconfig is read when it is needed and kept nowhere; while a
// Cluster is imported and its agent well, nothing is sent downstream; a cluster that does not answer delays no other.
package importer

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// indexSecret finds Clusters by their kubeconfig Secret, indexClusterID by the cluster that they are.
	indexSecret    = "importer.secret"
	indexClusterID = "importer.clusterID"
	// workers is how many clusters are imported at once. A worker that waits for a cluster which does not answer costs a few
	// kilobytes; it gives up after probeTimeout, and comes back ever more seldom.
	workers = 128
	// tokenPatience is how long the hub's own making of a token may take before it is worth a write.
	tokenPatience = 15 * time.Second
)

// Deps is what the controller needs.
type Deps struct {
	// Client reads Clusters and tokens from the cache.
	Client client.Client
	// Live reads what is not cached: Secrets.
	Live client.Reader
	// Secrets holds the metadata of all Secrets that may be a kubeconfig: see NewSecretCache.
	Secrets  cache.Cache
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Config   *config.Controller
	// SystemNamespace is the hub's own.
	SystemNamespace string
}

// Controller reconciles Clusters with a kubeConfigSecret.
type Controller struct {
	Deps
	memory  *memory
	written kube.Written
}

// New returns a controller.
func New(deps Deps) *Controller {
	return &Controller{Deps: deps, memory: newMemory(), written: kube.Written{Clock: deps.Clock}}
}

// Register adds the controller to the manager.
func (c *Controller) Register(ctx context.Context, mgr ctrl.Manager) error {
	for name, values := range map[string]func(*fleet.Cluster) []string{indexSecret: secretKeys, indexClusterID: clusterIDs} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &fleet.Cluster{}, name, func(o client.Object) []string {
			return values(o.(*fleet.Cluster))
		}); err != nil {
			return err
		}
	}
	secret := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Secret"))
	return ctrl.NewControllerManagedBy(mgr).Named("importer").
		For(&fleet.Cluster{}).
		Owns(&fleet.ClusterRegistrationToken{}).
		WatchesRawSource(source.Kind(c.Secrets, secret, handler.TypedEnqueueRequestsFromMapFunc(c.ofSecret))).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.all))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(c)
}

// Reconcile imports one cluster if it has to be.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, request.NamespacedName, &cluster); apierrors.IsNotFound(err) {
		c.memory.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if cluster.Labels[fleet.LabelClusterManagement] != "" || cluster.Spec.KubeConfigSecret == "" {
		return ctrl.Result{}, nil
	}
	if cluster.DeletionTimestamp != nil {
		c.memory.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if wait := c.written.Await(&cluster); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache wakes it earlier
	}
	seen, err := c.observe(ctx, &cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := c.Clock.Now()
	decided := decide(seen, now)
	if decided.action == queue {
		seen.slot = c.memory.slot(request.NamespacedName, now)
		decided = decide(seen, now)
	}
	switch decided.action {
	case try:
		return c.importNow(ctx, &cluster, seen, decided.need)
	case look:
		return c.lookNow(ctx, &cluster, seen)
	case wait:
		if decided.wake.Equal(seen.slot) && !seen.slot.IsZero() {
			err = c.report(ctx, &cluster, func(before fleet.ClusterStatus) fleet.ClusterStatus {
				return describeTurn(before, decided.need, seen.slot, now)
			})
		}
	case idle, queue:
		c.memory.used(request.NamespacedName)
		err = c.report(ctx, &cluster, func(before fleet.ClusterStatus) fleet.ClusterStatus {
			return describeRest(before, cluster.Spec, c.Config.Current().Agent, seen, now)
		})
	}
	if err != nil || decided.wake.IsZero() {
		return ctrl.Result{}, err
	}
	return kube.At(decided.wake, now), nil
}

// importNow makes one try and remembers what became of it.
func (c *Controller) importNow(ctx context.Context, cluster *fleet.Cluster, seen observed, why need) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(cluster)
	out, err := c.try(ctx, cluster, seen, why)
	now, h := c.Clock.Now(), seen.history
	var p *problem
	switch {
	case errors.As(err, &p):
	case err != nil:
		return ctrl.Result{}, err
	case out.waiting:
		return c.awaitToken(ctx, cluster, seen, why)
	}
	c.memory.used(key)
	h.waiting = time.Time{}
	if p == nil {
		// What a look has found holds until the next one, if the agent is only installed as it was.
		finding := why == needHealing && h.looks > 0
		if why == needHealing {
			h.healed++
			h.healedAt = now
		} else {
			h.looks = 0
		}
		h.failed, h.problem, h.failures = "", nil, 0
		c.memory.remember(key, h)
		return ctrl.Result{}, c.report(ctx, cluster, func(before fleet.ClusterStatus) fleet.ClusterStatus {
			after := describeImported(before, cluster.Spec, c.Config.Current().Agent, out, now)
			if finding {
				after.Conditions = before.Conditions
			}
			return after
		})
	}
	if h.failed != seen.input {
		h.failures = 0
	}
	h.failures++
	h.failed, h.problem, h.next = seen.input, p, retryAt(now, h.failures, seen.spread)
	c.memory.remember(key, h)
	err = c.report(ctx, cluster, func(before fleet.ClusterStatus) fleet.ClusterStatus {
		return describeProblem(before, seen, why, h, now)
	})
	if err != nil || p.input {
		return ctrl.Result{}, err
	}
	return kube.At(h.next, now), nil
}

// awaitToken waits for the import token, an event of which wakes the Cluster, and says so if that takes long.
func (c *Controller) awaitToken(ctx context.Context, cluster *fleet.Cluster, seen observed, why need) (ctrl.Result, error) {
	now, h := c.Clock.Now(), seen.history
	if h.waiting.IsZero() {
		h.waiting = now
		c.memory.remember(client.ObjectKeyFromObject(cluster), h)
	}
	if left := h.waiting.Add(tokenPatience).Sub(now); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	h.problem = setback(reasonWaitingForToken, "the hub has not made the import token yet: kubectl -n %s get clusterregistrationtokens says why", cluster.Namespace)
	h.next = now.Add(tokenPatience)
	err := c.report(ctx, cluster, func(before fleet.ClusterStatus) fleet.ClusterStatus {
		return describeProblem(before, seen, why, h, now)
	})
	return ctrl.Result{RequeueAfter: tokenPatience}, err
}

// report writes the status as describe makes it of the one that is there now: an import takes longer than others leave the Cluster alone.
func (c *Controller) report(ctx context.Context, cluster *fleet.Cluster, describe func(fleet.ClusterStatus) fleet.ClusterStatus) error {
	before := cluster.DeepCopy()
	for {
		after := before.DeepCopy()
		after.Status = describe(before.Status)
		err := kube.PatchStatus(ctx, c.Client, before, after)
		if apierrors.IsConflict(err) {
			if err = c.Live.Get(ctx, client.ObjectKeyFromObject(cluster), before); err == nil && before.UID == cluster.UID {
				continue
			}
		}
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		if before.UID == cluster.UID && after.ResourceVersion != before.ResourceVersion {
			c.written.Store(after)
			c.announce(ctx, after, kube.FindCondition(before.Status.Conditions, fleet.ConditionImported))
		}
		return nil
	}
}

// announce tells of a transition, after it was written.
func (c *Controller) announce(ctx context.Context, cluster *fleet.Cluster, before *fleet.Condition) {
	imported := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionImported)
	if imported == nil || (before != nil && before.Reason == imported.Reason) {
		return
	}
	from := ""
	if before != nil {
		from = before.Reason
	}
	ctrl.LoggerFrom(ctx).Info("Import changed state", "from", from, "to", imported.Reason, "message", imported.Message)
	kind, note := corev1.EventTypeNormal, imported.Message
	if imported.Status != corev1.ConditionTrue {
		kind = corev1.EventTypeWarning
	} else if note == "" {
		note = "the agent is installed"
	}
	c.Recorder.Eventf(cluster, nil, kind, imported.Reason, "Import", "%s", kube.Clip(note, maxNote))
}

// ofSecret leads from a kubeconfig to the Clusters that use it.
func (c *Controller) ofSecret(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	return c.list(ctx, client.MatchingFields{indexSecret: client.ObjectKeyFromObject(secret).String()})
}

// all leads from a change of the settings to every Cluster that the hub installs an agent on.
func (c *Controller) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return c.list(ctx)
}

func (c *Controller) list(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	var list fleet.ClusterList
	if err := c.Client.List(ctx, &list, options...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing Clusters to import")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Spec.KubeConfigSecret != "" {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
