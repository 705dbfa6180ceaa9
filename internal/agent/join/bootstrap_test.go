package join

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
)

const (
	account = "new-token-6f7c6d1e-7f3b-4a53-9d3e-0a1b2c3d4e5f"
	localCA = "-----BEGIN CERTIFICATE-----\n" + localCABody + "-----END CERTIFICATE-----\n"
	// localCABody is a CA that signed nothing of interest.
	localCABody = "MIIBbjCCARSgAwIBAgIQOOGcITRMJOqEvDg4Sn880TAKBggqhkjOPQQDAjAXMRUw\n" +
		"EwYDVQQDEwxsb2NhbGt1YmUtY2EwHhcNMjYxMTIwMTk1NjQ0WhcNMzYxMTE3MjA1\n" +
		"NjQ0WjAXMRUwEwYDVQQDEwxsb2NhbGt1YmUtY2EwWTATBgcqhkjOPQIBBggqhkjO\n" +
		"PQMBBwNCAAT54P0f83H8KzryeACcoNQjMLF5I0KD3UODnLd1jR+ss5glru8NhSwj\n" +
		"XlY/bisyZvE1rhOGa0nXtaz7nYOP8OXxo0IwQDAOBgNVHQ8BAf8EBAMCAoQwDwYD\n" +
		"VR0TAQH/BAUwAwEB/zAdBgNVHQ4EFgQU2OT9yFlgKxiJZDyk8r6qbKrFZvwwCgYI\n" +
		"KoZIzj0EAwIDSAAwRQIhAJ2+70DfkMrCgvJrPsuajXWQgLHJcS4gQ9l/CxSEVDcn\n" +
		"AiAU7lc5VNy/hWY06m0SEGCqoVEk3yvghqU6MGcMcQPBng==\n"
)

