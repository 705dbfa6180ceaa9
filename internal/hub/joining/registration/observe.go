package registration

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/hub/credentials/rejoin"
	"github.com/muster-fleet/muster/internal/hub/joining/token"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// observation holds the inputs of a decision, and the further inputs of actions.
type observation struct {
	observed
	// match is the Cluster with the request's client ID, if there is exactly one.
	match *fleet.Cluster
	// tokenAccount is the ServiceAccount in the workspace behind the request; "" if unknown.
	tokenAccount string
	// registrationToken is the token of tokenAccount; nil if unknown.
	registrationToken *fleet.ClusterRegistrationToken
	// labels are the accepted labels of the request. stamps are the labels stamped by the token.
	// dropped lists the refused labels, each with the cause.
	labels, stamps map[string]string
	dropped        []string
	// requester is the user behind the request; "" if uncertain.
	requester string
	// key is the fingerprint of the agent's key; "" if it has none. Before the verification of the
	// signature, the key is unproven.
	key string
}

// observe gathers the inputs of a decision, except for the verification of signatures: see decide.
func (c *Controller) observe(ctx context.Context, r *fleet.ClusterRegistration) (observation, error) {
	settings := c.Config.Current().Registration
	o := observation{observed: observed{
		displacement: settings.Displacement,
		workspace:    r.Namespace,
		name:         r.Name,
		reason:       r.Status.Reason,
		cluster:      r.Status.ClusterName,
		message:      r.Status.Message,
		approved:     r.Annotations[fleet.AnnotationApproved],
		created:      r.CreationTimestamp.Time,
		life:         settings.RequestLifetime,
		clientID:     r.Spec.ClientID,
		native:       len(r.Spec.AnswerKey) > 0,
		newName:      naming.Cluster(r.Spec.ClientID),

		approvalReason: membership.DecidedBecause(r),
	}}
	if o.native && !credential.ValidAnswerKey(r.Spec.AnswerKey) {
		o.keyProblem = "spec.answerKey is not an X25519 public key of 32 bytes"
	}
	if r.Status.ApprovedGeneration == r.Generation {
		o.approvedFor = r.Status.ApprovedReason // for the request as it was then
	}
	o.key = claimedKey(r)
	if err := c.observeToken(ctx, r, &o); err != nil {
		return observation{}, err
	}
	if err := c.observeAttribution(ctx, r, &o); err != nil {
		return observation{}, err
	}
	if o.clientID == "" { // matches nothing
		return o, nil
	}
	if err := c.observeClusters(ctx, r, &o); err != nil {
		return observation{}, err
	}
	if err := c.observeQuarantine(ctx, r, &o); err != nil {
		return observation{}, err
	}
	o.hubCAProblem = c.hubCAProblem(r, o.match)
	if err := c.observeLabels(ctx, r, &o); err != nil {
		return observation{}, err
	}
	c.observeExpression(r, &o)
	return o, nil
}

// observeToken observes the token of a request.
func (c *Controller) observeToken(ctx context.Context, r *fleet.ClusterRegistration, o *observation) error {
	o.token, o.tokenName = tokenUnnamed, r.Labels[fleet.LabelRegistrationToken]
	if o.reconnecting = reconnects(r); o.reconnecting {
		o.tokenAccount = accountOf(r)
		return nil
	}
	if o.standby = c.isOfStandby(r); o.standby {
		o.reconnecting = true
		return nil
	}
	token, err := c.findToken(ctx, r)
	switch {
	case err != nil:
		return err
	case token == nil && o.tokenName == "":
		return c.observeUnnamed(ctx, r, o)
	case token == nil:
		o.token = tokenMissing
		return nil
	}
	o.tokenName, o.registrationToken = token.Name, token
	o.token, o.tokenAccount = tokenValid, naming.TokenServiceAccount(token.Name, string(token.UID))
	if o.limits = limitsOf(token); o.limits.cluster != "" {
		o.newName = o.limits.cluster
	}
	c.observeExpiry(token, o)
	return nil
}

// reconnects reports whether an agent sent a request with a reconnect token.
func reconnects(r *fleet.ClusterRegistration) bool {
	return r.Labels[fleet.LabelRegistrationToken] == "" && rejoin.IsAccount(r.Annotations[fleet.AnnotationRequester], r.Namespace)
}

// isOfStandby reports whether an agent sent a request with a token of the standby. This hub is then
// the successor of the agent's hub.
func (c *Controller) isOfStandby(r *fleet.ClusterRegistration) bool {
	return r.Labels[fleet.LabelRegistrationToken] == "" && r.Annotations[fleet.AnnotationRequester] == standby.User(c.SystemNamespace)
}

// findToken finds the token by its name in the request, else by the account in the request. It
// returns nil if there is none.
func (c *Controller) findToken(ctx context.Context, r *fleet.ClusterRegistration) (*fleet.ClusterRegistrationToken, error) {
	name := r.Labels[fleet.LabelRegistrationToken]
	if name == "" {
		var list fleet.ClusterRegistrationTokenList
		err := c.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingFields{indexTokenOwner: accountOf(r)})
		if err != nil || len(list.Items) == 0 {
			return nil, err
		}
		return &list.Items[0], nil
	}
	var token fleet.ClusterRegistrationToken
	if err := c.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: name}, &token); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if r.CreationTimestamp.Before(&token.CreationTimestamp) { // created with an earlier token of the same name
		return nil, nil
	}
	return &token, nil
}

