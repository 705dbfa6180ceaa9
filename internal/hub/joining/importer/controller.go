// Package importer implements manager-initiated registration. It installs the agent on the cluster
// behind the kubeConfigSecret of a Cluster, with a registration token of its own. It installs the
// agent again after a change of its settings or the loss of the agent.
//
// Importer writes the condition Imported, status.import, agentDeployedGeneration,
// agentConfigChanged, garbageCollectionInterval, the migration markers and the hashes of the
// agent's settings. It owns the ClusterRegistrationTokens import-token-<cluster>. Its invariants: a
// kubeconfig is read for one attempt and stored nowhere, and one from another namespace needs its
// owner's consent. The hub sends nothing downstream while a Cluster is imported and its agent
// healthy. Unresponsive servers delay no other workspace. No message quotes an unknown server.
package importer

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// indexSecret finds Clusters by their kubeconfig Secret, indexClusterID by the UID of their
	// namespace kube-system.
	indexSecret    = "importer.secret"
	indexClusterID = "importer.clusterID"
	// workers is the number of concurrent imports. A worker waiting for an unresponsive server costs a
	// few kilobytes, and gives up after probeTimeout.
	workers = 256
	// tokenGrace is the longest wait for a token without a status about it.
	tokenGrace = 15 * time.Second
)

// Deps holds the dependencies of the controller.
type Deps struct {
	controller.Deps
	// Secrets holds the metadata of all Secrets that may hold a kubeconfig: see NewSecretCache.
	Secrets cache.Cache
	// Hub is the hub's configuration for its own cluster.
	Hub *rest.Config
}

// Controller reconciles Clusters with a kubeConfigSecret.
type Controller struct {
	Deps
	tracker  *tracker
	expected kube.Expectations
}

