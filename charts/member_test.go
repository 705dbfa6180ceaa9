package charts_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/internal/naming"
)

// member is the how-to's command line, in the release namespace that it does not name.
func member(set ...string) helm {
	return helm{chart: "member-agent", namespace: "default", release: "member-agent", set: append([]string{
		"config.hubURL=https://hub.example.com:6443", "config.memberClusterName=web",
	}, set...)}
}

// howTo is every --set of the how-to.
var howTo = []string{
	"config.hubURL=https://hub.example.com:6443",
	"image.repository=mcr.microsoft.com/aks/fleet/member-agent",
	"image.tag=v0.14.0",
	"refreshtoken.repository=mcr.microsoft.com/aks/fleet/refresh-token",
	"refreshtoken.tag=v0.14.0",
	"image.pullPolicy=Always",
	"refreshtoken.pullPolicy=Always",
	"config.memberClusterName=web",
	"logVerbosity=5",
	"namespace=fleet-system",
	"enableV1Alpha1APIs=false",
	"enableV1Beta1APIs=true",
}

func (r release) names() []string {
	var names []string
	for _, object := range r.objects {
		names = append(names, object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName())
	}
	return names
}

func (r release) container(t *testing.T, deployment string) map[string]any {
	t.Helper()
	containers, _, _ := unstructured.NestedSlice(r.object(t, "Deployment", deployment).Object, "spec", "template", "spec", "containers")
	return containers[0].(map[string]any)
}

func environment(container map[string]any) map[string]any {
	environment := map[string]any{}
	for _, entry := range container["env"].([]any) {
		entry := entry.(map[string]any)
		if value, given := entry["value"]; given {
			environment[entry["name"].(string)] = value
		}
	}
	return environment
}

func TestCommandOfTheHowToInstallsTheMemberAgent(t *testing.T) {
	out := helm{chart: "member-agent", namespace: "default", release: "member-agent", set: howTo}.mustRender(t)
	want := []string{
		"CustomResourceDefinition /appliedworks.placement.kubernetes-fleet.io",
		"ClusterRole /member-agent-delivery",
		"ClusterRoleBinding /member-agent-delivery",
		"Deployment fleet-system/member-agent",
		"Namespace /fleet-system",
		"ServiceAccount fleet-system/member-agent-sa",
		"Role default/member-agent-hub-token",
		"RoleBinding default/member-agent-hub-token",
		"Role fleet-system/member-agent-hub-credential",
		"RoleBinding fleet-system/member-agent-hub-credential",
		"Role fleet-system/member-agent-hub-address",
		"RoleBinding fleet-system/member-agent-hub-address",
		"Role fleet-system/member-agent-facts",
		"RoleBinding fleet-system/member-agent-facts",
		"ClusterRole /member-agent-role",
		"ClusterRoleBinding /member-agent-role-binding",
		"ServiceAccount fleet-system/member-agent-test",
		"Role fleet-system/member-agent-test",
		"RoleBinding fleet-system/member-agent-test",
		"Pod fleet-system/member-agent-test",
	}
	if diff := cmp.Diff(want, out.names()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	container := out.container(t, "member-agent")
	if got := container["image"]; got != "mcr.microsoft.com/aks/fleet/member-agent:v0.14.0" || container["imagePullPolicy"] != "Always" {
		t.Errorf("image %q, pulled %q", got, container["imagePullPolicy"])
	}
	if diff := cmp.Diff(map[string]any{
		"HUB_SERVER_URL": "https://hub.example.com:6443", "MEMBER_CLUSTER_NAME": "web", "HUB_TOKEN_SECRET": "default/hub-kubeconfig-secret",
		"HELM_RELEASE": "default/member-agent", "DEPLOYMENT": "member-agent",
		"FACTS_CONFIG_MAP": "muster-facts",
	}, environment(container)); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	for _, sentence := range []string{
		"ignores them: enableV1Alpha1APIs, enableV1Beta1APIs, refreshtoken", "is an image of KubeFleet", "the key ca.crt of that Secret",
		"kubectl get membercluster web",
	} {
		if !strings.Contains(out.notes, sentence) {
			t.Errorf("notes do not say %q:\n%s", sentence, out.notes)
		}
	}
}

func TestUninstallRemovesNothingButTheAgent(t *testing.T) {
	for _, object := range member().mustRender(t).objects {
		keep := object.GetAnnotations()["helm.sh/resource-policy"] == "keep"
		if shared := object.GetKind() == "Namespace" || object.GetKind() == "CustomResourceDefinition"; shared != keep {
			t.Errorf("%s %s: kept by helm uninstall: %t", object.GetKind(), object.GetName(), keep)
		}
	}
}

func TestNamespaceOfTheReleaseIsNotMadeAgain(t *testing.T) {
	command := member()
	command.namespace = "fleet-system"
	for _, name := range command.mustRender(t).names() {
		if strings.HasPrefix(name, "Namespace") {
			t.Errorf("rendered %s", name)
		}
	}
}

func TestMemberAgentReadsOneSecret(t *testing.T) {
	out := member("secret.name=token", "secret.namespace=elsewhere", "namespace=agents").mustRender(t)
	role := out.object(t, "Role", "member-agent-hub-token")
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	want := []any{map[string]any{
		"apiGroups": []any{""}, "resources": []any{"secrets"}, "resourceNames": []any{"token"}, "verbs": []any{"get", "list", "watch"},
	}}
	if diff := cmp.Diff(want, rules); diff != "" || role.GetNamespace() != "elsewhere" {
		t.Errorf("role in %s (-want +got):\n%s", role.GetNamespace(), diff)
	}
	if got := environment(out.container(t, "member-agent"))["HUB_TOKEN_SECRET"]; got != "elsewhere/token" {
		t.Errorf("the agent is told of %v", got)
	}
	binding := out.object(t, "ClusterRoleBinding", "member-agent-role-binding")
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	if got := subjects[0].(map[string]any)["namespace"]; got != "agents" {
		t.Errorf("bound is an account of %v", got)
	}
}

func TestMemberAgentKeepsWhatTheHubToldInOneConfigMapOfItsNamespace(t *testing.T) {
	role := member("namespace=agents").mustRender(t).object(t, "Role", "member-agent-hub-address")
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	want := []any{
		map[string]any{
			"apiGroups": []any{""}, "resources": []any{"configmaps"}, "resourceNames": []any{naming.LearnedHubConfigMap},
			"verbs": []any{"get", "list", "watch", "update"},
		},
		map[string]any{
			"apiGroups": []any{""}, "resources": []any{"configmaps"}, "resourceNames": []any{naming.ObeyedTermConfigMap},
			"verbs": []any{"get", "update"},
		},
		map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"create"}},
	}
	if diff := cmp.Diff(want, rules); diff != "" || role.GetNamespace() != "agents" {
		t.Errorf("role in %s (-want +got):\n%s", role.GetNamespace(), diff)
	}
}

