package kubeconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const good = `apiVersion: v1
kind: Config
current-context: default
contexts:
- {name: default, context: {cluster: cluster, user: user}}
clusters:
- {name: cluster, cluster: {server: "https://example.com:6443"}}
users:
- {name: user, user: {token: something}}
`

// clientCertificate returns one in base64 of PEM that ends at a time.
func clientCertificate(t *testing.T, end time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestParse(t *testing.T) {
	jwt := func(claims string) string {
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(`{}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("s3cret"))
	}
	ca := clientCertificate(t, now.Add(time.Hour))
	second := "contexts:\n- {name: other, context: {cluster: cluster, user: user}}"
	for _, c := range []struct {
		name, from, to string
		reason, says   string
	}{
		{name: "the seed's kubeconfig"},
		{name: "its only context need not be the current one", from: "current-context: default\n", to: ""},
		{name: "of several the current one counts", from: "contexts:", to: second},
		{
			name: "several and none current", from: "current-context: default\ncontexts:", to: second, reason: reasons.ContextMissing,
			says: `"default", "other"`,
		},
		{
			name: "a current context that is missing", from: "current-context: default", to: "current-context: gone", reason: reasons.ContextMissing,
			says: `"gone"`,
		},
		{
			name: "no context", from: "- {name: default, context: {cluster: cluster, user: user}}\n", to: "", reason: reasons.ContextMissing,
			says: "no context",
		},
		{
			name: "a context without its cluster", from: "{cluster: cluster,", to: "{cluster: gone,", reason: reasons.InvalidKubeconfig,
			says: `cluster "gone"`,
		},
		{name: "a context without its user", from: "user: user}}", to: "user: gone}}", reason: reasons.InvalidKubeconfig, says: `user "gone"`},
		{name: "no YAML", from: good, to: "s3cret: [", reason: reasons.InvalidKubeconfig, says: "not a kubeconfig"},
		{name: "nothing", from: good, to: "", reason: reasons.KubeconfigMissing, says: "key value"},
		{
			name: "a program", from: "token: something", to: "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: " +
				"Never}", reason: reasons.KubeconfigRunsCode, says: "entry exec",
		},
		{
			name: "a plugin", from: "token: something", to: "auth-provider: {name: gcp}", reason: reasons.KubeconfigRunsCode,
			says: "entry auth-provider",
		},
		{
			name: "a token beside a program is no excuse", from: "token: something",
			to: "token: s3cret, exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}", reason: reasons.KubeconfigRunsCode,
			says: "entry exec",
		},
		{
			name: "a file with the CA", from: "server:", to: "certificate-authority: /etc/passwd, server:", reason: reasons.KubeconfigReadsFiles,
			says: "certificate-authority-data",
		},
		{
			name: "a file with the token", from: "token: something", to: "tokenFile: /var/run/secrets/token", reason: reasons.KubeconfigReadsFiles,
			says: "tokenFile",
		},
		{
			name: "a file with the key", from: "token: something", to: "client-key: /key", reason: reasons.KubeconfigReadsFiles,
			says: "client-key-data",
		},
		{
			name: "a file with the certificate", from: "token: something", to: "client-certificate: /crt", reason: reasons.KubeconfigReadsFiles,
			says: "client-certificate-data",
		},
		{name: "HTTP", from: "https://", to: "http://", reason: reasons.InsecureEndpoint, says: "http://example.com:6443"},
		{name: "no server", from: "https://example.com:6443", to: "", reason: reasons.InvalidKubeconfig, says: "want https://"},
		{name: "a password in the address", from: "https://", to: "https://me:s3cret@", reason: reasons.InvalidKubeconfig, says: "want https://"},
		{name: "a query", from: "example.com:6443", to: "example.com:6443/?a=s3cret", reason: reasons.InvalidKubeconfig, says: "want https://"},
		{name: "an empty query", from: "example.com:6443", to: "example.com:6443/?", reason: reasons.InvalidKubeconfig, says: "want https://"},
		{name: "a fragment", from: "example.com:6443", to: "example.com:6443/#s3cret", reason: reasons.InvalidKubeconfig, says: "want https://"},
		{
			name: "a proxy", from: "server:", to: `proxy-url: "http://169.254.169.254:80", server:`, reason: reasons.InvalidKubeconfig,
			says: "entry proxy-url",
		},
		{name: "no credential", from: "token: something", to: "", reason: reasons.CredentialMissing, says: `user "user"`},
		{name: "a certificate that has ended", from: "token: something",
			to:     "client-certificate-data: " + clientCertificate(t, now.Add(-time.Second)),
			reason: reasons.CredentialExpired, says: "expired at 2026-01-02T03:04:04Z"},
		{
			name: "a certificate that is none", from: "token: something", to: "client-certificate-data: czNjcmV0", reason: reasons.InvalidKubeconfig,
			says: "not PEM",
		},
		{
			name: "a token that has ended", from: "token: something", to: "token: " + jwt(`{"sub":"system:serviceaccount:a:b","exp":1767322000}`),
			reason: reasons.CredentialExpired, says: "token",
		},
		{name: "a token with the line break of its file", from: "token: something", to: `token: "something\n"`},
		{
			name: "a token with a line break within", from: "token: something", to: `token: "s3cret\ns3cret"`, reason: reasons.InvalidKubeconfig,
			says: "line break",
		},
		{
			name: "a password", from: "token: something", to: "username: me, password: s3cret", reason: reasons.CredentialMissing,
			says: "has a password",
		},
		{
			name: "a password beside a token", from: "token: something", to: "token: something, username: me, password: s3cret",
			reason: reasons.InvalidKubeconfig, says: "take the password out",
		},
		{
			name: "a CA that is not looked at", from: "server:", to: "insecure-skip-tls-verify: true, certificate-authority-data: " + ca +
				", server:", reason: reasons.InvalidKubeconfig, says: "take insecure-skip-tls-verify out",
		},
		{
			name: "a CA that is none", from: "server:", to: "certificate-authority-data: czNjcmV0, server:", reason: reasons.InvalidKubeconfig,
			says: "certificate-authority-data of cluster",
		},
		{name: "a CA", from: "server:", to: "certificate-authority-data: " + ca + ", server:"},
		{
			name: "a certificate without its key", from: "token: something", to: "client-certificate-data: " + ca, reason: reasons.InvalidKubeconfig,
			says: "no client-key-data",
		},
		{
			name: "a certificate with another key", from: "token: something", to: "client-certificate-data: " + ca + ", client-key-data: czNjcmV0",
			reason: reasons.InvalidKubeconfig, says: "client-key-data of user",
		},
		{name: "a token that has not", from: "token: something", to: "token: " + jwt(`{"sub":"system:serviceaccount:a:b","exp":1867322000}`)},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		got, p := Parse("clusters/secret", []byte(text), now)
		switch {
		case p == nil && c.reason != "":
			t.Errorf("%s: accepted", c.name)
		case p == nil && got.Config.Host != "https://example.com:6443":
			t.Errorf("%s: leads to %s", c.name, got.Config.Host)
		case p != nil && (p.Reason != c.reason || !strings.Contains(p.Message, c.says) ||
			!strings.Contains(p.Message, "clusters/secret")):
			t.Errorf("%s: got %+v, want %s with %q", c.name, p, c.reason, c.says)
		case p != nil && strings.Contains(p.Message, "s3cret"):
			t.Errorf("%s: the message quotes the kubeconfig: %s", c.name, p.Message)
		}
	}
}

func TestACertificateThatIsNotVerifiedIsReported(t *testing.T) {
	text := strings.Replace(good, "server:", "insecure-skip-tls-verify: true, server:", 1)
	if got, p := Parse("clusters/secret", []byte(text), now); p != nil || !got.Insecure {
		t.Errorf("got %+v and %v", got, p)
	}
}

func TestNamespacesThatMayHoldAKubeconfig(t *testing.T) {
	for namespace, want := range map[string]bool{
		"": true, "clusters": true, "fleet-default": true, "fleet-local": true, "cattle-fleet-clusters-system": true, "cluster-abc": true,
		"kube-system": false, "default": false, "clusters2": false,
	} {
		cluster := &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "clusters"},
			Spec:       fleet.ClusterSpec{KubeConfigSecret: "a", KubeConfigSecretNamespace: namespace},
		}
		if p := CheckSecret(cluster, SecretOf(cluster)); (p == nil) != want {
			t.Errorf("%q: got %v, want %t", namespace, p, want)
		}
	}
}
