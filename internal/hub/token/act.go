package token

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// seen is what was observed and what acting on it needs.
type seen struct {
	observed
	// settings are the same from the decision to the act.
	settings config.Config
	account  *corev1.ServiceAccount // nil if absent
	secret   *corev1.Secret         // nil if absent
	token    string                 // what the values Secret holds, if it is valid
}

func (c *Controller) observe(ctx context.Context, token *fleet.ClusterRegistrationToken) (seen, error) {
	settings := c.config.Current()
	s := seen{settings: settings, observed: observed{created: token.CreationTimestamp.Time, ttlRequired: settings.RegistrationTokenTTLRequired}}
	if settings.Missing {
		s.settingsMissing = config.MissingProblem(c.systemNamespace)
	}
	if token.Spec.TTL != nil {
		s.ttl = token.Spec.TTL.Duration
	}
	account := &corev1.ServiceAccount{}
	found, err := c.read(ctx, token.Namespace, accountName(token), account)
	if err != nil {
		return seen{}, err
	}
	if found {
		s.account = account
	}
	secret := &corev1.Secret{}
	if found, err = c.read(ctx, token.Namespace, token.Name, secret); err != nil || !found {
		return s, err
	}
	s.secret = secret
	s.foreignSecret = secret.Type != fleet.SecretTypeValues
	if s.foreignSecret || s.account == nil {
		return s, nil
	}
	claims, err := credential.ReadClaims(credentialIn(secret))
	// A credential of another kind than the TTL asks for is replaced, as after an edit of the TTL.
	if err == nil && claims.AccountUID == string(s.account.UID) && claims.Expires.IsZero() == (s.ttl <= 0) {
		s.credentialValid, s.token = true, credentialIn(secret)
		s.credentialIssued, s.credentialExpires = claims.Issued, claims.Expires
	}
	return s, nil
}

func (c *Controller) read(ctx context.Context, namespace, name string, into client.Object) (bool, error) {
	err := c.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s/%s: %w", namespace, name, err)
	}
	return true, nil
}

// provide makes the identity, what it may do and the values Secret. It says true while Kubernetes still owes the account's token.
func (c *Controller) provide(ctx context.Context, token *fleet.ClusterRegistrationToken, s seen, d decision) (bool, error) {
	account := desiredAccount(token)
	role, binding := desiredAccess(token)
	if s.account != nil {
		account = s.account
	} else if err := kube.Ensure(ctx, c.client, account); err != nil {
		return false, err
	}
	missing, err := kube.Missing(ctx, c.live, kube.MetadataOf(c.client.Scheme()), role, binding)
	if err != nil {
		return false, err
	}
	if err := kube.Ensure(ctx, c.client, missing...); err != nil {
		return false, err
	}
	bearer := s.token
	if d.issue {
		if bearer, err = c.issue(ctx, account, s.expires()); err != nil || bearer == "" {
			return err == nil, err
		}
	}
	text, err := renderValues(token, s.settings, c.systemNamespace, bearer)
	if err != nil {
		return false, err
	}
	if s.secret != nil && string(s.secret.Data[valuesKey]) == text {
		return false, nil
	}
	return false, kube.Ensure(ctx, c.client, desiredSecret(token, text))
}

// issue returns a credential of the account that ends at the given time, or, if that is zero, one without an end: "" until
// Kubernetes has filled it in, which wakes this controller.
func (c *Controller) issue(ctx context.Context, account *corev1.ServiceAccount, expires time.Time) (string, error) {
	if !expires.IsZero() {
		return kube.RequestToken(ctx, c.client.SubResource("token"), account, expires.Sub(c.clock.Now()))
	}
	var secret corev1.Secret
	found, err := c.read(ctx, account.Namespace, naming.ServiceAccountToken(account.Name), &secret)
	if err != nil || found {
		return string(secret.Data[corev1.ServiceAccountTokenKey]), err
	}
	return "", kube.Ensure(ctx, c.client, desiredAccountToken(account))
}

// withdraw ends the identity and with it every credential that was handed out.
func (c *Controller) withdraw(ctx context.Context, token *fleet.ClusterRegistrationToken, s seen) error {
	role, binding := desiredAccess(token)
	objects := []client.Object{}
	if s.account != nil {
		objects = append(objects, s.account, role, binding)
	}
	if s.secret != nil && !s.foreignSecret {
		objects = append(objects, s.secret)
	}
	return kube.Delete(ctx, c.client, objects...)
}

func (c *Controller) report(ctx context.Context, token *fleet.ClusterRegistrationToken, d decision, now time.Time) error {
	var registrations fleet.ClusterRegistrationList
	if err := c.client.List(ctx, &registrations, client.InNamespace(token.Namespace), client.MatchingFields{indexToken: token.Name}); err != nil {
		return err
	}
	ready := d.reason == "Ready"
	after := token.DeepCopy()
	after.Status.Registrations = int32(countClusters(registrations.Items))
	switch {
	case ready:
		after.Status.SecretName = token.Name
	case d.state != held:
		after.Status.SecretName = ""
	}
	after.Status.Expires = nil
	if token.Spec.TTL != nil && token.Spec.TTL.Duration > 0 {
		after.Status.Expires = expiryOf(token.CreationTimestamp.Add(token.Spec.TTL.Duration))
	}
	after.Status.Conditions = kube.SetCondition(after.Status.Conditions, now, kube.Condition(fleet.ConditionReady, ready, d.reason, d.message))
	if err := kube.PatchStatus(ctx, c.client, token, after); err != nil {
		return err
	}
	c.written.Store(after)
	return nil
}

// countClusters counts clusters, not requests: one that registered again counts once.
func countClusters(registrations []fleet.ClusterRegistration) int {
	clusters := map[string]bool{}
	for _, r := range registrations {
		clusters[r.Status.ClusterName] = true
	}
	return len(clusters)
}
