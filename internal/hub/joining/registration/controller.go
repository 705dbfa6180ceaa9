// Package registration approves or denies ClusterRegistrations and answers the granted ones.
//
// Registration owns the status of ClusterRegistrations and the objects of an answer: the right to
// read it and, for upstream agents, the Secret. It creates the Clusters not predefined by an
// administrator. It writes the labels stamped by a token on its Clusters, and the annotation with
// their list. It replaces a member's identity. Through package audit it writes entries about
// grants, displacements, approvals and denials.
//
// Its invariants: a request is granted at most once. The right to read an answer exists before the
// answer. A credential exists only after all its rights, and after the labels of its token. The
// holder of one token cannot keep another token's agents from joining.
package registration

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/keymutex"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/credentials/longlived"
	"github.com/muster-fleet/muster/internal/hub/joining/admission"
	"github.com/muster-fleet/muster/internal/hub/joining/expression"
	"github.com/muster-fleet/muster/internal/hub/members/audit"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	indexClientID = membernamespace.IndexClientID
	// indexQuarantinedKey finds quarantined Clusters by the key of their agent.
	indexQuarantinedKey = "registration.quarantinedKey"
	indexCluster        = "registration.clusterName"
	indexAgent          = "registration.agent"
	indexAccount        = "registration.account"
	indexToken          = "registration.token"
	indexTokenOwner     = "registration.tokenAccount"
	indexStampedKey     = "registration.stampedKey"
	indexRequest        = "registration.request"
	// workers is the number of concurrent reconciles: enough to keep the API server busy while each
	// waits for it.
	workers = 16
)

// Deps holds the dependencies of the controller.
type Deps struct {
	controller.Deps
	// Hub returns the desired address of the hub for the agent of a Cluster.
	Hub func(*fleet.Cluster) *clusterv1beta1.HubAddress
	// Reconnect returns a token for agents of a workspace to rejoin; "" if there is none.
	Reconnect func(ctx context.Context, workspace string) string
	// Lasting issues the tokens of legacy agents.
	Lasting *longlived.Issuer
	// OwnCAs has the digests of the hub's own CA certificates for its API server.
	OwnCAs []string
	// Audit writes entries about grants, displacements, approvals and denials.
	Audit *audit.Writer
	// Policies checks whether the requester and the approver named in a request are reliable.
	Policies *admission.Checker
	// Expressions holds the expressions of tokens with approval CEL.
	Expressions *expression.Cache
}

// Controller reconciles ClusterRegistrations.
type Controller struct {
	Deps
	// expected prevents a second grant of a request.
	expected kube.Expectations
	tracker  *tracker
	readers  *readers
	// uses holds a lock per token, taken while a request takes one of its maxRegistrations.
	uses keymutex.KeyMutex
	// awaitsSettings: requests wait until the hub has read its settings.
	awaitsSettings atomic.Bool
}

// New returns the controller.
func New(deps Deps) *Controller {
	return &Controller{Deps: deps, expected: kube.Expectations{Clock: deps.Clock}, tracker: newTracker(deps.Joins), readers: newReaders(),
		uses: keymutex.NewHashed(workers)}
}

