package dashboard

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testkube"
)

// issuer signs users in, as a company's does (OpenID Connect Core 1.0).
type issuer struct {
	url, ca string
	key     *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	point, err := key.PublicKey.Bytes() // 4, X, Y
	if err != nil {
		t.Fatal(err)
	}
	server := testkube.ServeTLS(t, func(w http.ResponseWriter, r *http.Request) {
		said := map[string]any{"issuer": i.url, "jwks_uri": i.url + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}}
		if r.URL.Path == "/keys" {
			said = map[string]any{
				"keys": []any{map[string]string{
					"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "1", "x": encoded(point[1:33]), "y": encoded(point[33:]),
				}},
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(said) // the API server says what went wrong
	})
	i.url = server.URL
	i.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return i
}

func encoded(text []byte) string { return base64.RawURLEncoding.EncodeToString(text) }

// token returns a token that names a user, for an audience (RFC 7519, signed as of RFC 7518, 3.4).
func (i *issuer) token(t *testing.T, user, group, audience string, life time.Duration) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{
		"iss": i.url, "sub": user, "groups": []string{group}, "aud": audience, "iat": time.Now().Unix(), "exp": time.Now().Add(life).Unix(),
	})
	if err != nil {
		t.Fatal(err)
	}
	text := encoded([]byte(`{"alg":"ES256","kid":"1"}`)) + "." + encoded(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + encoded(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// configured is the flag by which a control plane takes the issuer's tokens.
func (i *issuer) configured(t *testing.T) string {
	t.Helper()
	config, err := json.Marshal(map[string]any{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
		"jwt": []any{map[string]any{
			"issuer": map[string]any{"url": i.url, "audiences": []string{"muster"}, "certificateAuthority": i.ca},
			"claimMappings": map[string]any{
				"username": map[string]string{"claim": "sub", "prefix": "oidc:"}, "groups": map[string]string{"claim": "groups", "prefix": "oidc:"},
			},
		}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "authentication.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return "--authentication-config=" + file
}

// TestWhoIsSignedInElsewhereSeesWhatHisGroupMay sends the headers that a proxy sends
// which signs users in.
func TestWhoIsSignedInElsewhereSeesWhatHisGroupMay(t *testing.T) {
	i := newIssuer(t)
	r := rigOn(t, testkube.Start(t, "oidc", i.configured(t)))
	billing := r.workspace("billing")
	web := r.cluster(billing, "web", "", "", nil)
	r.cluster(r.workspace("shop"), "cart", "", "", nil)
	team := metav1.ObjectMeta{Namespace: billing, Name: "team"}
	r.check(r.Create(t.Context(), &rbacv1.Role{ObjectMeta: team, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{clusters}, Verbs: []string{"get", "list", "patch"}},
	}}))
	r.check(r.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: team, RoleRef: rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: "Role", Name: team.Name,
	},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "oidc:billing"}}}))
	address := r.shared()
	member, stranger := i.token(t, "alice", "billing", "muster", time.Hour), i.token(t, "mallory", "sales", "muster", time.Hour)
	testkube.Eventually(t, "the API server knows the issuer", func() error {
		if got := r.ask(http.MethodGet, address+"/", member, ""); got.status != http.StatusOK {
			return fmt.Errorf("the page: %d", got.status)
		}
		return nil
	})
	if got := r.ask(http.MethodGet, address+"/", member, "").text; !strings.Contains(got, "oidc:alice") ||
		!strings.Contains(got, "billing/web") || strings.Contains(got, "shop/cart") {
		t.Errorf("alice of billing sees\n%s", got)
	}
	if got := r.ask(http.MethodGet, address+"/", stranger, ""); got.status != http.StatusOK || strings.Contains(got.text, "billing/web") {
		t.Errorf("mallory of sales: %d\n%s", got.status, got.text)
	}
	path, form := address+"/members/billing/web",
		url.Values{"decision": {"revoke"}, "uid": {string(web.UID)}, "reason": {decidable(web)}}.Encode()
	forger := *i
	var err error
	forger.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	r.check(err)
	for who, token := range map[string]string{
		"somebody who signs his tokens himself": forger.token(t, "alice", "billing", "muster", time.Hour),
		"a token for another program":           i.token(t, "alice", "billing", "wiki", time.Hour),
		"a token of yesterday":                  i.token(t, "alice", "billing", "muster", -24*time.Hour),
	} {
		if got := r.ask(http.MethodGet, address+"/", token, ""); got.status != http.StatusSeeOther {
			t.Errorf("%s: %d %s", who, got.status, got.text)
		}
		if got := r.ask(http.MethodPost, path, token, form); got.status != http.StatusUnauthorized {
			t.Errorf("%s revokes a member: %d %s", who, got.status, got.text)
		}
	}
	if got := r.ask(http.MethodPost, path, stranger, form); got.status != http.StatusForbidden {
		t.Errorf("mallory revokes a member of billing: %d %s", got.status, got.text)
	}
	if got := r.ask(http.MethodPost, path, member, form); got.status != http.StatusSeeOther {
		t.Errorf("alice revokes a member of billing: %d %s", got.status, got.text)
	}
	r.check(r.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	if web.Annotations[clusterv1beta1.AnnotationRevoked] != "true" {
		t.Errorf("it is not revoked: %v", web.Annotations)
	}
}
