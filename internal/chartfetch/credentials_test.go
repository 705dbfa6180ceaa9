package chartfetch

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// secret is the data of a Secret of pairs of keys and values.
func secret(pairs ...string) map[string][]byte {
	data := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = []byte(pairs[i+1])
	}
	return data
}

// dockerConfig is a configuration with a login for a host.
func dockerConfig(host string) string {
	return fmt.Sprintf(`{"auths":{"https://%s/v1/":{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte("user:word")))
}

// guarded lets only requests with an Authorization header through.
func guarded(h http.Handler, want string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != want {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

var basic = "Basic " + base64.StdEncoding.EncodeToString([]byte("user:word"))

// TestCredentialsGoToTheirHostOnly has a repository whose index and redirects lead to another host,
// which notes what it is sent.
func TestCredentialsGoToTheirHostOnly(t *testing.T) {
	archive, sent := packed(t, "1.0.0"), []string{}
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Authorization"))
		_, _ = w.Write(archive) // the client sees it
	}))
	t.Cleanup(other.Close)
	routes := http.NewServeMux()
	routes.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `apiVersion: v1
entries:
  web:
  - {name: web, version: 3.0.0, urls: ["%s/web.tgz"], digest: %s}
  - {name: web, version: 2.0.0, urls: [redirected.tgz]}
  - {name: web, version: 1.0.0, urls: [web.tgz]}
`, other.URL, naming.Digest(archive)) // the client sees it
	})
	routes.Handle("/redirected.tgz", http.RedirectHandler(other.URL+"/web.tgz", http.StatusFound))
	routes.HandleFunc("/web.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }) // the client sees it
	for what, row := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"a password": {secret("username", "user", "password", "word\n"), basic},
		"a token":    {secret("token", "t0ken"), "Bearer t0ken"},
		"a host":     {nil, basic},
	} {
		server := httptest.NewTLSServer(guarded(routes, row.want))
		t.Cleanup(server.Close)
		if row.data == nil {
			row.data = secret(corev1.DockerConfigJsonKey, dockerConfig(strings.TrimPrefix(server.URL, "https://")))
		}
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		trusting, stranger := row.data, NewFetcher(&http.Client{Transport: &http.Transport{}})
		trusting[keyCACerts] = authority
		credentials, err := ParseCredentials(trusting)
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range []string{"1.0.0", "2.0.0", "3.0.0"} {
			fetched, err := stranger.Fetch(t.Context(), fleet.HelmOptions{Repo: server.URL, Chart: "web", Version: version}, credentials)
			if err != nil || string(fetched.Data) != string(archive) {
				t.Errorf("%s, version %s: %v", what, version, err)
			}
		}
		if _, err := stranger.Fetch(t.Context(), fleet.HelmOptions{Repo: server.URL, Chart: "web"}, nil); err == nil {
			t.Errorf("%s: it is fetched without credentials and authorities", what)
		}
		plain := strings.Replace(server.URL, "https://", "http://", 1)
		_, err = stranger.Fetch(t.Context(), fleet.HelmOptions{Repo: plain, Chart: "web"}, credentials)
		if err == nil || !strings.Contains(err.Error(), "credentials go over https only") {
			t.Errorf("%s, over plain http: %v", what, err)
		}
	}
	for _, header := range sent {
		if header != "" {
			t.Errorf("the other host was sent %q", header)
		}
	}
	if len(sent) != 6 {
		t.Errorf("the other host had %d requests", len(sent))
	}
}

func TestARegistryWithALogin(t *testing.T) {
	open := oci(t, packed(t, "1.2.0"))
	server := httptest.NewTLSServer(guarded(open.Config.Handler, basic))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "https://")
	fetcher, options := NewFetcher(server.Client()), fleet.HelmOptions{Chart: "oci://" + host + "/charts/web", Version: "1.2.0"}
	for what, row := range map[string]struct {
		data map[string][]byte
		may  bool
	}{
		"a password":              {secret("username", "user", "password", "word"), true},
		"another password":        {secret("username", "user", "password", "other"), false},
		"a login for the host":    {secret(corev1.DockerConfigJsonKey, dockerConfig(host)), true},
		"a login for another one": {secret(corev1.DockerConfigJsonKey, dockerConfig("registry.example.com")), false},
	} {
		credentials, err := ParseCredentials(row.data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fetcher.Fetch(t.Context(), options, credentials); (err == nil) != row.may {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestCredentialsThatAreNone(t *testing.T) {
	for want, data := range map[string]map[string][]byte{
		"it has none of the keys username":        secret("user", "s3cret"),
		"key .dockerconfigjson: it is no JSON":    secret(corev1.DockerConfigJsonKey, "s3cret"),
		"auth of r.example.com is not base64":     secret(corev1.DockerConfigJsonKey, `{"auths":{"r.example.com":{"auth":"s3cret"}}}`),
		"key cacerts holds no certificate in PEM": secret("cacerts", "s3cret"),
		"key ca.crt holds no certificate in PEM":  secret("username", "u", "ca.crt", "s3cret"),
	} {
		_, err := ParseCredentials(data)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %v, want %q without the values", err, want)
		}
	}
}
