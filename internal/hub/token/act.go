package token

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/hub/lasting"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// observation is what was observed, and what actions need besides.
type observation struct {
	observed
	// settings are those of the decision.
	settings config.Config
	account  *corev1.ServiceAccount // nil if absent
	secret   *corev1.Secret         // nil if absent
	token    string                 // the credential in the values Secret, if it is valid
}

func (c *Controller) observe(ctx context.Context, token *fleet.ClusterRegistrationToken) (observation, error) {
	settings := c.Config.Current()
	o := observation{settings: settings, observed: observed{
		created: token.CreationTimestamp.Time, ttlRequired: settings.RegistrationTokenTTLRequired, labelProblem: membership.StampProblem(token.Spec),
	}}
	if err := c.expressions.Keep(token); err != nil {
		o.approvalProblem = "spec.approvalExpression: " + err.Error()
	}
	if settings.Missing {
		o.settingsMissing = config.MissingProblem(c.SystemNamespace)
	}
	if token.Spec.TTL != nil {
		o.ttl = token.Spec.TTL.Duration
	}
	account := &corev1.ServiceAccount{}
	found, err := c.read(ctx, token.Namespace, accountName(token), account)
	if err != nil {
		return observation{}, err
	}
	if found {
		o.account = account
	}
	secret := &corev1.Secret{}
	if found, err = c.read(ctx, token.Namespace, token.Name, secret); err != nil || !found {
		return o, err
	}
	o.secret = secret
	o.foreignSecret = secret.Type != fleet.SecretTypeValues
	if o.foreignSecret || o.account == nil {
		return o, nil
	}
	claims, err := credential.ReadClaims(credentialIn(secret))
	// A credential of another kind than the TTL asks for is replaced, as after an edit of the TTL.
	if err != nil || claims.AccountUID != string(o.account.UID) || claims.Lasting() != (o.ttl <= 0) {
		return o, nil
	}
	if ended, err := c.ended(ctx, claims); err != nil || ended {
		return o, err
	}
	o.credentialValid, o.token = true, credentialIn(secret)
	o.credentialIssued, o.credentialExpires = claims.Issued, claims.Expires
	return o, nil
}

// ended returns whether the Secret that a credential ends with is gone.
func (c *Controller) ended(ctx context.Context, claims credential.Claims) (bool, error) {
	if claims.Secret == "" {
		return false, nil
	}
	have := kube.CoreMetadata("Secret")
	found, err := c.read(ctx, claims.Namespace, claims.Secret, have)
	return !found || claims.SecretUID != "" && claims.SecretUID != string(have.UID), err
}

func (c *Controller) read(ctx context.Context, namespace, name string, into client.Object) (bool, error) {
	err := c.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s/%s: %w", namespace, name, err)
	}
	return true, nil
}

// provide makes the account, its rights and the values Secret. The result is true until Kubernetes has issued the account's token.
func (c *Controller) provide(ctx context.Context, token *fleet.ClusterRegistrationToken, o *observation, d decision) (bool, error) {
	account := desiredAccount(token)
	role, binding := desiredAccess(token)
	if d.issue {
		// First, because Kubernetes takes a moment to notice a new right, which the other writes fill.
		missing, err := kube.Missing(ctx, c.Client, kube.MetadataOf(c.Client.Scheme()), membership.TokenIssuer(token.Namespace, c.SystemNamespace))
		if err := errors.Join(err, kube.Ensure(ctx, c.Client, missing...)); err != nil {
			return false, err
		}
	}
	if o.account != nil {
		account = o.account
	} else if err := kube.Ensure(ctx, c.Client, account); err != nil {
		return false, err
	}
	missing, err := kube.Missing(ctx, c.Live, kube.MetadataOf(c.Client.Scheme()), binding)
	if err != nil {
		return false, err
	}
	// A Role that an earlier version of the hub made may lack rules.
	var have rbacv1.Role
	if found, err := c.read(ctx, role.Namespace, role.Name, &have); err != nil {
		return false, err
	} else if !found || !equality.Semantic.DeepEqual(have.Rules, role.Rules) {
		missing = append([]client.Object{role}, missing...)
	}
	if err := kube.Ensure(ctx, c.Client, missing...); err != nil {
		return false, err
	}
	bearer := o.token
	if d.issue {
		if bearer, err = c.issue(ctx, token, account, o.expires()); err != nil || bearer == "" {
			return err == nil, err
		}
		if claims, err := credential.ReadClaims(bearer); err == nil {
			o.credentialIssued, o.credentialExpires = claims.Issued, claims.Expires
		}
	}
	text, err := renderValues(token, o.settings, c.SystemNamespace, bearer)
	if err != nil {
		return false, err
	}
	if o.secret != nil && string(o.secret.Data[valuesKey]) == text {
		return false, nil
	}
	return false, kube.Ensure(ctx, c.Client, desiredSecret(token, text))
}

// issue returns a credential of the account that expires at the given time. If that is zero, the credential lasts, and may be "" until Kubernetes has
// issued it, which wakes this controller.
func (c *Controller) issue(ctx context.Context, token *fleet.ClusterRegistrationToken, account *corev1.ServiceAccount, expires time.Time) (string, error) {
	if !expires.IsZero() {
		return kube.RequestToken(ctx, c.Client.SubResource("token"), account, expires.Sub(c.Clock.Now()))
	}
	bearer, _, err := c.lasting.Token(ctx, account, meta(token, ""))
	return bearer, err
}

// withdraw deletes the account, and with it every credential that was issued.
func (c *Controller) withdraw(ctx context.Context, token *fleet.ClusterRegistrationToken, o observation) error {
	role, binding := desiredAccess(token)
	objects := []client.Object{}
	if o.account != nil {
		bound, filled := lasting.Secrets(o.account.Name, meta(token, ""))
		objects = append(objects, o.account, role, binding, bound, filled)
	}
	if o.secret != nil && !o.foreignSecret {
		objects = append(objects, o.secret)
	}
	return kube.Delete(ctx, c.Client, objects...)
}

// count enters in the status of a token what it has registered.
func count(token *fleet.ClusterRegistrationToken, registrations []fleet.ClusterRegistration) {
	status := &token.Status
	clusters := map[string]bool{} // a cluster that registered again counts once
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
	if err := c.Client.List(ctx, &registrations, client.InNamespace(token.Namespace), client.MatchingFields{indexToken: token.Name}); err != nil {
		return err
	}
	ready := d.reason == "Ready"
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
		after.Status.Conditions = kube.SetCondition(after.Status.Conditions, now, kube.Condition(fleet.ConditionTTLGranted, false, "LifeShortened", life.shortened))
	} else {
		after.Status.Conditions = kube.RemoveCondition(after.Status.Conditions, fleet.ConditionTTLGranted)
	}
	if err := kube.PatchStatus(ctx, c.Client, token, after); err != nil {
		return err
	}
	c.expected.Expect(client.ObjectKeyFromObject(after), after)
	return nil
}
