package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-fleet/muster/internal/naming"
)

// credentialAt is a Secret as Rancher Fleet's agent writes it.
func credentialAt(server, token string) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{
		"kubeconfig": []byte("clusters: [{name: c, cluster: {server: \"" + server +
			"\"}}]\nusers: [{name: u, user: {token: \"" + token + "\"}}]\n"),
		"clusterNamespace": []byte("fleet-default"), "clusterName": []byte("c-1"), "deploymentNamespace": []byte("cluster-fleet-default-c-1")}}
}

// mustersAt is one as Muster's agent writes it.
func mustersAt(server, token string) *corev1.Secret {
	secret := credentialAt(server, "")
	secret.Data["token"] = []byte(token)
	return secret
}

func TestACredentialThatWasKeptRunsNothingAndReadsNoFiles(t *testing.T) {
	kept := credentialAt("https://old", "t")
	kept.Data["kubeconfig"] = []byte(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://old", certificate-authority: /etc/hostname}}]
users: [{name: u, user: {token: t, tokenFile: /etc/hostname, exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/false, ` +
		`interactiveMode: Never}}}]
`)
	read := readRancherCredential(kept)
	if read == nil {
		t.Fatal("it is not read")
	}
	config := read.config()
	if config.Host != "https://old" || config.BearerToken != "t" || config.ExecProvider != nil || config.AuthProvider != nil ||
		config.BearerTokenFile != "" || config.CAFile != "" {
		t.Errorf("%+v", config)
	}
}

func TestACopyIsOnlyMadeOfACredentialOfRancherFleetsAgent(t *testing.T) {
	old := credentialAt("https://old", "t")
	for name, row := range map[string]struct {
		now, kept *corev1.Secret
		want      bool
	}{
		"nothing is kept yet":                                {old, nil, true},
		"it is kept":                                         {old, credentialAt("https://old", "t"), false},
		"the agent has registered again since":               {credentialAt("https://old", "newer"), old, true},
		"Muster's agent has written its own over it":         {mustersAt("https://new", "m"), old, false},
		"Muster's agent has, and there is no copy":           {mustersAt("https://new", "m"), nil, false},
		"there is no credential":                             {nil, nil, false},
		"there is none, and a copy":                          {nil, old, false},
		"a kubeconfig that cannot be read":                   {&corev1.Secret{Data: map[string][]byte{"kubeconfig": []byte("{")}}, nil, false},
		"the agent registered with another hub of the other": {credentialAt("https://third", "t"), old, true},
	} {
		if got := mustKeep(row.now, row.kept); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTheWayBackRestoresWhatItsAgentHasNot(t *testing.T) {
	kept := credentialAt("https://old", "t")
	for name, row := range map[string]struct {
		now  *corev1.Secret
		want bool
	}{
		"the cluster has Muster's credential":                 {mustersAt("https://new", "m"), true},
		"it was restored on an earlier run":                   {credentialAt("https://old", "t"), false},
		"its agent is about to write another, and has none":   {nil, true},
		"its agent has registered again with the hub of then": {credentialAt("https://old", "newer"), false},
		"its agent has registered with Muster's hub":          {credentialAt("https://new", "t"), true},
		"Muster's agent keeps one for the hub of then":        {mustersAt("https://old", "m"), true},
	} {
		if got := mustRestore(row.now, kept); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTheCopyOfACredentialIsMadeOnceAndNotOverAnothersSecret(t *testing.T) {
	h := newAccess()
	now := credentialAt("https://old", "t")
	now.Namespace, now.Name = naming.SystemNamespace, naming.AgentSecret
	c := &checked{access: h, Client: fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(now).Build()}
	for range 2 {
		if kept, err := c.keepCredential(t.Context()); err != nil || !kept {
			t.Fatalf("%v, %v", kept, err)
		}
	}
	musters := mustersAt("https://new", "m")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
		t.Fatal(err)
	}
	if now.Data = musters.Data; c.Update(t.Context(), now) != nil {
		t.Fatal("updating the credential")
	}
	if kept, err := c.keepCredential(t.Context()); err != nil || !kept {
		t.Fatalf("%v, %v", kept, err)
	}
	kept, err := c.kept(t.Context())
	if err != nil || kept == nil {
		t.Fatalf("%v, %v", kept, err)
	}
	if diff := cmp.Diff(credentialAt("https://old", "t").Data, kept.Data); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
	kept.Labels = nil
	now.Data = credentialAt("https://old", "t").Data
	if c.Update(t.Context(), kept) != nil || c.Update(t.Context(), now) != nil {
		t.Fatal("updating the Secrets")
	}
	if _, err := c.keepCredential(t.Context()); err == nil || !strings.Contains(err.Error(), "so muster move did not make it") {
		t.Errorf("%v", err)
	}
}

func TestWhatIsLeftOfAMoveIsNamedWithItsCommands(t *testing.T) {
	says := formerOf(credentialAt("https://old", "t"), "edge-1", "hub")
	for _, part := range []string{"It was Cluster fleet-default/c-1 of the hub at https://old.",
		"muster migrate --from rancher-fleet --context hub --back edge-1\n",
		"kubectl -n fleet-default delete clusters.fleet.cattle.io c-1\n",
		"kubectl --context edge-1 -n cattle-fleet-system delete secret fleet-agent-before-move"} {
		if !strings.Contains(says, part) {
			t.Errorf("it does not say %q:\n%s", part, says)
		}
	}
	if formerOf(nil, "edge-1", "hub") != "" {
		t.Error("it says something of a member that was none elsewhere")
	}
	if movedTo(&corev1.Secret{}) != "" ||
		movedTo(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationMovedTo: "clusters/web"}},
		}) != "clusters/web" {
		t.Error("what the member became is not read")
	}
}
