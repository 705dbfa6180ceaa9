package access

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

const tokenKubeconfig = `apiVersion: v1
kind: Config
current-context: default
contexts:
- {name: default, context: {cluster: cluster, user: user, namespace: other}}
- {name: prod, context: {cluster: cluster, user: admin}}
clusters:
- {name: cluster, cluster: {server: "https://web.example.com:6443/", tls-server-name: web}}
users:
- {name: user, user: {token: s3cret}}
- {name: admin, user: {token: another-s3cret}}
`

func parsed(t *testing.T, text string) kubeconfig.Kubeconfig {
	t.Helper()
	k, problem := kubeconfig.Parse("clusters/web-kubeconfig", []byte(text), time.Unix(0, 0))
	if problem != nil {
		t.Fatal(problem)
	}
	return k
}

func rendered(t *testing.T, at int, access settings.Access) *corev1.Secret {
	t.Helper()
	o := observed{tool: tools(access)[at], member: member{
		key: types.NamespacedName{Namespace: "clusters", Name: "web"}, kubeconfig: parsed(t, tokenKubeconfig),
		record: &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"env": "prod", "muster/own": "x"}}},
	}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"added": "by-hand"}}}
	if err := o.render(secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestSecretForArgoCD(t *testing.T) {
	access := on
	access.ArgoCDProject = "fleet"
	got := rendered(t, 0, access)
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{
				"added": "by-hand", "env": "prod", "argocd.argoproj.io/secret-type": "cluster", "fleet.cattle.io/managed": "true",
				"muster/access": "argocd", "muster/workspace": "clusters",
			},
			Annotations: map[string]string{"muster/access-of": "clusters/web", "muster/record-labels": "env",
				annotationServer: got.Annotations[annotationServer]},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			"name": []byte("clusters.web"), "server": []byte("https://web.example.com:6443"), "project": []byte("fleet"),
			"config": []byte(`{"bearerToken":"s3cret","tlsClientConfig":{"insecure":false,"serverName":"web"}}`),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Annotations[annotationServer] == "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, has := rendered(t, 0, on).Data["project"]; has {
		t.Error("without a setting, the Secret names a project")
	}
}

func TestCertificatesForArgoCDAreBase64(t *testing.T) {
	k := kubeconfig.Kubeconfig{Server: "https://web", Config: &rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAData: []byte("CA"), CertData: []byte("certificate"), KeyData: []byte("key"), Insecure: true,
	}}}
	data, err := argoCDCluster("m", "", k)
	want := `{"tlsClientConfig":{"insecure":true,"caData":"Q0E=","certData":"Y2VydGlmaWNhdGU=","keyData":"a2V5"}}`
	if err != nil || string(data["config"]) != want {
		t.Errorf("%v: %s", err, data["config"])
	}
}

func TestSecretForFluxHasOneContextAndNothingElse(t *testing.T) {
	got := rendered(t, 1, on)
	want := `apiVersion: v1
clusters:
- cluster:
    server: https://web.example.com:6443
    tls-server-name: web
  name: clusters.web
contexts:
- context:
    cluster: clusters.web
    user: clusters.web
  name: clusters.web
current-context: clusters.web
kind: Config
users:
- name: clusters.web
  user:
    token: s3cret
`
	if diff := cmp.Diff(want, string(got.Data["value"])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Labels[labelArgoCD] != "" || got.Labels[fleet.LabelAccess] != "flux" {
		t.Errorf("labels %v", got.Labels)
	}
}

func TestAccessProviderHasNoCredentialAndLeavesThoseOfOthersAlone(t *testing.T) {
	o := observed{tool: tools(on)[2], member: member{key: types.NamespacedName{Name: "m"}, kubeconfig: parsed(t, tokenKubeconfig)}}
	theirs := inventory.AccessProvider{Name: "theirs"}
	status := inventory.ClusterProfileStatus{AccessProviders: []inventory.AccessProvider{theirs}}
	for range 2 { // the second time, nothing changes
		if taken, err := o.provide(&status, true); taken || err != nil {
			t.Fatal(taken, err)
		}
		want := []inventory.AccessProvider{theirs, {Name: "kubeconfig-secretreader", Cluster: runtime.RawExtension{Raw: []byte(
			`{"server":"https://web.example.com:6443","tls-server-name":"web","extensions":[{"name":"client.authentication.k8s.io/exec",` +
				`"extension":{"name":"inventory-m","key":"value","namespace":"kueue-system"}}]}`)}}}
		if diff := cmp.Diff(want, status.AccessProviders); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if _, err := o.provide(&status, false); err != nil || len(status.AccessProviders) != 1 {
		t.Errorf("%v: %v is left", err, status.AccessProviders)
	}
	theirs = inventory.AccessProvider{Name: provider, Cluster: runtime.RawExtension{Raw: []byte(`{"server":"https://theirs"}`)}}
	status.AccessProviders = []inventory.AccessProvider{theirs}
	for _, given := range []bool{true, false} {
		if taken, err := o.provide(&status, given); err != nil || taken != given || len(status.AccessProviders) != 1 {
			t.Errorf("given %t: taken %t, %v: %v", given, taken, err, status.AccessProviders)
		}
	}
}

func TestNoToolGetsAKubeconfigOfItsOwnCluster(t *testing.T) {
	config := settings.New(nil, nil, "system")
	c := New(Deps{Deps: controller.Deps{Config: config}, Hub: &rest.Config{Host: "https://10.96.0.1:443"}})
	for server, want := range map[string]string{
		"https://web.example.com:6443":           "",
		"https://10.96.0.1":                      "leads to the hub itself",
		"https://kubernetes.default.svc":         "leads to the hub itself",
		"https://Kubernetes.default:443/":        "leads to the hub itself",
		"https://localhost:6443":                 "leads to the hub itself",
		"https://127.0.0.1:6443":                 "loopback",
		"https://169.254.169.254":                "link-local",
		"https://vcluster.team-a.svc":            "",
		"https://kubernetes.default.example.com": "",
	} {
		k := parsed(t, strings.Replace(tokenKubeconfig, "https://web.example.com:6443/", server, 1))
		if got := c.refusal(k); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", server, got, want)
		}
	}
	k := parsed(t, strings.Replace(tokenKubeconfig, "token: s3cret", "token: s3cret, as: boss", 1))
	if got := c.refusal(k); !strings.Contains(got, "acts as another user") || strings.Contains(got, "boss") {
		t.Errorf("impersonation: %q", got)
	}
}
