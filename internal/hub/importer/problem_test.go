package importer

import (
	"context"
	"crypto/x509"
	"errors"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestExplain(t *testing.T) {
	call := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://example.com/version?token=s3cret", Err: err}
	}
	for _, c := range []struct {
		name         string
		err          error
		reason, says string
	}{
		{"an authority that the kubeconfig does not have", call(x509.UnknownAuthorityError{}), reasonUnknownAuthority, "certificate-authority-data"},
		{"a certificate that has ended", call(x509.CertificateInvalidError{Reason: x509.Expired}), reasonInvalidCertificate, "expired"},
		{"silence", call(context.DeadlineExceeded), reasonUnreachable, "does not answer (asking)"},
		{"a client certificate that is refused", call(errors.New("remote error: tls: expired certificate")), reasonUnauthorized, "give the Secret a new one"},
		{"a handshake that fails for another reason", call(errors.New("remote error: tls: handshake failure")), reasonUnreachable, "handshake failure"},
		{"a token that is refused", apierrors.NewUnauthorized("no"), reasonUnauthorized, "give the Secret a new one"},
		{"a right that is missing", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errors.New("no")), reasonRightsMissing, "asking: secrets"},
		{"an admission that refuses", apierrors.NewBadRequest("not here"), reasonRefused, "asking: not here"},
		{"nobody there", call(errors.New("connection refused")), reasonUnreachable, "cannot be reached: connection refused"},
		{"a long story", call(errors.New(strings.Repeat("x", 5000))), reasonUnreachable, "xxx..."},
	} {
		p := explain("https://example.com", "asking", c.err)
		if p.reason != c.reason || !strings.Contains(p.message, c.says) || p.input {
			t.Errorf("%s: got %+v, want %s with %q", c.name, p, c.reason, c.says)
		}
		if strings.Contains(p.message, "s3cret") || len(p.message) > 2*maxMessage {
			t.Errorf("%s: the message is %q", c.name, p.message)
		}
	}
}

func TestPullSecretsOfTheHubAreCopiedUnlessTheClusterHasItsOwn(t *testing.T) {
	ctx := context.Background()
	hub := fake.NewFakeClient(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: naming.HubConfigMap}, Data: map[string]string{"config": `{"imagePullSecrets":[{"name":"pull"}]}`}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "pull", Labels: map[string]string{"a": "b"}},
			Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{".dockerconfigjson": []byte("{}")}},
	)
	settings := config.New(hub, nil, "system")
	if err := settings.Load(ctx, hub); err != nil {
		t.Fatal(err)
	}
	c := New(Deps{Live: hub, Config: settings, SystemNamespace: "system"})
	cluster := &fleet.Cluster{Spec: fleet.ClusterSpec{AgentNamespace: "agents"}}
	copies, err := c.pullSecrets(ctx, cluster, c.values(cluster))
	if err != nil || len(copies) != 1 {
		t.Fatalf("got %v and %v", copies, err)
	}
	if got := copies[0]; got.GetNamespace() != "agents" || got.GetName() != "pull" || got.GetResourceVersion() != "" || got.Object["type"] != "kubernetes.io/dockerconfigjson" {
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
	if _, err := c.pullSecrets(ctx, cluster, c.values(cluster)); !errors.As(err, &p) || p.reason != reasonPullSecretMissing {
		t.Errorf("a pull secret that is missing: %v", err)
	}
}
