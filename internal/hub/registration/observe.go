package registration

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/naming"
)

// seen is what was observed and what acting on it needs.
type seen struct {
	observed
	// match is the one Cluster with the request's client ID, if there is exactly one.
	match *fleet.Cluster
	// tokenAccount is the ServiceAccount in the workspace that made the request; "" if unknown.
	tokenAccount string
}

func (c *Controller) observe(ctx context.Context, r *fleet.ClusterRegistration) (seen, error) {
	s := seen{observed: observed{
		workspace: r.Namespace,
		created:   r.CreationTimestamp.Time,
		clientID:  r.Spec.ClientID,
		native:    len(r.Spec.AnswerKey) > 0,
		newName:   naming.Cluster(r.Spec.ClientID),
	}}
	if s.native && !credential.ValidAnswerKey(r.Spec.AnswerKey) {
		s.keyProblem = "spec.answerKey is not an X25519 public key of 32 bytes"
	}
	labels, _ := acceptLabels(r.Spec.ClusterLabels)
	s.labelProblem = labelProblem(labels)
	if err := c.observeToken(ctx, r, &s); err != nil {
		return seen{}, err
	}
	if s.clientID == "" { // matches nothing
		return s, nil
	}
	if err := c.observeNewer(ctx, r, &s); err != nil {
		return seen{}, err
	}
	return s, c.observeClusters(ctx, r, &s)
}

// observeToken finds the token by the name that the request claims, else by the account that the agent says it acts as.
func (c *Controller) observeToken(ctx context.Context, r *fleet.ClusterRegistration, s *seen) error {
	s.token = tokenUnnamed
	var token fleet.ClusterRegistrationToken
	if name := r.Labels[fleet.LabelRegistrationToken]; name != "" {
		s.tokenName = name
		err := c.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: name}, &token)
		if apierrors.IsNotFound(err) {
			s.token = tokenMissing
			return nil
		} else if err != nil {
			return err
		}
	} else {
		account, ok := strings.CutPrefix(r.Annotations[fleet.AnnotationRequester], "system:serviceaccount:"+r.Namespace+":")
		if !ok {
			return nil
		}
		var list fleet.ClusterRegistrationTokenList
		if err := c.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingFields{indexTokenOwner: account}); err != nil || len(list.Items) == 0 {
			return err
		}
		token = list.Items[0]
		s.tokenName = token.Name
	}
	s.token, s.tokenAccount = tokenValid, naming.TokenServiceAccount(token.Name, string(token.UID))
	if owner := metav1.GetControllerOf(&token); owner != nil && owner.Kind == "Cluster" {
		s.tokenCluster = owner.Name
	}
	if ttl := token.Spec.TTL; ttl != nil && ttl.Duration > 0 && !c.Clock.Now().Before(token.CreationTimestamp.Add(ttl.Duration)) {
		s.token = tokenExpired
	}
	return nil
}

func (c *Controller) observeNewer(ctx context.Context, r *fleet.ClusterRegistration, s *seen) error {
	var list fleet.ClusterRegistrationList
	if err := c.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingFields{indexClientID: r.Spec.ClientID}); err != nil {
		return err
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.UID != r.UID && other.DeletionTimestamp == nil && newer(other, r) {
			s.newer = other.Name
		}
	}
	return nil
}

// newer says whether a was created after b. Creation times have a resolution of a second, in which an agent can restart: then it
// counts when the agents asked. What decides must not change, or each of two requests would be superseded by the other. An agent that
// lies about that time wins no more than the second in which anybody with its token may ask anew.
func newer(a, b *fleet.ClusterRegistration) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return b.CreationTimestamp.Before(&a.CreationTimestamp)
	}
	if at, bt := a.Spec.RequestedAt, b.Spec.RequestedAt; at != nil && bt != nil && !at.Equal(bt) {
		return bt.Before(at)
	}
	return a.UID > b.UID
}

func (c *Controller) observeClusters(ctx context.Context, r *fleet.ClusterRegistration, s *seen) error {
	var list fleet.ClusterList
	if err := c.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingFields{indexClientID: r.Spec.ClientID}); err != nil {
		return err
	}
	for i := range list.Items {
		cluster := &list.Items[i]
		view := clusterView{name: cluster.Name, deleting: cluster.DeletionTimestamp != nil, prepared: cluster.Status.Namespace != ""}
		member := membership.OfCluster(cluster)
		state, _, err := member.ObserveNamespace(ctx, c.Client)
		if err == nil && state == membership.NamespaceAbsent { // or somebody else's, which the cache does not hold
			state, _, err = member.ObserveNamespace(ctx, c.Live)
		}
		if err != nil {
			return err
		}
		view.namespace, view.memberNamespace = state, member.Namespace
		s.matches = append(s.matches, view)
	}
	if len(list.Items) == 1 {
		s.match = &list.Items[0]
	}
	if len(list.Items) > 0 {
		return nil
	}
	var other fleet.Cluster
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: s.newName}, &other)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Cluster %s/%s: %w", r.Namespace, s.newName, err)
	}
	s.newNameTaken = err == nil
	return nil
}

// tokenAccountOf indexes tokens by the ServiceAccount behind them.
func tokenAccountOf(o client.Object) []string {
	return []string{naming.TokenServiceAccount(o.GetName(), string(o.GetUID()))}
}
