package registration

import (
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// onRequest counts requests, and announces new ones to their readers.
func (c *Controller) onRequest(_ context.Context, before, after *fleet.ClusterRegistration, _ controller.Queue) {
	if after == nil {
		c.tracker.forgetRequest(client.ObjectKeyFromObject(before))
		c.tracker.firstSeen.Forget(before.UID)
		c.tracker.signatures.Forget(before.UID)
		return
	}
	c.tracker.trackRequest(after)
	if before == nil {
		c.announce(after)
	}
}

// announce queues a new request for the next write of a Role if this process knows the reader. The
// requests of a burst then become readable before their turn, and their agents poll less. The hub
// has not looked at the request yet, so a reader takes a bounded number of them.
func (c *Controller) announce(r *fleet.ClusterRegistration) {
	if len(r.Spec.AnswerKey) == 0 || r.Status.State != "" {
		return
	}
	role := roleOf(types.NamespacedName{Namespace: r.Namespace, Name: accountOf(r)}, "")
	c.readers.mu.Lock()
	found := c.readers.of[role]
	c.readers.mu.Unlock()
	if found == nil {
		return
	}
	if found.announce(r.Name) {
		c.readers.note(client.ObjectKeyFromObject(r), readable{found, r.Name})
	}
}

// onCluster enqueues the requests waiting for a Cluster, and the granted request after the first
// heartbeat. It also enqueues the requests waiting for room for new Clusters.
func (c *Controller) onCluster(ctx context.Context, before, after *fleet.Cluster, q controller.Queue) {
	cluster, gone, beaten, revoked := after, after == nil, false, false
	switch {
	case gone:
		cluster = before
		c.tracker.forgetCluster(client.ObjectKeyFromObject(cluster))
	case before != nil && before.UID != after.UID: // re-created while the hub could not watch
		c.tracker.forgetCluster(client.ObjectKeyFromObject(cluster))
	case before != nil:
		revoked = membership.Revoked(after) && !membership.Revoked(before)
		beaten = !after.Status.Agent.LastSeen.Equal(&before.Status.Agent.LastSeen) && !after.Status.Agent.LastSeen.IsZero()
	}
	if beaten {
		c.tracker.beaten(client.ObjectKeyFromObject(cluster), after.Status.Agent.LastSeen.Time)
	}
	if from, room := c.tracker.trackCluster(cluster, gone); room {
		c.wakeQueued(from, q)
	}
	if all := beaten || gone || revoked; all || before == nil || awaitedOf(before).differs(awaitedOf(after)) {
		c.wakeCluster(ctx, cluster, all, q)
	}
	if before != nil && membership.ClientID(before) != membership.ClientID(cluster) {
		c.wakeCluster(ctx, before, false, q)
	}
}

// awaited holds the fields of a Cluster that affect ungranted requests. Deliveries change the
// status of a Cluster every second, and affect no request.
type awaited struct {
	uid        types.UID
	generation int64
	deleting   bool
	namespace  string
	agent      membership.AgentState
	// labels and annotations: the expressions of tokens read the labels, and the annotations hold the
	// key.
	labels, annotations map[string]string
}

func awaitedOf(cluster *fleet.Cluster) awaited {
	return awaited{
		uid: cluster.UID, generation: cluster.Generation, deleting: cluster.DeletionTimestamp != nil, namespace: cluster.Status.Namespace,
		agent: membership.ClusterStatus(&cluster.Status, nil).Agent, labels: cluster.Labels, annotations: cluster.Annotations,
	}
}

func (a awaited) differs(b awaited) bool {
	return a.uid != b.uid || a.generation != b.generation || a.deleting != b.deleting || a.namespace != b.namespace || a.agent != b.agent ||
		!maps.Equal(a.labels, b.labels) || !maps.Equal(a.annotations, b.annotations)
}

// onToken enqueues the ungranted requests of a changed or deleted token.
func (c *Controller) onToken(ctx context.Context, before, after *fleet.ClusterRegistrationToken, q controller.Queue) {
	if before != nil && (after == nil || before.Generation != after.Generation) {
		c.wake(ctx, q, false, client.InNamespace(before.Namespace), client.MatchingFields{indexToken: before.Name})
		c.wake(ctx, q, false, client.InNamespace(before.Namespace), client.MatchingFields{
			indexAccount: naming.TokenServiceAccount(before.Name, string(before.UID)),
		})
	}
}

// onDeployment enqueues the requests waiting for the deletion of the previous agent's
// BundleDeployment.
func (c *Controller) onDeployment(ctx context.Context, deleted, _ *fleet.BundleDeployment, q controller.Queue) {
	if deleted.Labels[fleet.LabelAgent] == "" {
		return
	}
	namespace := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.Client.Get(ctx, types.NamespacedName{Name: deleted.Namespace}, namespace); err == nil { // else the member has left
		c.wakeRecordOf(ctx, namespace, q)
	}
}

// onMember enqueues the requests waiting for the namespace of a member or the token of its account,
// and the request of an answer's object.
func (c *Controller) onMember(ctx context.Context, before, after client.Object, q controller.Queue) {
	o := after
	if after == nil {
		o = before
	}
	if !wakeRequestOf(o, q) {
		c.wakeRecordOf(ctx, o, q)
	}
}

// onRight enqueues the request of a Role or RoleBinding for reading an answer. A hub killed before
// it wrote the answer may have left no other reference to a deleted request. If the right of an
// account is gone, its requests need it again.
func (c *Controller) onRight(ctx context.Context, before, after client.Object, q controller.Queue) {
	switch {
	case before == nil:
		if !wakeRequestOf(after, q) && c.needsLook(after) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(after)}) // it stands for its deleted requests
		}
	case after == nil && c.readers.forget(client.ObjectKeyFromObject(before)):
		if account, _, found := c.readerOf(before); found {
			c.wake(ctx, q, false, client.InNamespace(account.Namespace))
			return
		}
		c.wake(ctx, q, false, client.InNamespace(before.GetNamespace()))
	}
}

