package hubclient

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// token is what a ServiceAccount's token looks like to one that cannot verify it.
func token(issued, expires time.Time) string {
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:m:agent","iat":%d,"exp":%d}`, issued.Unix(), expires.Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestCredentialSurvivesItsSecret(t *testing.T) {
	want := Credential{
		Server: "https://hub:6443", CA: []byte("-----BEGIN"), Token: "t", MemberNamespace: "cluster-x", Workspace: "clusters",
		Cluster: "my-cluster",
	}
	secret, err := want.Secret("cattle-fleet-system")
	if err != nil {
		t.Fatal(err)
	}
	got, err := CredentialFromSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAReplacedCredentialSurvivesTheSecretOfTheNewOne(t *testing.T) {
	former := Credential{
		Server: "https://old:6443", CA: []byte("-----BEGIN"), Token: "t1", MemberNamespace: "cluster-x", Workspace: "team-a", Cluster: "edge",
		JoinedWith: "a", JoinedAs: "b",
		Former: &Credential{Server: "https://older", Token: "t0", MemberNamespace: "m", Workspace: "w", Cluster: "c"},
	}
	want := Credential{
		Server: "https://hub:6443", Token: "t2", MemberNamespace: "cluster-y", Workspace: "team-b", Cluster: "edge", JoinedWith: "c",
		JoinedAs: "d", Former: &former,
	}
	secret, err := want.Secret("cattle-fleet-system")
	if err != nil {
		t.Fatal(err)
	}
	got, err := CredentialFromSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	former.Former = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, unreadable := range []string{"{", "{}", `{"kubeconfig":"eA=="}`, "[]"} {
		secret.Data["former"] = []byte(unreadable)
		if got, err := CredentialFromSecret(secret); err != nil || got.Former != nil || got.Token != "t2" {
			t.Errorf("with %s: %+v, %v", unreadable, got, err)
		}
	}
}

// legacyTokens are what a hub gives to an agent of Rancher Fleet: a token without an end, or one
// that ends with a Secret.
func legacyTokens() []string {
	return []string{
		encoded(`{"sub":"system:serviceaccount:m:agent","kubernetes.io/serviceaccount/service-account.uid":"u"}`),
		encoded(
			`{"sub":"system:serviceaccount:m:agent",` +
				`"iat":1000,"exp":4294968295,"kubernetes.io":{"serviceaccount":{"uid":"u"},"secret":{"name":"s","uid":"v"}}}`,
		),
	}
}

func encoded(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// stored is a Secret as an agent of Rancher Fleet writes it, with a token.
func stored(token string) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{
		"kubeconfig": []byte(`{"clusters": [{"name": "cluster", "cluster": {"server": "https://hub"}}], "users": [{"name": "user", "user": ` +
			`{"token": "` + token + `"}}],
			"contexts": [{"name": "default", "context": {"cluster": "cluster", "user": "user", "namespace": "m"}}], "current-context": "default"}`),
		"deploymentNamespace": []byte("m"), "clusterNamespace": []byte("w"), "clusterName": []byte("c"),
	}}
}

func TestTheCredentialOfARancherFleetAgentStaysAsThatAgentNeedsIt(t *testing.T) {
	for _, token := range legacyTokens() {
		found, err := CredentialFromSecret(stored(token))
		if err != nil || !found.Upstream || found.Account() != "u" || found.Token != token {
			t.Fatalf("found %+v: %v", found, err)
		}
		found.Server = "https://elsewhere"
		secret, err := found.Secret("n")
		if err != nil || !strings.Contains(string(secret.Data["kubeconfig"]), token) || len(secret.Data["token"]) > 0 || Outdated(secret) {
			t.Errorf("it is stored as %s: %v", secret.Data["kubeconfig"], err)
		}
	}
}

func TestACredentialOfOurOwnIsNoneThatARancherFleetAgentWouldGoOnWith(t *testing.T) {
	own := token(time.Unix(1000, 0), time.Unix(4000, 0))
	before := stored(own)
	found, err := CredentialFromSecret(before)
	if err != nil || found.Upstream || found.Token != own || !Outdated(before) {
		t.Fatalf("found %+v, outdated %t: %v", found, Outdated(before), err)
	}
	secret, err := found.Secret("n")
	if err != nil || strings.Contains(string(secret.Data["kubeconfig"]), own) || Outdated(secret) {
		t.Errorf("it is stored as %s: %v", secret.Data["kubeconfig"], err)
	}
	if again, err := CredentialFromSecret(secret); err != nil || again.Token != own || again.Upstream {
		t.Errorf("it is read as %+v: %v", again, err)
	}
}

func TestGarbageInTheSecretIsNamedButNotQuoted(t *testing.T) {
	good, err := (Credential{Server: "https://hub", Token: "s3cret", MemberNamespace: "m", Workspace: "w", Cluster: "c"}).Secret("n")
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		change func(map[string][]byte)
		want   string
	}{
		"a missing key": {func(d map[string][]byte) { delete(d, "clusterName") }, "no key clusterName"},
		"no kubeconfig": {func(d map[string][]byte) { d["kubeconfig"] = []byte("s3cret: [") }, "not a kubeconfig"},
		"no context":    {func(d map[string][]byte) { d["kubeconfig"] = []byte("current-context: x") }, `no context "x"`},
		"no token in a user": {func(d map[string][]byte) {
			delete(d, "token")
		}, "no token"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := good.DeepCopy()
			row.change(secret.Data)
			_, err := CredentialFromSecret(&corev1.Secret{Data: secret.Data})
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want it to say %q", err, row.want)
			}
		})
	}
}
