package importer

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

func addr(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 443} }

// TestErrorsOfAnImportTellNothingOfTheHubsNetwork compares what a tenant learns of names, ports and
// certificates that only the hub reaches.
func TestErrorsOfAnImportTellNothingOfTheHubsNetwork(t *testing.T) {
	dial := func(ip string, err error) error {
		return &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: addr(ip), Err: err}}
	}
	messages := map[string]bool{}
	for _, err := range []error{
		dial("10.0.0.17", syscall.ECONNREFUSED), dial("10.0.0.17", syscall.EHOSTUNREACH), dial("192.168.1.1", syscall.ECONNREFUSED),
		dial("100.64.1.1", syscall.ECONNREFUSED),
		dial("fd00::1", syscall.ECONNREFUSED), dial("127.0.0.1", syscall.ECONNREFUSED), context.DeadlineExceeded,
		&url.Error{
			Op: "Get", Err: &net.OpError{
				Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "vault.vault.svc", Server: "10.43.0.10:53"},
			},
		},
		&url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ETIMEDOUT}},
		&url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}},
	} {
		messages[(&downstream{server: "https://vault.vault.svc"}).explain("asking", err).message] = true
	}
	if len(messages) != 1 {
		t.Errorf("a tenant tells these apart: %v", slices.Collect(maps.Keys(messages)))
	}
	names := &x509.Certificate{DNSNames: []string{"payroll.corp.example"}, NotAfter: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, err := range []error{
		x509.HostnameError{Certificate: names, Host: "10.0.0.17"}, x509.HostnameError{Certificate: names, Host: "vault.vault.svc"},
		x509.CertificateInvalidError{Cert: names, Reason: x509.Expired, Detail: "current time is after 2020-01-01"},
	} {
		said := (&downstream{server: "https://10.0.0.17"}).explain("asking", &url.Error{Op: "Get", Err: err}).message
		if strings.Contains(said, "payroll") || strings.Contains(said, "2020") {
			t.Errorf("it quotes a certificate that is not verified: %q", said)
		}
	}
}

func TestExplain(t *testing.T) {
	call := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://example.com/version?token=s3cret", Err: err}
	}
	for _, c := range []struct {
		name         string
		err          error
		reason, says string
	}{
		{
			"an authority that the kubeconfig does not have", call(x509.UnknownAuthorityError{}), reasons.UnknownAuthority,
			"certificate-authority-data",
		},
		{"a certificate that has ended", call(x509.CertificateInvalidError{Reason: x509.Expired}), reasons.InvalidCertificate, "expired"},
		{"silence", call(context.DeadlineExceeded), reasons.Unreachable, "does not answer, or cannot be reached (asking)"},
		{
			"a client certificate that is refused", call(errors.New("remote error: tls: expired certificate")), reasons.Unauthorized,
			"put a new one into the Secret",
		},
		{
			"a handshake that fails for another reason", call(&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}),
			reasons.Unreachable, "handshake failure",
		},
		{"a token that is refused", apierrors.NewUnauthorized("no"), reasons.Unauthorized, "put a new one into the Secret"},
		{
			"a right that is missing", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errors.New("no")),
			reasons.RightsMissing, "asking: secrets",
		},
		{"an admission that refuses", apierrors.NewBadRequest("not here"), reasons.Refused, "asking: not here"},
		{
			"nobody there", call(&net.OpError{Op: "dial", Net: "tcp", Addr: addr("8.8.8.8"), Err: syscall.ECONNREFUSED}), reasons.Unreachable,
			"cannot be reached: dial tcp 8.8.8.8:443: connection refused",
		},
		{"a namespace that is none", fmt.Errorf("reading: %w", errNoNamespace), reasons.InvalidSettings, "asking: spec.agentNamespace"},
		{
			"a mistake of the hub's own client", errors.New(`invalid namespace "a/b": [may not contain '/']`), reasons.Refused,
			"which says nothing about https://example.com",
		},
		{"one that hangs up", call(io.ErrUnexpectedEOF), reasons.Unreachable, "https://example.com ends the connection (asking)"},
		{
			"an address of the hub's machine", call(&net.OpError{Op: "dial", Err: kubeconfig.ErrLoopback}), reasons.AddressRefused,
			"importLoopback of the chart fleet",
		},
		{"a long story", apierrors.NewBadRequest(strings.Repeat("x", 5000)), reasons.Refused, "xxx..."},
		{
			"another kind of server", call(errors.New("malformed HTTP response \"220 s3cret\"")), reasons.NotAnAPIServer,
			"the server is not a Kubernetes API server at https://example.com",
		},
		{
			"a trouble that is no Status of an API server", genericError(500), reasons.Refused,
			"asking: https://example.com answers with status 500: it has trouble, or the server is not a Kubernetes API server",
		},
		{
			"a refusal that is no Status of an API server", genericError(403), reasons.RightsMissing,
			"answers with status 403: the user of the kubeconfig may not, or the server is not a Kubernetes API server",
		},
	} {
		p := (&downstream{server: "https://example.com", known: true}).explain("asking", c.err)
		if p.reason != c.reason || !strings.Contains(p.message, c.says) || p.input {
			t.Errorf("%s: got %+v, want %s with %q", c.name, p, c.reason, c.says)
		}
		if strings.Contains(p.message, "s3cret") || len(p.message) > 2*maxMessage {
			t.Errorf("%s: the message is %q", c.name, p.message)
		}
	}
}

