package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// createCluster creates the Cluster for a request. The Cluster's events enqueue the request again.
func (c *Controller) createCluster(ctx context.Context, r *fleet.ClusterRegistration, o observation, name string) error {
	annotations, err := o.record().Store(map[string]string{fleet.AnnotationCreatedByToken: tokenOf(r).token})
	if err != nil {
		return err
	}
	if o.key != "" {
		annotations[fleet.AnnotationAgentKey] = o.key
	}
	if used := useOf(r); used != "" {
		annotations[fleet.AnnotationAgentKeyUsed] = used
	}
	cluster := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: r.Namespace, Labels: o.grantedLabels(), Annotations: annotations, Finalizers: []string{fleet.FinalizerCluster},
		},
		Spec: fleet.ClusterSpec{ClientID: r.Spec.ClientID},
	}
	if token := o.registrationToken; token != nil {
		cluster.Spec.InitGates = slices.Clone(token.Spec.InitGates)
	}
	if err := c.Client.Create(ctx, cluster, kube.FieldOwner); apierrors.IsAlreadyExists(err) {
		return nil // the cache shows it in a moment
	} else if err != nil {
		c.tracker.release(client.ObjectKeyFromObject(cluster))
		return fmt.Errorf("creating Cluster %s/%s: %w", r.Namespace, name, err)
	}
	if len(o.dropped) > 0 {
		c.Recorder.Eventf(cluster, r, corev1.EventTypeWarning, reasons.LabelsDropped, "Register",
			"the agent requested labels that it may not set: %s", strings.Join(o.dropped, "; "))
	}
	return nil
}

// grant issues the credential and the answer, and returns the decision to write to the status. All
// writes can be repeated.
func (c *Controller) grant(ctx context.Context, r *fleet.ClusterRegistration, o observation,
	d decision) (shown decision, sealed []byte, err error) {
	account, done, err := c.beginGrant(ctx, r, o)
	if err != nil {
		return d, nil, err
	}
	defer done()
	if err := c.auditDisplacement(ctx, r, o, account); err != nil {
		return d, nil, err
	}
	if err := c.mark(ctx, r, &o); err != nil {
		return d, nil, err
	}
	identity := membernamespace.Identity{
		Member: membernamespace.OfCluster(o.match), Kind: membership.Legacy, Registration: r.Name, RegistrationUID: r.UID,
		Quarantined: membership.Quarantined(o.match),
	}
	if o.native {
		identity.Kind, identity.RenewsItself = membership.Native, o.key == ""
	}
	mayReplace := func(account *corev1.ServiceAccount) error { return c.mayReplace(ctx, r, account) }
	account, err = identity.Establish(ctx, c.Client, account, mayReplace,
		identity.Objects(membernamespace.Join(c.Liveness.Period(0), c.Hub(o.match), c.Identity.Term()))...)
	if err != nil {
		return d, nil, err
	}
	c.tracker.given(client.ObjectKeyFromObject(o.match), account.UID, c.lastSeen(o.match, identity.Kind))
	var legacyToken string
	if !o.native {
		if kept, err := c.agentDeployment(ctx, identity.Namespace); err != nil || kept != "" {
			return awaitRemoval(o.observed, kept), nil, err
		}
		var secret *corev1.Secret
		if legacyToken, secret, err = identity.LastingToken(ctx, c.Lasting, account); err != nil {
			return d, nil, err
		}
		if legacyToken == "" { // the event of the Secret enqueues the request
			return awaitToken(o.observed, client.ObjectKeyFromObject(secret), secret.CreationTimestamp.Time, c.Clock.Now()), nil, nil
		}
	}
	answer := credential.Answer{
		Token:               legacyToken,
		DeploymentNamespace: identity.Namespace,
		ClusterNamespace:    r.Namespace,
		ClusterName:         o.match.Name,
		SystemNamespace:     c.SystemNamespace,
	}
	if o.native {
		sealed, err = c.seal(ctx, r, account, answer)
	} else {
		err = c.writeLegacyAnswer(ctx, r, o.tokenAccount, c.legacyAnswer(r, o.tokenAccount, answer)...)
	}
	if err == nil {
		err = c.auditGrant(ctx, r, o)
	}
	return d, sealed, err
}

// mark writes the note about a granted request to the Cluster, together with the labels of its
// token and the key of its agent. The hub issues the credential afterwards. An agent then never
// acts as a Cluster with the labels of another token.
func (c *Controller) mark(ctx context.Context, r *fleet.ClusterRegistration, o *observation) error {
	before, after := o.match, o.match.DeepCopy()
	if used := useOf(r); used != "" {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, fleet.AnnotationAgentKeyUsed, used)
	}
	if !o.returns() { // else the labels of the previous token stay
		if err := o.stamp(after); err != nil {
			return err
		}
	}
	if equality.Semantic.DeepEqual(before.ObjectMeta, after.ObjectMeta) {
		return nil
	}
	if err := kube.Patch(ctx, c.Client, before, after); err != nil {
		return fmt.Errorf("labelling Cluster %s/%s: %w", before.Namespace, before.Name, err)
	}
	o.match = after
	return nil
}