// jwt is what a registration token looks like to one that cannot verify it.
func jwt(subject string, expires int64) string {
	payload := fmt.Sprintf(`{"sub":%q,"iat":1000,"exp":%d}`, subject, expires)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

var token = jwt("system:serviceaccount:clusters:"+account, 4000)

func TestBootstrap(t *testing.T) {
	claims := credential.Claims{
		Subject: "system:serviceaccount:clusters:" + account, Namespace: "clusters", Account: account,
		Issued: time.Unix(1000, 0), Expires: time.Unix(4000, 0),
	}
	for name, row := range map[string]struct {
		data map[string]string
		want Bootstrap
	}{
		"all keys count": {
			map[string]string{
				"apiServerURL": "https://hub", "apiServerCA": localCA, "token": "opaque", "tokenName": "t", "clusterNamespace": "w",
				"systemRegistrationNamespace": "s",
			},
			Bootstrap{Server: "https://hub", CA: []byte(localCA), Token: "opaque", TokenName: "t", Workspace: "w"},
		},
		"URL and token suffice, because the token tells workspace and name": {
			map[string]string{"apiServerURL": "https://hub", "token": token},
			Bootstrap{Server: "https://hub", Token: token, Claims: claims, TokenName: "new-token", Workspace: "clusters"},
		},
		"a CA in base64 with line breaks, and white space around everything": {
			map[string]string{"apiServerURL": " https://hub/\n", "token": token + "\n",
				"apiServerCA": "\n " + strings.Join(split(base64.StdEncoding.EncodeToString([]byte(localCA)), 64), "\n ") + "\n"},
			Bootstrap{Server: "https://hub", CA: []byte(localCA), Token: token, Claims: claims, TokenName: "new-token", Workspace: "clusters"},
		},
		"a whole values.yaml in one key": {
			map[string]string{"values": "apiServerURL: https://hub\napiServerCA: |\n  " + strings.ReplaceAll(localCA, "\n", "\n  ") +
				"\ntoken: " + token + "\ntokenName: other\nclusterNamespace: w\ninternal:\n  systemNamespace: x\n"},
			Bootstrap{Server: "https://hub", CA: []byte(localCA), Token: token, Claims: claims, TokenName: "other", Workspace: "w"},
		},
		"a key of its own outranks the values.yaml": {
			map[string]string{"values": "apiServerURL: https://old\ntoken: " + token + "\n", "apiServerURL": "https://new"},
			Bootstrap{Server: "https://new", Token: token, Claims: claims, TokenName: "new-token", Workspace: "clusters"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseBootstrap(secret(row.data), false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func split(s string, n int) (parts []string) {
	for len(s) > n {
		parts, s = append(parts, s[:n]), s[n:]
	}
	return append(parts, s)
}

func secret(data map[string]string) *corev1.Secret {
	s := &corev1.Secret{Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

func TestBadBootstrapNamesTheKeyAndWhatToSet(t *testing.T) {
	for name, row := range map[string]struct {
		data map[string]string
		want string
	}{
		"nothing":      {nil, "its key apiServerURL is missing or empty: set apiServerURL, the https URL of the hub's API server"},
		"an empty URL": {map[string]string{"apiServerURL": " ", "token": token}, "its key apiServerURL is missing or empty"},
		"a URL without scheme": {
			map[string]string{"apiServerURL": "hub:6443", "token": token}, `its key apiServerURL is "hub:6443": want https://host`,
		},
		"no token":       {map[string]string{"apiServerURL": "https://hub"}, "its key token is missing or empty: set token"},
		"a broken token": {map[string]string{"apiServerURL": "https://hub", "token": "s3cret\nmore"}, "its key token holds white space"},
		"an opaque token alone": {
			map[string]string{"apiServerURL": "https://hub", "token": "s3cret"},
			"its key clusterNamespace is missing or empty: set clusterNamespace",
		},
		"a CA that is none": {
			map[string]string{"apiServerURL": "https://hub", "token": token, "apiServerCA": "abc!"}, "its key apiServerCA is unusable",
		},
		"a cut CA": {
			map[string]string{"apiServerURL": "https://hub", "token": token, "apiServerCA": localCA[:300]}, "its key apiServerCA is unusable",
		},
		"values that are no YAML": {map[string]string{"values": "token: s3cret: ["}, "its key values is not the YAML of a values.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseBootstrap(secret(row.data), false)
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestTokenName(t *testing.T) {
	for in, want := range map[string]string{
		account:                     "new-token",
		"import-token-c-" + account: "import-token-c-new-token",
		"new-token":                 "",
		"a-very-long-token-name-that-goes-on-and-on-for-ever-and-e-d8e14": "",
	} {
		if got := tokenName(in); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestConfig(t *testing.T) {
	for name, row := range map[string]struct {
		data map[string]string
		want Config
	}{
		"no ConfigMap": {nil, Config{Mode: hubclient.TLSSystemStore}},
		"no key":       {map[string]string{}, Config{Mode: hubclient.TLSSystemStore}},
		"an empty key": {map[string]string{"config": "\n"}, Config{Mode: hubclient.TLSSystemStore}},
		"an empty one": {map[string]string{"config": "{}"}, Config{Mode: hubclient.TLSSystemStore}},
		"null everywhere": {
			map[string]string{"config": `{"labels":null,"clientID":null,"agentTLSMode":null}`}, Config{Mode: hubclient.TLSSystemStore},
		},
		"everything, and keys that it does not know": {
			map[string]string{
				"config": `{"labels":{"env":"dev"},"clientID":"x","agentTLSMode":"strict","garbageCollectionInterval":"15m","more":[1]}`,
			},
			Config{Labels: map[string]string{"env": "dev"}, ClientID: "x", Mode: hubclient.TLSStrict},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var object *corev1.ConfigMap
			if row.data != nil {
				object = &corev1.ConfigMap{Data: row.data}
			}
			got, err := ParseConfig(object)
			if err != nil {
				t.Fatal(err)
			}
			if row.data != nil {
				row.want.Digest = fmt.Sprintf("%x", sha256.Sum256([]byte(row.data["config"]))) // as the chart computes it
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestBadConfigSaysWhere(t *testing.T) {
	for in, want := range map[string]string{
		`{"labels":{"a":1}}`:         "labels: found a JSON number where text in quotes is wanted",
		`{"labels":["a"]}`:           "labels: found a JSON array where an object is wanted",
		`{"clientID":7}`:             "clientID: found a JSON number where text in quotes is wanted",
		`[]`:                         "the document: found a JSON array where an object is wanted",
		`garbage`:                    "its key config is not the JSON object that the agent expects: invalid character",
		`{"agentTLSMode":"lenient"}`: `agentTLSMode is "lenient": want strict or system-store`,
	} {
		_, err := ParseConfig(&corev1.ConfigMap{Data: map[string]string{"config": in}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", in, err, want)
		}
	}
}

func TestABootstrapSecretThatIsAnOrdinaryObjectOfAReleaseIsAnotherCharts(t *testing.T) {
	helm := map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	for name, row := range map[string]struct {
		labels map[string]string
		digest string
		want   bool
	}{
		"made by hand":                      {nil, "", false},
		"the hook of our chart":             {helm, "d", false},
		"an ordinary object of Helm's":      {helm, "", true},
		"made by somebody else's programme": {map[string]string{"app.kubernetes.io/managed-by": "x"}, "", false},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: row.labels}, Data: map[string][]byte{"configDigest": []byte(row.digest)}}
		if got := IsOfAnotherChart(secret); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