// genericError is what client-go makes of an answer that is no Status.
func genericError(code int) error {
	return apierrors.NewGenericServerResponse(code, "post", schema.GroupResource{}, "", "s3cret", 0, true)
}

func TestAServerThatHasNotShownThatItIsAnAPIServerIsNotQuoted(t *testing.T) {
	for _, err := range []error{
		apierrors.NewBadRequest("s3cret"), apierrors.NewInternalError(errors.New("s3cret")),
		apierrors.NewServiceUnavailable("s3cret"), genericError(400),
		apierrors.NewForbidden(schema.GroupResource{Resource: "s3cret"}, "s3cret", errors.New("s3cret")), errors.New("s3cret"),
	} {
		if p := (&downstream{server: "https://example.com"}).explain("asking", err); strings.Contains(p.message, "s3cret") ||
			!strings.Contains(p.message, errNotAPIServer.Error()) {
			t.Errorf("%T: %s", err, p.message)
		}
	}
}

func TestPullSecretsOfTheHubAreCopiedUnlessTheClusterHasItsOwn(t *testing.T) {
	ctx := context.Background()
	hub := fake.NewFakeClient(
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: naming.HubConfigMap}, Data: map[string]string{
				"config": `{"imagePullSecrets":[{"name":"pull"}]}`,
			},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "pull", Labels: map[string]string{"a": "b"}},
			Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{".dockerconfigjson": []byte("{}")}},
	)
	settings := settings.New(hub, nil, "system")
	if err := settings.Load(ctx, hub); err != nil {
		t.Fatal(err)
	}
	c := New(Deps{Deps: controller.Deps{Live: hub, Config: settings, SystemNamespace: "system"}})
	cluster := &fleet.Cluster{Spec: fleet.ClusterSpec{AgentNamespace: "agents"}}
	copies, err := c.pullSecrets(ctx, cluster, c.values(cluster))
	if err != nil || len(copies) != 1 {
		t.Fatalf("got %v and %v", copies, err)
	}
	if got := copies[0]; got.GetNamespace() != "agents" || got.GetName() != "pull" || got.GetResourceVersion() != "" ||
		got.Object["type"] != "kubernetes.io/dockerconfigjson" {
		t.Errorf("the copy is %+v", got)
	}
	cluster.Spec.AgentPullSecrets = &[]corev1.LocalObjectReference{}
	if copies, err := c.pullSecrets(ctx, cluster, c.values(cluster)); err != nil || len(copies) != 0 {
		t.Errorf("a Cluster with a list of its own gets %v and %v", copies, err)
	}
	cluster.Spec.AgentPullSecrets = nil
	if err := hub.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "pull"}}); err != nil {
		t.Fatal(err)
	}
	var p *problem
	if _, err := c.pullSecrets(ctx, cluster, c.values(cluster)); !errors.As(err, &p) || p.reason != reasons.PullSecretMissing {
		t.Errorf("a pull secret that is missing: %v", err)
	}
}
