package token

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

// observation holds the inputs of a decision, and the further inputs of actions.
type observation struct {
	observed
	// settings are the settings behind the decision.
	settings settings.Config
	known    *known
	account  *corev1.ServiceAccount // nil if absent
	secret   *metav1.ObjectMeta     // nil if absent
	token    string                 // the credential in the values Secret, if the hub has read it
	values   string                 // the desired content of the Secret, without the credential
}

func (c *Controller) observe(ctx context.Context, token *fleet.ClusterRegistrationToken, now time.Time) (o observation, err error) {
	current := c.Config.Current()
	o = observation{settings: current, known: c.knownOf(token), observed: observed{
		created: token.CreationTimestamp.Time, ttlRequired: current.RegistrationTokenTTLRequired,
		labelProblem: membernamespace.StampProblem(token.Spec), rotation: rotationOf(token),
	}}
	if err := c.expressions.Keep(token); err != nil {
		o.approvalProblem = "spec.approvalExpression: " + err.Error()
	}
	if current.Missing {
		o.settingsMissing = settings.MissingProblem(c.SystemNamespace)
	}
	if token.Spec.TTL != nil {
		o.ttl = token.Spec.TTL.Duration
	}
	if o.values, err = renderValues(token, current, c.SystemNamespace, ""); err != nil {
		return observation{}, err
	}
	if err := c.observeAccount(ctx, token, &o); err != nil {
		return observation{}, err
	}
	o.served = o.account != nil
	err = c.observeSecret(ctx, token, &o, now)
	return o, err
}

func (c *Controller) observeAccount(ctx context.Context, token *fleet.ClusterRegistrationToken, o *observation) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: token.Namespace, Name: accountName(token)}}
	cached, err := c.cached(ctx, account)
	if err != nil {
		return err
	}
	if cached != nil {
		o.account = &corev1.ServiceAccount{ObjectMeta: cached.ObjectMeta}
		return nil
	}
	if o.known.claims.AccountUID == "" { // this process has created none
		return nil
	}
	found, err := c.read(ctx, account)
	if found {
		o.account = account
	}
	return err
}

// observeSecret observes the values Secret and its credential. A Secret missing from the cache may
// belong to another owner. The difference matters while the token hands out a credential.
func (c *Controller) observeSecret(ctx context.Context, token *fleet.ClusterRegistrationToken, o *observation, now time.Time) error {
	cached, err := c.cached(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: token.Namespace, Name: token.Name}})
	if err != nil {
		return err
	}
	switch {
	case cached != nil:
		o.secret = &cached.ObjectMeta
	case over(decide(o.observed, now).state):
		return nil
	}
	k := o.known
	if cached == nil || cached.ResourceVersion != k.secret || k.values != o.values {
		if o.token, err = c.readSecret(ctx, token, o, k); err != nil || o.secret == nil {
			return err
		}
	}
	o.foreignSecret = k.foreign
	// A credential of another kind than the TTL requires is replaced, for example after an edit of the
	// TTL.
	if k.foreign || o.account == nil || k.claims.Subject == "" || k.claims.AccountUID != string(o.account.UID) ||
		!fits(k.claims, o.expires()) || !o.rotation.covers(k.claims, o.account.Name) {
		return nil
	}
	if ended, err := c.ended(ctx, k.claims); err != nil || ended {
		return err
	}
	o.credentialValid, o.credentialIssued, o.credentialExpires = true, k.claims.Issued, k.claims.Expires
	return nil
}

// provide creates the account, its rights and the values Secret. The result is true until
// Kubernetes has issued the account's token.
func (c *Controller) provide(ctx context.Context, token *fleet.ClusterRegistrationToken, o *observation, d decision) (bool, error) {
	account := desiredAccount(token)
	if d.issue {
		// First, because Kubernetes takes a moment to notice a new right; the other writes fill the
		// moment.
		missing, err := kube.Missing(ctx, c.Client, kube.MetadataOf(c.Client.Scheme()),
			membernamespace.TokenIssuer(token.Namespace, c.SystemNamespace))
		if err := errors.Join(err, kube.Ensure(ctx, c.Client, missing...)); err != nil {
			return false, err
		}
	}
	if o.account != nil {
		account = o.account
	} else if err := kube.Ensure(ctx, c.Client, account); err != nil {
		return false, err
	}
	if err := c.ensureAccess(ctx, token, o.known); err != nil {
		return false, err
	}
	bearer := o.token
	if d.issue {
		if err := c.endLonger(ctx, token, o); err != nil {
			return false, err
		}
		var err error
		if bearer, err = c.issue(ctx, token, account, o); err != nil || bearer == "" {
			return err == nil, err
		}
		claims := credential.ClaimsOf(bearer)
		o.credentialIssued, o.credentialExpires = claims.Issued, claims.Expires
	} else if o.known.values == o.values {
		return false, nil
	}
	text, err := renderValues(token, o.settings, c.SystemNamespace, bearer)
	if err != nil {
		return false, err
	}
	secret := desiredSecret(token, text)
	if err := kube.Ensure(ctx, c.Client, secret); err != nil {
		return false, err
	}
	o.known.secret, o.known.foreign, o.known.claims, o.known.values = secret.ResourceVersion, false, credential.ClaimsOf(bearer), o.values
	return false, nil
}

