package kube

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RequestToken asks the API server for a token of an account that lives about as long as given (at least ten minutes, the shortest that
// the TokenRequest API grants). The server may grant less; the claims of the result say when it expires.
func RequestToken(ctx context.Context, c client.SubResourceClient, account *corev1.ServiceAccount, life time.Duration) (string, error) {
	return requestToken(ctx, c, account, life, nil)
}

// RequestBoundToken is RequestToken of one that also ends when the Secret is deleted.
func RequestBoundToken(ctx context.Context, c client.SubResourceClient, account *corev1.ServiceAccount, secret *corev1.Secret, life time.Duration) (string, error) {
	return requestToken(ctx, c, account, life, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID})
}

func requestToken(ctx context.Context, c client.SubResourceClient, account *corev1.ServiceAccount, life time.Duration, bound *authenticationv1.BoundObjectReference) (string, error) {
	seconds := int64(max(life, 10*time.Minute).Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds, BoundObjectRef: bound}}
	if err := c.Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("requesting a token for ServiceAccount %s/%s: %w", account.Namespace, account.Name, err)
	}
	return request.Status.Token, nil
}
