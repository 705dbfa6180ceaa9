package kube

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RequestToken requests a token of an account with about the given life, at least ten minutes. The
// TokenRequest API grants no shorter one. The server may grant less; the token has its time of
// expiry.
func RequestToken(ctx context.Context, c client.SubResourceClient, account *corev1.ServiceAccount, life time.Duration) (string, error) {
	return requestToken(ctx, c, account, life, nil)
}

// RequestBoundToken requests a token bound to the Secret: the token also ends with its deletion.
func RequestBoundToken(ctx context.Context, c client.SubResourceClient, account *corev1.ServiceAccount, secret *corev1.Secret,
	life time.Duration) (string, error) {
	return requestToken(ctx, c, account, life, &authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID,
	})
}

func requestToken(ctx context.Context, c client.SubResourceClient, account *corev1.ServiceAccount, life time.Duration,
	bound *authenticationv1.BoundObjectReference) (string, error) {
	seconds := int64(max(life, 10*time.Minute).Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds, BoundObjectRef: bound}}
	if err := c.Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("requesting a token for ServiceAccount %s/%s: %w", account.Namespace, account.Name, err)
	}
	return request.Status.Token, nil
}