// issue returns a credential of the account with the expiry of the token. Without an expiry the
// credential lasts forever. It is then "" until Kubernetes has issued it, and the event triggers
// another reconcile.
func (c *Controller) issue(ctx context.Context, token *fleet.ClusterRegistrationToken, account *corev1.ServiceAccount,
	o *observation) (string, error) {
	expires, generation := o.expires(), o.rotation.generation()
	life := expires.Sub(c.Clock.Now())
	switch bound, _ := credentialSecrets(token, generation); {
	case expires.IsZero():
		bearer, _, err := c.lasting.Token(ctx, account, meta(token, credentialName(account.Name, generation)))
		return bearer, err
	case generation == 0 && metav1.GetControllerOf(token) != nil: // the token of an import is not handed out
		return kube.RequestToken(ctx, c.Client.SubResource("token"), account, life)
	default:
		if err := kube.Ensure(ctx, c.Client, bound); err != nil {
			return "", err
		}
		return kube.RequestBoundToken(ctx, c.Client.SubResource("token"), account, bound, life)
	}
}

// endLonger deletes the Secrets of credentials with a longer life than the token, after an edit of
// the TTL. Otherwise they would stay valid until a running hub deletes the account.
func (c *Controller) endLonger(ctx context.Context, token *fleet.ClusterRegistrationToken, o *observation) error {
	if o.expires().IsZero() || o.known.claims.Subject == "" || fits(o.known.claims, o.expires()) {
		return nil
	}
	return kube.Delete(ctx, c.Client, o.rotation.secretsInUse(token)...)
}

// withdraw deletes the account, and with it every issued credential.
func (c *Controller) withdraw(ctx context.Context, token *fleet.ClusterRegistrationToken, o observation) error {
	role, binding := desiredAccess(token)
	objects := []client.Object{}
	if o.account != nil {
		objects = append(append(objects, o.account, role, binding), o.rotation.secretsInUse(token)...)
	}
	if o.secret != nil && !o.foreignSecret {
		objects = append(objects, &corev1.Secret{ObjectMeta: *o.secret})
	}
	c.known.Forget(client.ObjectKeyFromObject(token))
	return kube.Delete(ctx, c.Client, objects...)
}

// count writes the number of registrations into the status of a token.
func count(token *fleet.ClusterRegistrationToken, registrations []fleet.ClusterRegistration) {
	status := &token.Status
	clusters := map[string]bool{} // a re-registered cluster counts once
	for i := range registrations {
		clusters[registrations[i].Status.ClusterName] = true
		if at := registrations[i].CreationTimestamp; status.LastUsed == nil || status.LastUsed.Before(&at) {
			status.LastUsed = &at
		}
	}
	status.Registrations, status.Used = int32(len(clusters)), strconv.Itoa(len(clusters))
	if most := token.Spec.MaxRegistrations; most != nil {
		status.Used = fmt.Sprintf("%d/%d", len(status.Clusters), *most)
	}
}

func (c *Controller) report(ctx context.Context, token *fleet.ClusterRegistrationToken, o observed, d decision, now time.Time) error {
	var registrations fleet.ClusterRegistrationList
	if err := c.Client.List(ctx, &registrations, client.InNamespace(token.Namespace), client.MatchingFields{indexToken: token.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	ready := d.reason == reasons.Ready
	after := token.DeepCopy()
	count(after, registrations.Items)
	switch {
	case ready:
		after.Status.SecretName = token.Name
	case d.state != held:
		after.Status.SecretName = ""
	}
	life := lifeOf(o, d, token.Name)
	after.Status.Expires = nil
	if !life.expires.IsZero() {
		after.Status.Expires = &metav1.Time{Time: life.expires.Truncate(time.Second)}
	}
	after.Status.Conditions = kube.SetCondition(after.Status.Conditions, now, kube.Condition(fleet.ConditionReady, ready, d.reason, d.message))
	if life.shortened != "" {
		after.Status.Conditions = kube.SetCondition(after.Status.Conditions, now,
			kube.Condition(fleet.ConditionTTLGranted, false, reasons.LifeShortened, life.shortened))
	} else {
		after.Status.Conditions = kube.RemoveCondition(after.Status.Conditions, fleet.ConditionTTLGranted)
	}
	after.Status.Rotation = o.rotation.status(now)
	if rotated := o.rotation.condition(after.Status.Rotation, d); rotated.Reason != "" {
		after.Status.Conditions = kube.SetCondition(after.Status.Conditions, now, rotated)
	} else {
		after.Status.Conditions = kube.RemoveCondition(after.Status.Conditions, fleet.ConditionRotated)
	}
	if err := kube.PatchStatus(ctx, c.Client, token, after); err != nil {
		return err
	}
	if o.rotation.done {
		c.Recorder.Eventf(after, nil, corev1.EventTypeNormal, reasons.RotationDone, "Rotate", "%s",
			kube.FindCondition(after.Status.Conditions, fleet.ConditionRotated).Message)
	}
	c.expected.Expect(client.ObjectKeyFromObject(after), after)
	return nil
}