// wakeRequestOf enqueues the request of an answer's object, and returns false if there is none.
func wakeRequestOf(o client.Object, q controller.Queue) bool {
	namespace, name, ok := strings.Cut(o.GetAnnotations()[annotationRequest], "/")
	if ok {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return ok
}

// onSettings enqueues queued requests with room under the new settings, and requests waiting for
// the first settings.
func (c *Controller) onSettings(ctx context.Context, _, _ client.Object, q controller.Queue) {
	if c.Config.Current().Unknown {
		c.awaitsSettings.Store(true)
	} else if c.awaitsSettings.Swap(false) {
		c.wake(ctx, q, false)
	}
	for _, from := range c.tracker.queues() {
		c.wakeQueued(from, q)
	}
}

func (c *Controller) wakeQueued(from origin, q controller.Queue) {
	for _, key := range c.tracker.next(from, c.Config.Current().Registration.MaxNewClustersPerToken) {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

// wakeRecordOf enqueues the requests for the Cluster of an object, if it still exists.
func (c *Controller) wakeRecordOf(ctx context.Context, o client.Object, q controller.Queue) {
	key, ok := membership.RecordOf(o)
	if !ok {
		return
	}
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, key, &cluster); err == nil {
		c.wakeCluster(ctx, &cluster, false, q)
	}
}

func (c *Controller) wakeCluster(ctx context.Context, cluster *fleet.Cluster, granted bool, q controller.Queue) {
	c.wake(ctx, q, granted, client.InNamespace(cluster.Namespace), client.MatchingFields{indexClientID: membership.ClientID(cluster)})
}

// wake enqueues the listed requests without a grant, or all of them.
func (c *Controller) wake(ctx context.Context, q controller.Queue, granted bool, options ...client.ListOption) {
	var list fleet.ClusterRegistrationList
	if err := c.Client.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the requests of an event")
		return
	}
	for i := range list.Items {
		if r := &list.Items[i]; granted || !r.Status.Granted {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r)})
		}
	}
}
