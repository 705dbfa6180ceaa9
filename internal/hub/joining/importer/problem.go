package importer

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxMessage bounds the quote of another API server.
	maxMessage = 400
	// maxNote is a little less than the capacity of an Event.
	maxNote = 1000
)

// problem is the cause of a failed import. A problem never quotes the kubeconfig, because more
// people may read a condition than a credential.
type problem struct {
	reason, message string
	// input: only a change of the Cluster, the Secret or the settings helps, so the hub schedules no
	// retry.
	input bool
}

func (p *problem) Error() string { return p.reason + ": " + p.message }

// badInput returns a problem that a user must correct.
func badInput(reason, format string, args ...any) *problem {
	return &problem{reason: reason, message: fmt.Sprintf(format, args...), input: true}
}

// refused returns the problem of a kubeconfig or its Secret.
func refused(p *kubeconfig.Problem) *problem { return badInput(p.Reason, "%s", p.Message) }

// setback returns a problem that the hub retries.
func setback(reason, format string, args ...any) *problem {
	return &problem{reason: reason, message: fmt.Sprintf(format, args...)}
}

// errNotAPIServer stands for an answer unlike an API server's. The message does not quote the
// answer: readers of the message may have no access to the server.
var errNotAPIServer = errors.New("the server is not a Kubernetes API server")

// errNoNamespace stands for an invalid name of a namespace.
var errNoNamespace = errors.New("spec.agentNamespace, or the namespace that an agent has reported, is not the name of a namespace")

// isNamespace reports whether text is a valid name of a namespace, and so safe in a path.
func isNamespace(text string) bool { return len(validation.IsDNS1123Label(text)) == 0 }

// explain returns the cause of a failed call to the downstream API server as a sentence.
func (d *downstream) explain(doing string, err error) *problem {
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var timeout net.Error
	switch {
	case errors.As(err, &authority):
		return setback(reasons.UnknownAuthority,
			"the certificate of %s is signed by an authority that the kubeconfig does not know: correct certificate-authority-data", d.server)
	case errors.Is(err, errNoNamespace):
		return setback(reasons.InvalidSettings, "%s: %s", doing, errNoNamespace)
	case errors.As(err, &hostname):
		return setback(reasons.InvalidCertificate,
			"the certificate of %s is not valid for that name: correct the server, or set tls-server-name, in the kubeconfig", d.server)
	case errors.As(err, &invalid):
		return setback(reasons.InvalidCertificate, "the certificate of %s is not valid: it may have expired", d.server)
	case errors.Is(err, kubeconfig.ErrLocal), errors.Is(err, kubeconfig.ErrLoopback):
		return setback(reasons.AddressRefused, "%s is not called: %s", d.server, kube.Clip(plain(err), maxMessage))
	case refusesCertificate(err), apierrors.IsUnauthorized(err):
		return setback(reasons.Unauthorized, "%s does not accept the credential of the kubeconfig: put a new one into the Secret", d.server)
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return setback(reasons.Unreachable, "%s does not answer, or cannot be reached (%s)", d.server, doing)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return d.explainStatus(doing, int(status.Status().Code), err)
	}
	if connection := (*net.OpError)(nil); errors.As(err, &connection) {
		if !quotable(connection) {
			return setback(reasons.Unreachable, "%s does not answer, or cannot be reached (%s)", d.server, doing)
		}
		return setback(reasons.Unreachable, "%s cannot be reached: %s", d.server, kube.Clip(connection.Error(), maxMessage))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return setback(reasons.Unreachable, "%s ends the connection (%s)", d.server, doing)
	}
	if ours(err) {
		return setback(reasons.Refused, "%s: the hub cannot make this request, which says nothing about %s: see the hub's log", doing, d.server)
	}
	return setback(reasons.NotAnAPIServer, "%s: %s at %s: correct the server in the kubeconfig", doing, errNotAPIServer, d.server)
}

// quotable reports whether a message may quote the failure of a connection: only with a public
// address, or without any. Other failures would show a tenant the names and ports beside the hub.
func quotable(connection *net.OpError) bool {
	if unknown := (*net.DNSError)(nil); errors.As(connection, &unknown) {
		return false
	}
	if connection.Addr == nil {
		return connection.Op != "dial"
	}
	to, err := netip.ParseAddrPort(connection.Addr.String())
	return err == nil && public(to.Addr().Unmap())
}

// shared is the range of addresses between a provider and its customers, RFC 6598.
var shared = netip.MustParsePrefix("100.64.0.0/10")

func public(address netip.Addr) bool {
	return address.IsGlobalUnicast() && !address.IsPrivate() && !shared.Contains(address)
}

// ours reports whether an error comes from the hub's own client, before any request.
func ours(err error) bool {
	return strings.HasPrefix(err.Error(), "invalid namespace ") || strings.HasPrefix(err.Error(), "invalid resource name ")
}

// explainStatus quotes an answer only if the server is a known Kubernetes API server and the answer
// looks like one.
func (d *downstream) explainStatus(doing string, code int, err error) *problem {
	reason, means := reasons.Refused, "it has trouble"
	if code == http.StatusForbidden {
		reason, means = reasons.RightsMissing, "the user of the kubeconfig may not"
	}
	if d.known && !apierrors.IsUnexpectedServerError(err) {
		return setback(reason, "%s: %s", doing, kube.Clip(plain(err), maxMessage))
	}
	return setback(reason, "%s: %s answers with status %d: %s, or %s", doing, d.server, code, means, errNotAPIServer)
}

// refusesCertificate reports whether the server ended the TLS handshake over the client's
// certificate.
func refusesCertificate(err error) bool {
	return strings.Contains(err.Error(), "remote error: tls:") && strings.Contains(err.Error(), "certificate")
}

// plain drops the request from an error of Go's HTTP client, because it may contain a credential.
func plain(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	return err.Error()
}