func TestMemberAgentKeepsWhatTheHubIssuedInOneSecretOfItsNamespace(t *testing.T) {
	role := member("namespace=agents", "secret.name=token").mustRender(t).object(t, "Role", "member-agent-hub-credential")
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	secrets := func(rule map[string]any) map[string]any {
		rule["apiGroups"], rule["resources"] = []any{""}, []any{"secrets"}
		return rule
	}
	want := []any{
		secrets(map[string]any{"resourceNames": []any{naming.MemberAgentCredentialSecret}, "verbs": []any{"list", "watch", "update"}}),
		secrets(map[string]any{"resourceNames": []any{naming.AgentKeySecret}, "verbs": []any{"get"}}),
		secrets(map[string]any{"verbs": []any{"create"}}),
	}
	if diff := cmp.Diff(want, rules); diff != "" || role.GetNamespace() != "agents" {
		t.Errorf("role in %s (-want +got):\n%s", role.GetNamespace(), diff)
	}
}

// TestRightToDeliverIsExactlyThis must change whenever the agent gets a right or loses one.
func TestRightToDeliverIsExactlyThis(t *testing.T) {
	out := member("namespace=agents").mustRender(t)
	rules, _, _ := unstructured.NestedSlice(out.object(t, "ClusterRole", "member-agent-delivery").Object, "rules")
	want := []any{
		map[string]any{
			"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"get", "list", "watch", "create", "update", "patch", "delete"},
		},
		map[string]any{
			"apiGroups": []any{"rbac.authorization.k8s.io"}, "resources": []any{"roles", "clusterroles"}, "verbs": []any{"bind", "escalate"},
		},
	}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	subjects, _, _ := unstructured.NestedSlice(out.object(t, "ClusterRoleBinding", "member-agent-delivery").Object, "subjects")
	if got := subjects[0].(map[string]any); got["name"] != "member-agent-sa" || got["namespace"] != "agents" {
		t.Errorf("bound is %v", got)
	}
	without := member("delivery=false").mustRender(t)
	if names := strings.Join(without.names(), " "); strings.Contains(names, "delivery") ||
		!strings.Contains(without.notes, "delivery is false") {
		t.Errorf("switched off, there is %s; notes:\n%s", names, without.notes)
	}
	if got := environment(without.container(t, "member-agent"))["DELIVERY"]; got != "false" {
		t.Errorf("the agent is told %v", got)
	}
	if strings.Contains(out.notes, "delivery") {
		t.Errorf("notes:\n%s", out.notes)
	}
}

