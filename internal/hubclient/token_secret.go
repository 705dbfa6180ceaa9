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

// TokenFromSecret reads a Secret in which a user keeps a token of the hub and, maybe, its CA, which
// it returns as PEM. Its errors say what to put there and never quote it.
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

// DigestOfTokenSecret changes when, and only when, what TokenFromSecret reads does.
func DigestOfTokenSecret(secret *corev1.Secret) string {
	return naming.DigestOfParts(secret.Data[corev1.ServiceAccountTokenKey], secret.Data[corev1.ServiceAccountRootCAKey])[:16]
}
