package importer

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-fleet/muster/internal/kube"
)

// The reasons of the condition Imported.
const (
	reasonImported            = "Imported"
	reasonWaitingForToken     = "WaitingForToken"
	reasonTokenRefused        = "TokenRefused"
	reasonNamespaceNotAllowed = "SecretNamespaceNotAllowed"
	reasonSecretMissing       = "SecretMissing"
	reasonValueMissing        = "KubeconfigMissing"
	reasonInvalidKubeconfig   = "InvalidKubeconfig"
	reasonContextMissing      = "ContextMissing"
	reasonInsecureEndpoint    = "InsecureEndpoint"
	reasonRunsCode            = "KubeconfigRunsCode"
	reasonReadsFiles          = "KubeconfigReadsFiles"
	reasonCredentialMissing   = "CredentialMissing"
	reasonCredentialExpired   = "CredentialExpired"
	reasonUnauthorized        = "Unauthorized"
	reasonUnknownAuthority    = "UnknownAuthority"
	reasonInvalidCertificate  = "InvalidCertificate"
	reasonUnreachable         = "Unreachable"
	reasonRightsMissing       = "RightsMissing"
	reasonIsHub               = "IsHub"
	reasonAlreadyRegistered   = "AlreadyRegistered"
	reasonURLMissing          = "APIServerURLMissing"
	reasonInvalidSettings     = "InvalidSettings"
	reasonPullSecretMissing   = "PullSecretMissing"
	reasonAgentEnding         = "AgentEnding"
	reasonRefused             = "Refused"
)

const (
	// maxMessage bounds what is quoted of what another API server says.
	maxMessage = 400
	// maxNote is a little less than an Event can hold.
	maxNote = 1000
)

// problem is why an import cannot be done. It never quotes the kubeconfig: a condition is no place for a credential.
type problem struct {
	reason, message string
	// input says that only a change of the Cluster, the Secret or the settings can mend it, so that no time is set to try again.
	input bool
}

func (p *problem) Error() string { return p.reason + ": " + p.message }

// badInput is a problem that waits for somebody to change something.
func badInput(reason, format string, args ...any) *problem {
	return &problem{reason: reason, message: fmt.Sprintf(format, args...), input: true}
}

// setback is a problem that may pass by itself.
func setback(reason, format string, args ...any) *problem {
	return &problem{reason: reason, message: fmt.Sprintf(format, args...)}
}

// explain says in a sentence why a call of the downstream API server failed.
func explain(server, doing string, err error) *problem {
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var timeout net.Error
	switch {
	case errors.As(err, &authority):
		return setback(reasonUnknownAuthority, "the certificate of %s is signed by an authority that the kubeconfig does not know: correct certificate-authority-data", server)
	case errors.As(err, &hostname), errors.As(err, &invalid):
		return setback(reasonInvalidCertificate, "the certificate of %s is not valid: %s", server, kube.Clip(plain(err), maxMessage))
	case refusesCertificate(err), apierrors.IsUnauthorized(err):
		return setback(reasonUnauthorized, "%s does not accept the credential of the kubeconfig: give the Secret a new one", server)
	case apierrors.IsForbidden(err):
		return setback(reasonRightsMissing, "%s: %s", doing, kube.Clip(plain(err), maxMessage))
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return setback(reasonUnreachable, "%s does not answer (%s)", server, doing)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return setback(reasonRefused, "%s: %s", doing, kube.Clip(plain(err), maxMessage))
	}
	return setback(reasonUnreachable, "%s cannot be reached: %s", server, kube.Clip(plain(err), maxMessage))
}

// refusesCertificate says whether the server ended the TLS handshake over the client's certificate.
func refusesCertificate(err error) bool {
	return strings.Contains(err.Error(), "remote error: tls:") && strings.Contains(err.Error(), "certificate")
}

// plain drops the request that Go puts in front of what went wrong.
func plain(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	return err.Error()
}