// Register adds the controller to the manager.
func (c *Controller) Register(ctx context.Context, mgr ctrl.Manager) error {
	for _, index := range []struct {
		object client.Object
		name   string
		values client.IndexerFunc
	}{
		{&fleet.ClusterRegistration{}, indexClientID, func(o client.Object) []string {
			return []string{o.(*fleet.ClusterRegistration).Spec.ClientID}
		}},
		{&fleet.ClusterRegistration{}, indexAgent, func(o client.Object) []string { return []string{agentOf(o.(*fleet.ClusterRegistration))} }},
		{&fleet.ClusterRegistration{}, indexAccount, func(o client.Object) []string {
			return []string{accountOf(o.(*fleet.ClusterRegistration))}
		}},
		{&fleet.ClusterRegistration{}, indexToken, func(o client.Object) []string {
			return []string{o.GetLabels()[fleet.LabelRegistrationToken]}
		}},
		{&fleet.ClusterRegistration{}, indexCluster, func(o client.Object) []string {
			return []string{o.(*fleet.ClusterRegistration).Status.ClusterName}
		}},
		{&fleet.Cluster{}, indexQuarantinedKey, quarantinedKeyOf},
		{&fleet.Cluster{}, indexClientID, func(o client.Object) []string { return []string{membership.ClientID(o.(*fleet.Cluster))} }},
		{&fleet.ClusterRegistrationToken{}, indexTokenOwner, tokenAccountOf},
		{&fleet.ClusterRegistrationToken{}, indexStampedKey, stampedKeys},
		{kube.Metadata(corev1.SchemeGroupVersion.WithKind("Secret")), indexRequest, requestOf},
		{kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("Role")), indexRequest, requestOf},
		{kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("RoleBinding")), indexRequest, requestOf},
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, index.object, index.name, index.values); err != nil {
			return err
		}
	}
	c.awaitsSettings.Store(c.Config.Current().Unknown)
	return ctrl.NewControllerManagedBy(mgr).Named("registration").
		For(&fleet.ClusterRegistration{}).
		Watches(&fleet.ClusterRegistration{}, controller.On(c.onRequest)).
		Watches(&fleet.Cluster{}, controller.On(c.onCluster)).
		Watches(&fleet.ClusterRegistrationToken{}, controller.On(c.onToken)).
		Watches(&fleet.BundleDeployment{}, controller.OnDeleted(controller.On(c.onDeployment))).
		WatchesMetadata(&corev1.Secret{}, controller.On(c.onMember)).
		WatchesMetadata(&rbacv1.Role{}, controller.On(c.onRight)).
		WatchesMetadata(&rbacv1.RoleBinding{}, controller.On(c.onRight)).
		WatchesMetadata(&corev1.Namespace{}, controller.On(c.onMember)).
		WatchesMetadata(&corev1.ServiceAccount{}, controller.OnDeleted(controller.On(c.onAccountGone))).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), controller.On(c.onSettings))).
		WithOptions(controller.Workers(workers)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// Reconcile decides on one request, acts, and writes the status.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var r fleet.ClusterRegistration
	if err := c.Client.Get(ctx, request.NamespacedName, &r); apierrors.IsNotFound(err) {
		c.expected.Forget(request.NamespacedName)
		c.tracker.forgetRequest(request.NamespacedName)
		if err := c.deleteOrphans(ctx, request.NamespacedName); err != nil {
			return ctrl.Result{}, err
		}
		if err := c.endReadingOfGone(ctx, request.NamespacedName); err != nil {
			return ctrl.Result{}, err
		}
		wait, err := c.endReadingOf(ctx, request.NamespacedName)
		return ctrl.Result{RequeueAfter: wait}, err
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if r.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if r.Labels[fleet.LabelClusterManagement] != "" {
		return c.awaitManager(ctx, &r)
	}
	if wait := c.expected.Await(request.NamespacedName, &r); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache enqueues it earlier
	}
	if r.Status.Granted {
		return c.reconcileGranted(ctx, &r)
	}
	o, err := c.observe(ctx, &r)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := c.Clock.Now()
	decided, err := c.decide(ctx, &r, &o, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	if decided.action == remove {
		c.warnUnread(o, decided)
		return ctrl.Result{}, c.remove(ctx, &r)
	}
	if err := c.makeReadable(ctx, &r, o); err != nil {
		return ctrl.Result{}, err
	}
	var answer []byte
	decided, err = c.admit(ctx, &r, o, decided)
	if err == nil {
		decided, answer, err = c.act(ctx, &r, o, decided)
	}
	if err != nil && !apierrors.IsConflict(err) {
		decided = failed(decided, o.created, err, now)
	}
	if !decided.quiet && !apierrors.IsConflict(err) {
		err = errors.Join(err, c.report(ctx, &r, o, decided, answer))
	}
	if err != nil || decided.wake.IsZero() {
		return ctrl.Result{}, err
	}
	return kube.At(decided.wake, now), nil
}

// decide decides on a request. It deletes an excess request before any verification of a signature,
// because the signature would not change the decision.
func (c *Controller) decide(ctx context.Context, r *fleet.ClusterRegistration, o *observation, now time.Time) (decision, error) {
	best := limit(decide(o.observed, now), o.observed, c.tracker.others(r), c.Config.Current().Registration, now)
	if best.action == remove {
		return best, nil
	}
	if err := c.tracker.verified(r); err != nil {
		o.signatureProblem = err.Error()
	}
	if err := c.observeNewer(ctx, r, o); err != nil {
		return decision{}, err
	}
	return c.enforceLimits(r, o.observed, decide(o.observed, now), now), nil
}

// admit writes the audit entry about an approval or a denial, and takes a use of the request's
// token. If no Cluster is created after all, admit releases the place reserved for it.
func (c *Controller) admit(ctx context.Context, r *fleet.ClusterRegistration, o observation, d decision) (decision, error) {
	reserved := d
	err := c.auditVerdict(ctx, r, o, d)
	if err == nil && (d.action == createCluster || d.action == grant) {
		d, err = c.takeUse(ctx, o, d)
	}
	if reserved.action == createCluster && (err != nil || d.action != createCluster) {
		c.tracker.release(types.NamespacedName{Namespace: r.Namespace, Name: reserved.cluster})
	}
	return d, err
}

// act carries out a decision, and returns the decision to write to the status and the sealed
// answer.
func (c *Controller) act(ctx context.Context, r *fleet.ClusterRegistration, o observation, d decision) (decision, []byte, error) {
	switch d.action {
	case createCluster:
		return d, nil, c.createCluster(ctx, r, o, d.cluster)
	case grant:
		return c.grant(ctx, r, o, d)
	case nothing, remove:
	}
	return d, nil, nil
}

// remove deletes the answer to a finished request, and then the request.
func (c *Controller) remove(ctx context.Context, r *fleet.ClusterRegistration) error {
	if _, err := c.withdrawAnswer(ctx, r); err != nil { // its event removes the right
		return err
	}
	err := c.Client.Delete(ctx, r, client.Preconditions{UID: &r.UID})
	if apierrors.IsConflict(err) { // replaced by another of its name
		return nil
	}
	return client.IgnoreNotFound(err)
}