// beginGrant lets one request at a time get the identity of a Cluster, until done is called. During
// a replacement of the identity, another request may have observed a Cluster without one. Such a
// request gets nothing, and the hub does not pin its key. It returns the account of the member.
func (c *Controller) beginGrant(ctx context.Context, r *fleet.ClusterRegistration,
	o observation) (account *corev1.ServiceAccount, done func(), err error) {
	key := client.ObjectKeyFromObject(o.match)
	if !c.tracker.granting.Add(key, true) {
		return nil, nil, fmt.Errorf("the identity of Cluster %s is being issued to another request", key)
	}
	done = func() { c.tracker.granting.Forget(key) }
	account, err = membernamespace.OfCluster(o.match).ReadAccountLive(ctx, c.Live)
	if err == nil && o.matches[0].holder == noHolder && account.UID != "" && !membernamespace.IssuedFor(account, r) {
		err = fmt.Errorf("the identity of Cluster %s was issued to another request a moment ago", key)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return account, done, nil
}

// mayReplace refuses to replace the identity of a newer request: the cache may have lacked that
// request when the hub observed this one.
func (c *Controller) mayReplace(ctx context.Context, r *fleet.ClusterRegistration, account *corev1.ServiceAccount) error {
	var holder fleet.ClusterRegistration
	key := types.NamespacedName{
		Namespace: account.Annotations[fleet.AnnotationRegistrationNamespace], Name: account.Annotations[fleet.AnnotationRegistration],
	}
	if err := c.Live.Get(ctx, key, &holder); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading ClusterRegistration %s, whose identity is there: %w", key, err)
	}
	if c.newer(&holder, r) {
		return fmt.Errorf("ClusterRegistration %s of the same client ID is newer and has the identity", key)
	}
	return nil
}

// agentDeployment returns the name of the BundleDeployment of a Muster agent in a member namespace,
// or "". An agent of Rancher Fleet would deploy it, and so replace itself.
func (c *Controller) agentDeployment(ctx context.Context, namespace string) (string, error) {
	var list fleet.BundleDeploymentList
	if err := c.Live.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{fleet.LabelAgent}, client.Limit(1)); err != nil &&
		!kube.NotServed(err) {
		return "", fmt.Errorf("listing the BundleDeployments of %s: %w", namespace, err)
	}
	if len(list.Items) == 0 {
		return "", nil
	}
	return list.Items[0].Name, nil
}

// seal issues an expiring credential and encrypts it to the agent's key.
func (c *Controller) seal(ctx context.Context, r *fleet.ClusterRegistration, account *corev1.ServiceAccount,
	answer credential.Answer) ([]byte, error) {
	token, err := kube.RequestToken(ctx, c.Client.SubResource("token"), account, c.Config.Current().AgentTokenLifetime)
	if err != nil {
		return nil, err
	}
	claims, err := credential.ReadClaims(token)
	if err != nil {
		return nil, err
	}
	if claims.AccountUID != string(account.UID) {
		return nil, fmt.Errorf("issuing the credential of %s/%s: the account was replaced meanwhile", account.Namespace, account.Name)
	}
	answer.Token, answer.Expires, answer.Reconnect = token, claims.Expires, c.Reconnect(ctx, r.Namespace)
	return credential.Seal(r.Spec.AnswerKey, string(r.UID), answer)
}

// reconcileGranted keeps a granted request as long as it is the newest of its Cluster. It withdraws
// the answer after the first heartbeat, which proves that the agent has it.
func (c *Controller) reconcileGranted(ctx context.Context, r *fleet.ClusterRegistration) (ctrl.Result, error) {
	key := types.NamespacedName{Namespace: r.Namespace, Name: r.Status.ClusterName}
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, key, &cluster); apierrors.IsNotFound(err) {
		return ctrl.Result{}, c.remove(ctx, r)
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if membership.Revoked(&cluster) {
		return ctrl.Result{}, c.revokeGranted(ctx, r)
	}
	var list fleet.ClusterRegistrationList
	if err := c.Client.List(ctx, &list, client.InNamespace(r.Namespace),
		client.MatchingFields{indexCluster: r.Status.ClusterName}); err != nil {
		return ctrl.Result{}, err
	}
	for i := range list.Items {
		other := &list.Items[i]
		if !other.Status.Granted || other.UID == r.UID {
			continue
		}
		if c.newer(other, r) {
			return ctrl.Result{}, c.remove(ctx, r)
		}
		if err := c.remove(ctx, other); err != nil {
			return ctrl.Result{}, err
		}
	}
	left := answerLeft(r, c.Clock.Now())
	// Without an answer, a killed hub has left the right to read.
	begun := len(r.Spec.AnswerKey) > 0 && len(r.Status.Answer) == 0
	if !c.tracker.proved(key) && !begun && left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	wait, err := c.withdrawAnswer(ctx, r)
	return ctrl.Result{RequeueAfter: wait}, err
}

// lastSeen returns the newest heartbeat of a Cluster: the one seen by the hub, or for legacy agents
// the one in the status.
func (c *Controller) lastSeen(cluster *fleet.Cluster, kind membership.AgentKind) time.Time {
	if kind == membership.Legacy {
		return cluster.Status.Agent.LastSeen.Time
	}
	return c.Liveness.Observe(membernamespace.OfCluster(cluster).Namespace).LastBeat
}

// answerLeft returns the remaining time to keep the answer for an agent without a heartbeat. The
// time counts from the grant, because a request may have waited for days. A grant in the future,
// left by a wrong clock, does not extend it.
func answerLeft(r *fleet.ClusterRegistration, now time.Time) time.Duration {
	granted := ptr.Deref(r.Status.GrantedAt, r.CreationTimestamp)
	return min(granted.Add(answerLife).Sub(now), answerLife)
}

// revokeGranted withdraws the answer to a granted request for a revoked Cluster, and denies the
// request.
func (c *Controller) revokeGranted(ctx context.Context, r *fleet.ClusterRegistration) error {
	if _, err := c.withdrawAnswer(ctx, r); err != nil { // the denial is readable again
		return err
	}
	if len(r.Spec.AnswerKey) == 0 {
		if err := c.endReadingNow(ctx, client.ObjectKeyFromObject(r)); err != nil {
			return err
		}
	}
	return c.report(ctx, r, observation{}, revoked(r.Namespace, r.Status.ClusterName), nil)
}