func TestHubCAIsTakenInEveryForm(t *testing.T) {
	want := base64.StdEncoding.EncodeToString([]byte(ca))
	for form, value := range map[string]string{"PEM": ca, "base64 of PEM": want} {
		out := member("config.hubCA=" + value).mustRender(t)
		if got := environment(out.container(t, "member-agent"))["HUB_CERTIFICATE_AUTHORITY"]; got != want {
			t.Errorf("%s: got %v", form, got)
		}
	}
}

func TestChartMayBringTheCAOfItsHub(t *testing.T) {
	command := member()
	command.file = [2]string{"hub-ca.crt", ca}
	out := command.mustRender(t)
	got, want := environment(out.container(t, "member-agent")), base64.StdEncoding.EncodeToString([]byte(ca))
	if got["HUB_CERTIFICATE_AUTHORITY_FALLBACK"] != want || got["HUB_CERTIFICATE_AUTHORITY"] != nil {
		t.Errorf("environment %v", got)
	}
	if !strings.Contains(out.notes, "Without the key, it uses hub-ca.crt of this chart") {
		t.Errorf("notes:\n%s", out.notes)
	}
	command.file[1] = "abc"
	if _, err := command.render(t); err == nil || !strings.Contains(err.Error(), "hub-ca.crt in the directory of this chart is neither PEM") {
		t.Errorf("got %v", err)
	}
}

func TestInsecureHasToBeAskedFor(t *testing.T) {
	for set, want := range map[string]bool{"tlsClientInsecure=false": false, "tlsClientInsecure=true": true} {
		out := member(set).mustRender(t)
		args := out.container(t, "member-agent")["args"].([]any)
		if slices.Contains(args, any("--tls-insecure")) != want || strings.Contains(out.notes, "WARNING") != want {
			t.Errorf("%s: args %s, notes:\n%s", set, args, out.notes)
		}
	}
}

func TestUpstreamValuesOfTheMemberAgentAreAccepted(t *testing.T) {
	command := helm{chart: "member-agent", namespace: "fleet-system", release: "member-agent", values: `
replicaCount: 1
image: {repository: muster-agent, pullPolicy: Never, tag: 1.2}
refreshtoken: {repository: x, pullPolicy: Always, tag: ""}
logVerbosity: 6
resources: {limits: {cpu: 500m, memory: 1Gi}, requests: {cpu: 100m, memory: 128Mi}}
tolerations: []
affinity: {}
nodeSelector: {disk: ssd}
namespace: fleet-system
config:
  provider: secret
  hubURL: https://hub
  memberClusterName: 42
  hubCA: <certificate-authority-data>
  identityKey: <identity-key>
  identityCert: <identity-cert>
  CABundle: <ca>
  azureCloudConfig: {cloud: ""}
secret: {name: hub-kubeconfig-secret, namespace: default}
azure: {clientid: <id>}
tlsClientInsecure: false
useCAAuth: false
enablePprof: true
pprofPort: 6065
hubPprofPort: 6066
priorityQueue: {enabled: false, priorityLinearEquationCoeffA: -3, priorityLinearEquationCoeffB: 100}
enableNamespaceCollectionInPropertyProvider: false
`}
	out := command.mustRender(t)
	if got := environment(out.container(t, "member-agent"))["MEMBER_CLUSTER_NAME"]; got != "42" {
		t.Errorf("the name is %v", got)
	}
	want := "ignores them: azure, config.CABundle, config.azureCloudConfig, config.identityCert, config.identityKey, " +
		"enableNamespaceCollectionInPropertyProvider, enablePprof, hubPprofPort, pprofPort, priorityQueue, refreshtoken, replicaCount"
	if !strings.Contains(out.notes, want) {
		t.Errorf("notes do not say %q:\n%s", want, out.notes)
	}
}

func TestAMemberThatWasRevokedIsToldItsNamespace(t *testing.T) {
	const namespace = "fleet-member-web-1a2b3c4d5e6f"
	out := member("config.memberNamespace=" + namespace).mustRender(t)
	if got := environment(out.container(t, "member-agent"))["MEMBER_NAMESPACE"]; got != namespace {
		t.Errorf("the namespace is %v", got)
	}
	if strings.Contains(out.notes, "ignores them") {
		t.Errorf("notes say %s", out.notes)
	}
}