// observeExpiry checks whether a registration token has expired, or the hub refuses its life.
func (c *Controller) observeExpiry(registered *fleet.ClusterRegistrationToken, o *observation) {
	current := c.Config.Current()
	ttl := ptr.Deref(registered.Spec.TTL, metav1.Duration{}).Duration
	expires, problem := token.Expiry(registered.CreationTimestamp.Time, ttl, current.RegistrationTokenTTLRequired)
	switch {
	case !expires.IsZero() && !c.Clock.Now().Before(expires):
		o.token = tokenExpired
	case current.Unknown:
		o.tokenProblem = settings.MissingProblem(c.SystemNamespace)
	default:
		o.tokenProblem = problem
	}
}

// observeUnnamed checks a request with an unknown token. Its account may belong to a deleted token.
func (c *Controller) observeUnnamed(ctx context.Context, r *fleet.ClusterRegistration, o *observation) (err error) {
	account := accountOf(r)
	if requester := r.Annotations[fleet.AnnotationRequester]; requester != "" && account != requester {
		have := kube.CoreMetadata("ServiceAccount")
		err := client.IgnoreNotFound(c.Live.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: account}, have))
		if err != nil {
			return fmt.Errorf("reading ServiceAccount %s/%s, which made the request: %w", r.Namespace, account, err)
		}
		if have.UID == "" || have.Labels[fleet.LabelManaged] == "true" {
			o.token, o.tokenName = tokenMissing, account
			return nil
		}
	}
	o.limitedTokens, err = c.limitedTokens(ctx, r.Namespace)
	return err
}

// newer also compares requests without a status yet.
func (c *Controller) newer(a, b *fleet.ClusterRegistration) bool {
	known := func(r fleet.ClusterRegistration) *fleet.ClusterRegistration {
		r.Status.FirstSeenVersion = c.tracker.firstSeenAt(&r)
		return &r
	}
	return newer(known(*a), known(*b))
}

// newer reports whether a was created after b. Creation times have a resolution of a second, and an
// agent can restart within one. Of two requests of one second, spec.requestedAt decides, if both
// have it; agents of Rancher Fleet do not write it. Then the order of their first appearance in the
// watch decides. The order must not depend on a value that can change, or each of two requests
// would supersede the other. An agent with a false time wins at most one second, and any holder of
// its token may send another request in that second.
func newer(a, b *fleet.ClusterRegistration) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return b.CreationTimestamp.Before(&a.CreationTimestamp)
	}
	if at, bt := a.Spec.RequestedAt, b.Spec.RequestedAt; at != nil && bt != nil && !at.Equal(bt) {
		return bt.Before(at)
	}
	if order, err := resourceversion.CompareResourceVersion(a.Status.FirstSeenVersion, b.Status.FirstSeenVersion); err == nil && order != 0 {
		return order > 0
	}
	return a.UID > b.UID // granted by a hub without stored versions
}

func (c *Controller) observeClusters(ctx context.Context, r *fleet.ClusterRegistration, o *observation) error {
	var list fleet.ClusterList
	if err := c.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingFields{indexClientID: r.Spec.ClientID}); err != nil {
		return err
	}
	for i := range list.Items {
		cluster := &list.Items[i]
		view := clusterView{name: cluster.Name, deleting: cluster.DeletionTimestamp != nil, prepared: membernamespace.Registrable(cluster),
			revoked: membership.Revoked(cluster)}
		member := membernamespace.OfCluster(cluster)
		state, namespace, err := member.ObserveNamespace(ctx, c.Client)
		if err == nil && state == membernamespace.NamespaceAbsent { // or foreign, and the cache does not hold it
			state, namespace, err = member.ObserveNamespace(ctx, c.Live)
		}
		if err != nil {
			return err
		}
		if state == membernamespace.NamespaceTaken {
			view.taken = member.Taken(namespace)
		}
		// an agent of Rancher Fleet cannot write its part of a status that does not exist yet
		view.prepared = view.prepared || o.native && state == membernamespace.NamespaceOurs && member.Marked(namespace)
		view.namespace, view.memberNamespace, view.reconnect = state, member.Namespace, ptr.Deref(cluster.Spec.Reconnect, true)
		key := o.key
		switch freshnessOf(r, cluster.Annotations[fleet.AnnotationAgentKeyUsed]) {
		case untimed:
			key = "" // a copy of an older agent's request may be of any time, and proves nothing
		case replay:
			view.replayed = true
		case fresh:
		}
		view.ownKey = key != "" && cluster.Annotations[fleet.AnnotationAgentKey] == key
		if view.holder, err = c.observeHolder(ctx, r, cluster, key); err != nil {
			return err
		}
		o.matches = append(o.matches, view)
	}
	if len(list.Items) == 1 {
		o.match = &list.Items[0]
	}
	if len(list.Items) > 0 {
		return nil
	}
	var other fleet.Cluster
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: o.newName}, &other)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Cluster %s/%s: %w", r.Namespace, o.newName, err)
	}
	o.newNameTaken = err == nil
	return nil
}

// accountOf returns the ServiceAccount of the workspace in a request.
func accountOf(r *fleet.ClusterRegistration) string {
	return strings.TrimPrefix(r.Annotations[fleet.AnnotationRequester], "system:serviceaccount:"+r.Namespace+":")
}

// tokenAccountOf indexes tokens by their ServiceAccount.
func tokenAccountOf(o client.Object) []string {
	return []string{naming.TokenServiceAccount(o.GetName(), string(o.GetUID()))}
}
