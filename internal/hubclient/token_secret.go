package hubclient

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

// TokenFromSecret reads a user's Secret with a token of the hub and an optional CA. It returns the
// CA as PEM. Its errors name the remedy and never quote the content.
func TokenFromSecret(secret *corev1.Secret) (token string, ca []byte, err error) {
	token = strings.TrimSpace(string(secret.Data[corev1.ServiceAccountTokenKey]))
	if token == "" {
		return "", nil, errors.New("its key token is missing or empty: put the token of the service account there that the MemberCluster " +
			"names; on the hub, wait until the account's own Secret has one")
	}
	if strings.ContainsAny(token, " \t\r\n") {
		return "", nil, errors.New("its key token holds white space, so it was cut or pasted together: copy the token again")
	}
	if decoded, err := base64.StdEncoding.DecodeString(token); err == nil && strings.HasPrefix(string(decoded), "eyJ") {
		return "", nil, errors.New("its key token holds base64 of a token: decode what kubectl shows under .data.token (base64 -d)")
	}
	ca, err = credential.ParseCA(string(secret.Data[corev1.ServiceAccountRootCAKey]))
	if err != nil {
		return "", nil, fmt.Errorf("its key ca.crt is unusable: %w", err)
	}
	return token, ca, nil
}

// DigestOfTokenSecret changes if and only if the content read by TokenFromSecret changes.
func DigestOfTokenSecret(secret *corev1.Secret) string {
	return naming.DigestOfParts(secret.Data[corev1.ServiceAccountTokenKey], secret.Data[corev1.ServiceAccountRootCAKey])[:16]
}