func TestMistakesOfAMemberAgentFailWithASentence(t *testing.T) {
	bare := func(set ...string) helm {
		return helm{chart: "member-agent", namespace: "default", release: "member-agent", set: set}
	}
	tests := map[string]struct {
		command helm
		want    string
	}{
		"no URL":                   {bare("config.memberClusterName=web"), "config.hubURL is required to be set"},
		"URL of the how-to as is":  {member("config.hubURL=YOUR-HUB-CLUSTER-ADDRESS"), "config.hubURL is required to be set"},
		"URL of upstream's values": {member("config.hubURL=<your-hub-url>"), "config.hubURL is required to be set"},
		"URL without scheme":       {member("config.hubURL=hub:6443"), `config.hubURL is "hub:6443", which is no address of an API server`},
		"URL with http":            {member("config.hubURL=http://hub"), "which is no address of an API server"},
		"no name":                  {bare("config.hubURL=https://hub"), "config.memberClusterName is required to be set"},
		"name of the how-to as is": {member("config.memberClusterName=YOUR-MEMBER-CLUSTER"), "config.memberClusterName is required to be set"},
		"name that is too long": {member("config.memberClusterName=" + strings.Repeat("x", 51)),
			"has 51 characters, and a MemberCluster's name has at most 50"},
		"name with a dot":  {member("config.memberClusterName=web.example"), `config.memberClusterName "web.example" has a dot`},
		"name in capitals": {member("config.memberClusterName=Web"), "has lower-case letters, digits"},
		"namespace of another kind": {member("config.memberNamespace=cluster-web"),
			`config.memberNamespace is "cluster-web", which is no member namespace`},
		"CA that is neither": {member("config.hubCA=abc"), "config.hubCA is neither PEM (-----BEGIN CERTIFICATE-----) nor base64 of PEM"},
		"certificates":       {member("useCAAuth=true"), "this agent shows the hub a token, not a certificate"},
		"provider azure": {member("config.provider=azure"),
			`config.provider is "azure": this agent takes the hub's token from a Secret only`},
		"namespace that is none":    {member("namespace=Fleet"), `namespace is "Fleet", which is no name of a namespace`},
		"pull policy that is none":  {member("image.pullPolicy=Sometimes"), "pullPolicy"},
		"secret without a name":     {member("secret.name="), "secret"},
		"insecurity that is a text": {member("tlsClientInsecure=maybe"), "tlsClientInsecure"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := test.command.render(t); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
	member("config.memberClusterName=" + strings.Repeat("x", 50)).mustRender(t)
}

func TestOnlyAnAgentOfKubeFleetGoesBeforeItsSuccessorHasJoined(t *testing.T) {
	of := func(labels map[string]any) []runtime.Object {
		deployment := map[string]any{"name": "member-agent", "namespace": "fleet-system"}
		if labels != nil {
			deployment["labels"] = labels
		}
		object := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": deployment}
		return []runtime.Object{&unstructured.Unstructured{Object: object}}
	}
	for name, row := range map[string]struct {
		there              []runtime.Object
		unavailable, surge float64
	}{
		"a new installation":      {nil, 0, 1},
		"an upgrade":              {of(map[string]any{"app.kubernetes.io/part-of": "muster"}), 0, 1},
		"an agent of KubeFleet":   {of(map[string]any{"app.kubernetes.io/name": "member-agent"}), 1, 0},
		"one without labels":      {of(nil), 1, 0},
		"a rendering of our own":  {of(map[string]any{"app.kubernetes.io/part-of": "muster", "team": "a"}), 0, 1},
		"one of another's labels": {of(map[string]any{"app.kubernetes.io/part-of": "other"}), 1, 0},
	} {
		chart := member()
		chart.cluster = row.there
		rendered := chart.mustRender(t).object(t, "Deployment", "member-agent")
		update, _, _ := unstructured.NestedMap(rendered.Object, "spec", "strategy", "rollingUpdate")
		if diff := cmp.Diff(map[string]any{"maxUnavailable": row.unavailable, "maxSurge": row.surge}, update); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheChartOfAMemberAgentRefusesUpgradesByTheHub(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want any
	}{{nil, nil}, {[]string{"upgradedByHub=false"}, "false"}, {[]string{"upgradedByHub=null"}, nil}} {
		container := member(c.set...).mustRender(t).container(t, "member-agent")
		if got := environment(container)["UPGRADED_BY_HUB"]; got != c.want {
			t.Errorf("%v: UPGRADED_BY_HUB is %v, want %v", c.set, got, c.want)
		}
	}
}