// New returns the controller.
func New(deps Deps) *Controller {
	return &Controller{Deps: deps, tracker: newTracker(), expected: kube.Expectations{Clock: deps.Clock}}
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
	secret := kube.CoreMetadata("Secret")
	return ctrl.NewControllerManagedBy(mgr).Named("importer").
		For(&fleet.Cluster{}).
		Owns(&fleet.ClusterRegistrationToken{}).
		WatchesRawSource(source.Kind(c.Secrets, secret, handler.TypedEnqueueRequestsFromMapFunc(c.ofSecret))).
		WatchesRawSource(source.Channel(c.tracker.free, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(c.Config.Subscribe(),
			handler.EnqueueRequestsFromMapFunc(controller.All(c.Client, &fleet.ClusterList{})))).
		WithOptions(controller.Workers(workers)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// Reconcile imports one cluster if necessary.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if c.Config.Current().Unknown {
		return ctrl.Result{}, nil // the settings enqueue it
	}
	defer c.tracker.release(ctx, request.NamespacedName)
	var cluster fleet.Cluster
	err := c.Client.Get(ctx, request.NamespacedName, &cluster)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if err != nil || !isImported(&cluster) {
		c.tracker.forget(ctx, request.NamespacedName)
		c.expected.Forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if wait := c.expected.Await(client.ObjectKeyFromObject(&cluster), &cluster); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache enqueues it earlier
	}
	o, err := c.observe(ctx, &cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := c.Clock.Now()
	decided := decide(o, now)
	if decided.action == schedule {
		o.history.start = c.tracker.nextStart(now)
		decided = decide(o, now)
	}
	if (decided.action == install || decided.action == diagnose) && !c.tracker.acquire(request.NamespacedName) {
		return ctrl.Result{}, c.report(ctx, &cluster, func(status fleet.ClusterStatus) fleet.ClusterStatus { return describeQueued(status, now) })
	}
	switch decided.action {
	case install:
		return c.importNow(ctx, &cluster, o, decided.need)
	case diagnose:
		return c.diagnoseNow(ctx, &cluster, o)
	case wait:
		if start := o.history.start; decided.wake.Equal(start) && !start.IsZero() {
			err = c.report(ctx, &cluster, func(status fleet.ClusterStatus) fleet.ClusterStatus {
				return describeScheduled(status, decided.need, start, now)
			})
		}
	case idle, schedule:
		o.history.start = time.Time{}
		err = c.report(ctx, &cluster, func(status fleet.ClusterStatus) fleet.ClusterStatus {
			return describeIdle(status, cluster.Spec, c.Config.Current().Agent, o, now)
		})
	}
	if err != nil || decided.wake.IsZero() {
		return ctrl.Result{}, err
	}
	return kube.At(decided.wake, now), nil
}

// isImported reports whether the hub installs the agent of a Cluster.
func isImported(cluster *fleet.Cluster) bool {
	return cluster.Spec.KubeConfigSecret != "" && cluster.Labels[fleet.LabelClusterManagement] == "" && cluster.DeletionTimestamp == nil &&
		!membership.Revoked(cluster)
}

// importNow attempts an import and stores the result.
func (c *Controller) importNow(ctx context.Context, cluster *fleet.Cluster, o observed, why need) (ctrl.Result, error) {
	out, err := c.attempt(ctx, cluster, o, why)
	now, h := c.Clock.Now(), o.history
	var p *problem
	switch {
	case errors.As(err, &p):
	case err != nil:
		return ctrl.Result{}, err
	case out.waiting:
		return c.awaitToken(ctx, cluster, o, why)
	}
	h.start, h.tokenAwaited = time.Time{}, time.Time{}
	if p == nil {
		// After a diagnosis, its cause stays in the condition if the agent is installed again unchanged.
		out.keepsCondition = why == needHealing && h.diagnoses > 0
		if why == needHealing {
			h.heals++
			h.healed = now
		} else {
			h.diagnoses = 0
		}
		h.failed, h.problem, h.failures = "", nil, 0
		return ctrl.Result{}, c.report(ctx, cluster, func(status fleet.ClusterStatus) fleet.ClusterStatus {
			return describeImported(status, cluster.Spec, c.Config.Current().Agent, out, now)
		})
	}
	if h.failed != o.input {
		h.failures = 0
	}
	h.failures++
	h.failed, h.problem, h.next = o.input, p, now.Add(backoff(firstRetry, maxRetry, h.failures, o.jitter)).Truncate(time.Second)
	err = c.report(ctx, cluster, func(status fleet.ClusterStatus) fleet.ClusterStatus {
		return describeProblem(status, o.outdated(why), p, h.next, now)
	})
	if err != nil || p.input {
		return ctrl.Result{}, err
	}
	return kube.At(h.next, now), nil
}

// awaitToken waits for the import token, and writes a status about a long wait. An event of the
// token enqueues the Cluster.
func (c *Controller) awaitToken(ctx context.Context, cluster *fleet.Cluster, o observed, why need) (ctrl.Result, error) {
	now, h := c.Clock.Now(), o.history
	if h.tokenAwaited.IsZero() {
		h.tokenAwaited = now
	}
	if left := h.tokenAwaited.Add(tokenGrace).Sub(now); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	late := setback(reasons.WaitingForToken, "the hub has not created the import token yet; for the cause: kubectl -n %s get "+
		"clusterregistrationtokens",
		cluster.Namespace)
	err := c.report(ctx, cluster, func(status fleet.ClusterStatus) fleet.ClusterStatus {
		return describeProblem(status, o.outdated(why), late, now.Add(tokenGrace), now)
	})
	return ctrl.Result{RequeueAfter: tokenGrace}, err
}

// report writes the status derived by describe from the current one. It retries a conflict itself,
// because otherwise the hub would repeat the import.
func (c *Controller) report(ctx context.Context, cluster *fleet.Cluster, describe func(fleet.ClusterStatus) fleet.ClusterStatus) error {
	before := cluster.DeepCopy()
	for {
		after := before.DeepCopy()
		after.Status = describe(after.Status)
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
			c.expected.Expect(client.ObjectKeyFromObject(after), after)
			c.announce(ctx, after, kube.ReasonOf(before.Status.Conditions, fleet.ConditionImported))
		}
		return nil
	}
}

// announce logs a transition and emits an Event about it. Call it after the write of the status.
func (c *Controller) announce(ctx context.Context, cluster *fleet.Cluster, from string) {
	imported := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionImported)
	if imported == nil || imported.Reason == from {
		return
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

// ofSecret maps a kubeconfig Secret to its Clusters.
func (c *Controller) ofSecret(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	using := client.MatchingFields{indexSecret: client.ObjectKeyFromObject(secret).String()}
	return controller.All(c.Client, &fleet.ClusterList{}, using)(ctx, secret)
}
