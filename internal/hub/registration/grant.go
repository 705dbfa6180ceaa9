package registration

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// createCluster makes the Cluster that the request asks for; the preparation of its member namespace wakes the request again.
func (c *Controller) createCluster(ctx context.Context, r *fleet.ClusterRegistration, name string) error {
	labels, dropped := acceptLabels(r.Spec.ClusterLabels)
	if c.Config.Current().IgnoreClusterRegistrationLabels {
		labels = map[string]string{}
	}
	labels[fleet.LabelCluster] = name
	cluster := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.Namespace, Labels: labels, Finalizers: []string{fleet.FinalizerCluster}},
		Spec:       fleet.ClusterSpec{ClientID: r.Spec.ClientID},
	}
	if err := c.Client.Create(ctx, cluster, kube.FieldOwner); apierrors.IsAlreadyExists(err) {
		return nil // the cache will say so in a moment
	} else if err != nil {
		return fmt.Errorf("creating Cluster %s/%s: %w", r.Namespace, name, err)
	}
	if len(dropped) > 0 {
		c.Recorder.Eventf(cluster, r, corev1.EventTypeWarning, "LabelsDropped", "Register",
			"the agent asked for labels with reserved prefixes, which only admins may set: %s", strings.Join(dropped, ", "))
	}
	return nil
}

// grant issues the credential and answers, and returns what to say then. Everything it writes is the same when it is done again.
func (c *Controller) grant(ctx context.Context, r *fleet.ClusterRegistration, s seen, d decision) (said decision, sealed []byte, err error) {
	identity := membership.Identity{Member: membership.OfCluster(s.match), Kind: membership.Legacy, Registration: r.Name, RegistrationUID: r.UID}
	if s.native {
		identity.Kind = membership.Native
	}
	account, err := identity.Establish(ctx, c.Client, c.Live, identity.Objects(membership.Join(c.Heartbeat(), c.Hub(s.match)))...)
	if err != nil {
		return d, nil, err
	}
	var legacyToken string
	if !s.native {
		var secret *corev1.Secret
		if secret, legacyToken, err = c.legacyToken(ctx, identity, account); err != nil {
			return d, nil, err
		}
		if legacyToken == "" { // the Secret wakes the request
			return awaitToken(s.observed, client.ObjectKeyFromObject(secret), secret.CreationTimestamp.Time, c.Clock.Now()), nil, nil
		}
	}
	answer := credential.Answer{
		Token:               legacyToken,
		DeploymentNamespace: identity.Namespace,
		ClusterNamespace:    r.Namespace,
		ClusterName:         s.match.Name,
		SystemNamespace:     c.SystemNamespace,
	}
	if s.native {
		sealed, err = c.seal(ctx, r, account, answer)
	} else {
		err = kube.Ensure(ctx, c.Client, c.legacyAnswer(r, s.tokenAccount, answer)...)
	}
	if err == nil {
		c.proved.Delete(client.ObjectKeyFromObject(s.match))
	}
	return d, sealed, err
}

// seal issues a credential that expires and encrypts it to the agent's key.
func (c *Controller) seal(ctx context.Context, r *fleet.ClusterRegistration, account *corev1.ServiceAccount, answer credential.Answer) ([]byte, error) {
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
	answer.Token, answer.Expires = token, claims.Expires
	return credential.Seal(r.Spec.AnswerKey, string(r.UID), answer)
}

// tend keeps a granted request as long as it is the newest of its Cluster, and takes the answer back once the agent has proved
// that it has it.
func (c *Controller) tend(ctx context.Context, r *fleet.ClusterRegistration) (ctrl.Result, error) {
	key := types.NamespacedName{Namespace: r.Namespace, Name: r.Status.ClusterName}
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, key, &cluster); apierrors.IsNotFound(err) {
		return ctrl.Result{}, c.remove(ctx, r)
	} else if err != nil {
		return ctrl.Result{}, err
	}
	var list fleet.ClusterRegistrationList
	if err := c.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingFields{indexCluster: r.Status.ClusterName}); err != nil {
		return ctrl.Result{}, err
	}
	for i := range list.Items {
		other := &list.Items[i]
		if !other.Status.Granted || other.UID == r.UID {
			continue
		}
		if newer(other, r) {
			return ctrl.Result{}, c.remove(ctx, r)
		}
		if err := c.remove(ctx, other); err != nil {
			return ctrl.Result{}, err
		}
	}
	left := r.CreationTimestamp.Add(answerLife).Sub(c.Clock.Now())
	if _, proved := c.proved.Load(key); !proved && left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return ctrl.Result{}, c.withdrawAnswer(ctx, r)
}
