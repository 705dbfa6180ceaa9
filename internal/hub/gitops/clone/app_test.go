package clone

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/testgit"
)

// appSecret is a Secret with an App, and the App's public key.
func appSecret(t *testing.T, host string) (*corev1.Secret, *rsa.PublicKey) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "git"}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{
		keyApp: []byte("7"), keyInstallation: []byte("42\n"), keyPrivateKey: text, keyHost: []byte(host),
	}}, &key.PublicKey
}

// TestARepositoryIsReadWithAGitHubApp has a server of tokens that checks the proof of the App.
func TestARepositoryIsReadWithAGitHubApp(t *testing.T) {
	source := testgit.New(t, "web.git")
	source.Write(map[string]string{"a.yaml": "1"})
	want := source.Push("main")
	_, address, ca := source.Web("x-access-token", "t0ken")
	secret, public := appSecret(t, "127.0.0.1")
	issued, life := 0, time.Hour
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claims := &jwt.RegisteredClaims{}
		_, err := jwt.ParseWithClaims(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), claims,
			func(*jwt.Token) (any, error) { return public, nil }, jwt.WithValidMethods([]string{"RS256"}))
		if err != nil || claims.Issuer != "7" || r.URL.Path != "/app/installations/42/access_tokens" || r.Method != http.MethodPost {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		issued++
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"token": "t0ken", "expires_at": %q}`, time.Now().Add(life).Format(time.RFC3339)) // the client sees it
	}))
	t.Cleanup(server.Close)
	apps := NewApps(server.Client().Transport, clock.RealClock{})
	apps.api = func(string) string { return server.URL }
	r := open(t, address, "main")
	r.CABundle = ca
	app, err := ParseCredentials(secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r.Credentials, err = apps.Login(t.Context(), app, r.URL); err != nil {
			t.Fatal(err)
		}
		if commit, _, err := contents(t, r); err != nil || commit != want {
			t.Errorf("%s, %v", commit, err)
		}
	}
	if issued != 1 {
		t.Errorf("%d tokens were issued", issued)
	}

	// Another key gets no token of the first one, and no server but the App's gets a proof.
	other, _ := appSecret(t, "127.0.0.1")
	stranger, err := ParseCredentials(other, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = apps.Login(t.Context(), stranger, r.URL)
	if err == nil || !strings.Contains(err.Error(), "issues no token for the App: it answers 401") {
		t.Errorf("with another key: %v", err)
	}
	for _, elsewhere := range []string{"https://forge.example.com/shop", "http://127.0.0.1/shop", "ssh://127.0.0.1/shop"} {
		parsed, err := ParseURL(elsewhere)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := apps.Login(t.Context(), app, parsed); err == nil || !strings.Contains(err.Error(), "is no https address there") {
			t.Errorf("%s: %v", elsewhere, err)
		}
	}
	if life = time.Minute; issued != 1 {
		t.Errorf("%d tokens were issued", issued)
	}
	short := NewApps(server.Client().Transport, clock.RealClock{})
	short.api = apps.api
	for range 2 {
		if _, err := short.Login(t.Context(), app, r.URL); err != nil {
			t.Fatal(err)
		}
	}
	if issued != 3 {
		t.Errorf("a token was used shortly before its end: %d were issued", issued)
	}
}

func TestWhatIsNoGitHubApp(t *testing.T) {
	for want, edit := range map[string]func(map[string][]byte){
		"github_app_id is no ID":              func(data map[string][]byte) { data[keyApp] = []byte("7/../8") },
		"github_app_installation_id is no ID": func(data map[string][]byte) { delete(data, keyInstallation) },
		"github_app_private_key is no PEM":    func(data map[string][]byte) { data[keyPrivateKey] = []byte("x") },
		"secret git is of type Opaque":        func(data map[string][]byte) { delete(data, keyApp) },
	} {
		secret, _ := appSecret(t, "")
		edit(secret.Data)
		if _, err := ParseCredentials(secret, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for host, want := range map[string]string{"github.com": "https://api.github.com", "shop.ghe.com": "https://api.shop.ghe.com",
		"git.example.com": "https://git.example.com/api/v3"} {
		if got := api(host); got != want {
			t.Errorf("%s: %s", host, got)
		}
	}
}
