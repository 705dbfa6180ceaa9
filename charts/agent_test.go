package charts_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/internal/uninstall"
)

const ca = "-----BEGIN CERTIFICATE-----\nMIIBdjCCAR2gAwIBAgIBADAKBggqhkjOPQQDAjAjMSEwHwYDVQQDDBhrM3Mtc2Vy\n-----END CERTIFICATE-----\n"

// valuesOfToken is a values.yaml as the hub writes it, without its URL and CA.
func valuesOfToken(t *testing.T) string {
	return fmt.Sprintf("clusterNamespace: clusters\nsystemRegistrationNamespace: cattle-fleet-clusters-system\ntoken: %s\ntokenName: "+
		"new-token\n",
		jwt(t, map[string]any{"sub": "system:serviceaccount:clusters:new-token-1", "exp": 4e9}))
}

func agent(values string, set ...string) helm {
	return helm{chart: "fleet-agent", namespace: "cattle-fleet-system", release: "fleet-agent", values: values, set: set}
}

func TestCommandsOfTheGuideInstallTheAgent(t *testing.T) {
	base64CA := base64.StdEncoding.EncodeToString([]byte(ca))
	token := jwt(t, map[string]any{"sub": "system:serviceaccount:clusters:new-token-1"})
	values := valuesOfToken(t)
	withURL := values + "apiServerURL: https://hub:6443\napiServerCA: " + base64CA + "\n"
	tests := map[string]struct {
		command   helm
		config    map[string]any
		bootstrap map[string]string
	}{
		"a new cluster with labels, the CA as a kubeconfig has it": {
			command: helm{
				chart: "fleet-agent", namespace: "cattle-fleet-system", release: "fleet-agent", values: values,
				setString: []string{"labels.example=true", "labels.env=dev"},
				set:       []string{"apiServerCA=" + base64CA, "apiServerURL=https://hub.example.com:6443"},
			},
			config: map[string]any{"labels": map[string]any{"example": "true", "env": "dev"}, "clientID": ""},
			bootstrap: map[string]string{
				"apiServerURL": "https://hub.example.com:6443", "apiServerCA": ca,
				"token": jwt(t, map[string]any{"sub": "system:serviceaccount:clusters:new-token-1", "exp": 4e9}), "tokenName": "new-token",
				"clusterNamespace": "clusters", "systemRegistrationNamespace": "cattle-fleet-clusters-system",
			},
		},
		"a predefined cluster with its clientID": {
			command: agent(withURL, "clientID=really-random"),
			config:  map[string]any{"labels": map[string]any{}, "clientID": "really-random"},
		},
		"the token alone, with URL and CA": {
			command: agent("", "token="+token, "apiServerURL=https://hub:6443", "apiServerCA="+base64CA),
			config:  map[string]any{"labels": map[string]any{}, "clientID": ""},
			bootstrap: map[string]string{
				"apiServerURL": "https://hub:6443", "apiServerCA": ca, "token": token, "tokenName": "", "clusterNamespace": "",
				"systemRegistrationNamespace": "cattle-fleet-clusters-system",
			},
		},
		"label values that are no texts become texts": {
			command: agent(withURL, "labels.a=true", "labels.b=1000000", `labels.example\.com/c=x`),
			config:  map[string]any{"labels": map[string]any{"a": "true", "b": "1000000", "example.com/c": "x"}, "clientID": ""},
		},
		"a clientID of digits stays as it is": {
			command: agent(withURL + "clientID: 123456789\n"),
			config:  map[string]any{"labels": map[string]any{}, "clientID": "123456789"},
		},
		"labels and clientID that are null": {
			command: agent(withURL + "labels: null\nclientID: null\n"),
			config:  map[string]any{"labels": map[string]any{}, "clientID": ""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out := test.command.mustRender(t)
			test.config["agentTLSMode"], test.config["garbageCollectionInterval"] = "system-store", "15m"
			if diff := cmp.Diff(test.config, out.config(t, "fleet-agent")); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
			if test.bootstrap == nil {
				return
			}
			config := out.object(t, "ConfigMap", "fleet-agent").Object["data"].(map[string]any)["config"].(string)
			test.bootstrap["configDigest"] = fmt.Sprintf("%x", sha256.Sum256([]byte(config)))
			if diff := cmp.Diff(test.bootstrap, out.secretData(t, "fleet-agent-bootstrap")); diff != "" {
				t.Errorf("bootstrap Secret (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryFormOfTheCAGivesTheSameSecret(t *testing.T) {
	plain := base64.StdEncoding.EncodeToString([]byte(ca))
	forms := map[string]string{
		"PEM":                                ca,
		"PEM without a line end":             strings.TrimSpace(ca),
		"base64 of PEM":                      plain,
		"base64 of PEM in lines":             plain[:40] + "\n" + plain[40:] + "\n",
		"base64 of PEM, with spaces around":  "  " + plain + " ",
		"base64 of PEM without the line end": base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(ca))),
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			out := agent(valuesOfToken(t), "apiServerURL=https://hub", "apiServerCA="+form).mustRender(t)
			if got := out.secretData(t, "fleet-agent-bootstrap")["apiServerCA"]; got != ca {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestMistakesOfAnAgentFailWithASentence(t *testing.T) {
	good := []string{"apiServerURL=https://hub:6443", "apiServerCA=" + base64.StdEncoding.EncodeToString([]byte(ca))}
	with := func(set ...string) helm {
		return agent(valuesOfToken(t), append(good[:len(good):len(good)], set...)...)
	}
	elsewhere, misnamed := with(), with()
	elsewhere.namespace, misnamed.release = "default", "agent"
	tests := map[string]struct {
		command helm
		want    string
	}{
		"another namespace":    {elsewhere, "This chart must be installed in the cattle-fleet-system namespace"},
		"another release name": {misnamed, "This chart must be installed with release name fleet-agent"},
		"no URL":               {agent(valuesOfToken(t)), "apiServerURL is required to be set, and most likely also apiServerCA"},
		"URL without scheme": {with("apiServerURL=hub:6443"),
			`apiServerURL is "hub:6443", which is no address of an API server: it is https://, a host`},
		"URL with http":           {with("apiServerURL=http://hub:6443"), `which is no address of an API server`},
		"URL of the guide as is":  {with("apiServerURL=https://<API_URL>:6443"), `which is no address of an API server`},
		"URL with a user":         {with("apiServerURL=https://me:secret@hub"), `which is no address of an API server`},
		"CA that is neither":      {with("apiServerCA=..."), "apiServerCA is neither PEM (-----BEGIN CERTIFICATE-----) nor base64 of PEM"},
		"CA that is base64 twice": {with("apiServerCA=" + base64.StdEncoding.EncodeToString([]byte(good[1]))), "apiServerCA is neither PEM"},
		"unknown TLS mode":        {with("agentTLSMode=lax"), `agentTLSMode is "lax": set it to strict`},
		"strict without a CA":     {with("agentTLSMode=strict", "apiServerCA="), "agentTLSMode is strict, so apiServerCA is required"},
		"no token": {agent("", good...),
			"token is required to be set to a registration token; its values.yaml comes from the hub: kubectl -n clusters get secret"},
		"token that is cut": {agent("", append(good, "token=eyJhbGciOi")...),
			"clusterNamespace is required to be set, because the token does not name its workspace"},
		"token of something else": {agent("", append(good, "token="+jwt(t, map[string]any{"sub": "me"}))...),
			"clusterNamespace is required to be set"},
		"token of no JSON": {agent("", append(good, "token=a.b.c")...), "clusterNamespace is required to be set"},
		"token that has expired": {with("token=" + jwt(t, map[string]any{"exp": 1600000000})),
			"the token has expired at 2020-09-13T12:26:40Z; create a new ClusterRegistrationToken"},
		"label with dots":          {with("labels.example.com/env=dev"), `labels.example is not a text: escape the dots`},
		"label key":                {with("labels._x=dev"), `labels: Kubernetes refuses the key "_x"`},
		"label prefix":             {with("labels.UP/x=dev"), `labels: Kubernetes refuses the key "UP/x"`},
		"label value":              {with("labels.env=a b"), `labels: Kubernetes refuses the value "a b" of env`},
		"label value too long":     {with("labels.env=" + strings.Repeat("x", 64)), `labels: Kubernetes refuses the value`},
		"duration without unit":    {with("garbageCollectionInterval=15"), "garbageCollectionInterval"},
		"duration that is none":    {with("garbageCollectionInterval=soon"), "garbageCollectionInterval"},
		"labels that are a text":   {with("labels=env"), "labels"},
		"a token and a kubeconfig": {with("hubKubeconfig.secret=cloud"), "token and hubKubeconfig.secret exclude each other"},
		"a kubeconfig without a workspace": {agent("", append(good, "hubKubeconfig.secret=cloud", "tokenName=t")...),
			"clusterNamespace is required to be set with hubKubeconfig.secret"},
		"a kubeconfig without a token's name": {agent("", append(good, "hubKubeconfig.secret=cloud", "clusterNamespace=clusters")...),
			"tokenName is required to be set with hubKubeconfig.secret"},
		"a kubeconfig in a Secret of no name": {agent("", append(good, "hubKubeconfig.secret=A")...), "hubKubeconfig"},
		"token that is a list":                {with("token={a,b}"), "token"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.command.render(t)
			if err == nil {
				t.Fatal("it was rendered")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
			if strings.Contains(err.Error(), "signature") || strings.Contains(err.Error(), "eyJ") {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

func TestExpiredTokenDoesNotStopAnUpgrade(t *testing.T) {
	command := agent("", "apiServerURL=https://hub", "clusterNamespace=clusters", "token="+jwt(t, map[string]any{"exp": 1600000000}))
	command.upgrade = true
	command.mustRender(t)
}

func TestNewTokenRestartsTheAgent(t *testing.T) {
	checksum := func(set ...string) string {
		out := agent(valuesOfToken(t), append(set, "apiServerURL=https://hub")...).mustRender(t)
		sum, _, _ := unstructured.NestedString(out.object(t, "Deployment", "fleet-agent").Object,
			"spec", "template", "metadata", "annotations", "fleet.cattle.io/config-checksum")
		return sum
	}
	first := checksum()
	if again := checksum(); again != first || first == "" {
		t.Errorf("the same values gave %q and %q", first, again)
	}
	if other := checksum("token=" + jwt(t, map[string]any{"sub": "other"})); other == first {
		t.Error("another token gave the same pod template")
	}
}

func TestATokenThatWasUsedDoesNotComeBackByTheHubAndAnotherOneIsGiven(t *testing.T) {
	const hub = "apiServerURL=https://hub"
	old := valuesOfToken(t)
	var values struct{ Token string }
	if err := yaml.Unmarshal([]byte(old), &values); err != nil {
		t.Fatal(err)
	}
	joined := fmt.Sprintf("internal.joinedWith=%x", sha256.Sum256([]byte(values.Token)))
	another := jwt(t, map[string]any{"sub": "system:serviceaccount:other:new-token-1"})
	for name, row := range map[string]struct {
		command helm
		token   string
	}{
		"the user installs":                                      {agent(old, hub), values.Token},
		"the user upgrades with the same values":                 {agent(old, hub), values.Token},
		"the hub upgrades":                                       {agent(old, hub, joined), ""},
		"the user upgrades, reusing the values and the hub's":    {agent(old, hub, joined), ""},
		"the user upgrades with another token, reusing the rest": {agent(old, hub, joined, "token="+another, "clusterNamespace="), another},
	} {
		t.Run(name, func(t *testing.T) {
			out := row.command.mustRender(t)
			for _, said := range []string{"creates no Secret fleet-agent-bootstrap", "--reset-then-reuse-values --values values.yaml"} {
				if strings.Contains(out.notes, said) != (row.token == "") {
					t.Errorf("the notes have %q, or have it not:\n%s", said, out.notes)
				}
			}
			if row.token == "" {
				for _, object := range out.objects {
					if object.GetName() == "fleet-agent-bootstrap" {
						t.Error("the token comes back")
					}
				}
				return
			}
			if got := out.secretData(t, "fleet-agent-bootstrap")["token"]; got != row.token {
				t.Errorf("the agent is given the token %q", got)
			}
		})
	}
}

// Helm 4 waits, with --wait, until every object of a release is there, and this one goes as soon as
// the agent has joined.
func TestWhatTheAgentDeletesIsNotWaitedFor(t *testing.T) {
	out := agent(valuesOfToken(t), "apiServerURL=https://hub").mustRender(t)
	for _, object := range out.objects {
		hook := object.GetAnnotations()["helm.sh/hook"]
		if deleted := object.GetName() == "fleet-agent-bootstrap"; deleted != (hook == "pre-install,pre-upgrade") {
			t.Errorf("%s %s has the hook %q", object.GetKind(), object.GetName(), hook)
		}
	}
}

func TestAgentChartRendersThisAndNoMore(t *testing.T) {
	out := agent(valuesOfToken(t), "apiServerURL=https://hub").mustRender(t)
	var got []string
	for _, object := range out.objects {
		got = append(got, object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName())
	}
	want := []string{
		"CustomResourceDefinition /appliedworks.placement.kubernetes-fleet.io",
		"ConfigMap cattle-fleet-system/fleet-agent",
		"Secret cattle-fleet-system/fleet-agent-bootstrap",
		"Deployment cattle-fleet-system/fleet-agent",
		"NetworkPolicy cattle-fleet-system/default-allow-all",
		"ServiceAccount cattle-fleet-system/fleet-agent",
		"Role cattle-fleet-system/fleet-agent",
		"RoleBinding cattle-fleet-system/fleet-agent",
		"ClusterRole /fleet-agent-system-fleet-agent-role",
		"ClusterRoleBinding /fleet-agent-system-fleet-agent-role-binding",
		"ClusterRole /fleet-agent-delivery",
		"ClusterRoleBinding /fleet-agent-delivery",
		"ServiceAccount cattle-fleet-system/fleet-agent-test",
		"Role cattle-fleet-system/fleet-agent-test",
		"RoleBinding cattle-fleet-system/fleet-agent-test",
		"Pod cattle-fleet-system/fleet-agent-test",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	labels, _, _ := unstructured.NestedStringMap(out.object(t, "Deployment", "fleet-agent").Object, "spec", "template", "metadata", "labels")
	if diff := cmp.Diff(map[string]string{"app": "fleet-agent", "app.kubernetes.io/name": "fleet-agent",
		"app.kubernetes.io/instance":  "fleet-agent",
		"app.kubernetes.io/component": "agent", "app.kubernetes.io/part-of": "muster"}, labels); diff != "" {
		t.Errorf("pod labels (-want +got):\n%s", diff)
	}
}

// TestAnAgentCanRemoveEveryKindOfItsChart leaves out what Helm removes itself.
func TestAnAgentCanRemoveEveryKindOfItsChart(t *testing.T) {
	for name, objects := range map[string][]unstructured.Unstructured{
		"fleet-agent": agent(valuesOfToken(t), "apiServerURL=https://hub", "fleetAgent.priorityClass.value=1",
			"fleetAgent.podDisruptionBudget.minAvailable=1", "facts.configMap=facts").mustRender(t).objects,
		"member-agent": member("facts.configMap=facts").mustRender(t).objects,
	} {
		for _, object := range objects {
			if hook := object.GetAnnotations()["helm.sh/hook"]; hook != "test" && !uninstall.Removes(object.GetKind()) {
				t.Errorf("%s: an agent that removes itself leaves %s %s", name, object.GetKind(), object.GetName())
			}
		}
	}
}

func TestAgentThatDoesNotDeliverGetsNoRightToAndIsTold(t *testing.T) {
	out := agent(valuesOfToken(t), "apiServerURL=https://hub", "fleetAgent.delivery=false").mustRender(t)
	for _, object := range out.objects {
		if object.GetName() == "fleet-agent-delivery" {
			t.Errorf("there is a %s fleet-agent-delivery", object.GetKind())
		}
	}
	pod, _, _ := unstructured.NestedMap(out.object(t, "Deployment", "fleet-agent").Object, "spec", "template", "spec")
	container := pod["containers"].([]any)[0].(map[string]any)
	told := slices.ContainsFunc(container["env"].([]any), func(entry any) bool {
		return cmp.Equal(entry, map[string]any{"name": "DELIVERY", "value": "false"})
	})
	if !told {
		t.Errorf("environment %v", container["env"])
	}
}

func TestRetiredValuesAreNamedAndIgnored(t *testing.T) {
	out := agent(valuesOfToken(t), "apiServerURL=https://hub", "kubectl.tag=x", "image.os=linux", "agent.replicas=2",
		"leaderElection.leaseDuration=1s").mustRender(t)
	want := "ignores them: agent, image.os, kubectl, leaderElection"
	if !strings.Contains(out.notes, want) {
		t.Errorf("notes do not say %q:\n%s", want, out.notes)
	}
	if quiet := agent(valuesOfToken(t), "apiServerURL=https://hub").mustRender(t).notes; strings.Contains(quiet, "ignored") {
		t.Errorf("notes complain about nothing:\n%s", quiet)
	}
}

func TestNotesNameTheWorkspace(t *testing.T) {
	token := jwt(t, map[string]any{"sub": "system:serviceaccount:clusters:new-token-1"})
	for _, set := range []string{"token=" + token, "clusterNamespace=clusters"} {
		out := agent("token: opaque", "apiServerURL=https://hub", set).mustRender(t)
		if want := "kubectl -n clusters get clusterregistrations"; !strings.Contains(out.notes, want) {
			t.Errorf("with %.20s the notes do not say %q:\n%s", set, want, out.notes)
		}
	}
}

func TestAgentOptionsReachThePod(t *testing.T) {
	out := agent(valuesOfToken(t)+`
global: {cattle: {systemDefaultRegistry: registry.example.com/}, imagePullSecrets: [one, {name: two}]}
image: {tag: 1.2.3}
proxy: http://proxy:3128
fleetAgent:
  hostNetwork: true
  priorityClassName: high
  nodeSelector: {kubernetes.io/os: windows, disk: ssd}
  tolerations: [{key: a, operator: Exists}]
disableSecurityContext: true
`, "apiServerURL=https://hub").mustRender(t)
	pod, _, _ := unstructured.NestedMap(out.object(t, "Deployment", "fleet-agent").Object, "spec", "template", "spec")
	container := pod["containers"].([]any)[0].(map[string]any)
	delete(pod, "containers")
	want := map[string]any{
		"serviceAccount":               "fleet-agent",
		"serviceAccountName":           "fleet-agent",
		"automountServiceAccountToken": true,
		"imagePullSecrets":             []any{map[string]any{"name": "one"}, map[string]any{"name": "two"}},
		"hostNetwork":                  true,
		// Helm gives up a hook after five minutes; until then the agent that is replaced waits for it.
		"terminationGracePeriodSeconds": float64(330),
		"dnsPolicy":                     "ClusterFirstWithHostNet",
		"priorityClassName":             "high",
		"nodeSelector":                  map[string]any{"kubernetes.io/os": "linux", "disk": "ssd"},
		"tolerations":                   []any{map[string]any{"key": "a", "operator": "Exists"}},
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	if got := container["image"]; got != "registry.example.com/muster-agent:1.2.3" {
		t.Errorf("image %q", got)
	}
	environment := map[string]any{}
	for _, entry := range container["env"].([]any) {
		entry := entry.(map[string]any)
		environment[entry["name"].(string)] = entry["value"]
	}
	if environment["HTTPS_PROXY"] != "http://proxy:3128" || environment["NO_PROXY"] == "" {
		t.Errorf("environment %v", environment)
	}
}

// TestAKubeconfigOfTheHubIsReadFromOneSecretOfTheAgentsNamespace covers both charts.
func TestAKubeconfigOfTheHubIsReadFromOneSecretOfTheAgentsNamespace(t *testing.T) {
	const volumes = `extraVolumes: [{name: plugin, emptyDir: {}}]
extraVolumeMounts: [{name: plugin, mountPath: /plugin}]
initContainers: [{name: plugin, image: plugin}]
`
	forCluster := agent("fleetAgent:\n  "+strings.ReplaceAll(strings.TrimSpace(volumes), "\n", "\n  "), "apiServerURL=https://hub",
		"clusterNamespace=clusters", "tokenName=new-token", "hubKubeconfig.secret=cloud", "hubKubeconfig.context=hub")
	forMember := member("hubKubeconfig.secret=cloud", "hubKubeconfig.context=hub", "namespace=agents", "secret.namespace=default")
	forMember.values = volumes
	for chart, c := range map[string]struct {
		command         helm
		role, namespace string
	}{
		"fleet-agent":  {forCluster, "fleet-agent", "cattle-fleet-system"},
		"member-agent": {forMember, "member-agent-hub-token", "agents"},
	} {
		out := c.command.mustRender(t)
		role := out.object(t, "Role", c.role)
		rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
		reads := slices.ContainsFunc(rules, func(rule any) bool {
			return cmp.Equal(rule, any(map[string]any{"apiGroups": []any{""}, "resources": []any{"secrets"}, "resourceNames": []any{"cloud"},
				"verbs": []any{"get", "list", "watch"}}))
		})
		if !reads || role.GetNamespace() != c.namespace {
			t.Errorf("%s: the rules in %s are %v", chart, role.GetNamespace(), rules)
		}
		container := out.container(t, chart)
		env := environment(container)
		if env["HUB_KUBECONFIG_SECRET"] != "cloud" || env["HUB_KUBECONFIG_CONTEXT"] != "hub" {
			t.Errorf("%s: the environment is %v", chart, env)
		}
		pod, _, _ := unstructured.NestedMap(out.object(t, "Deployment", chart).Object, "spec", "template", "spec")
		if container["volumeMounts"] == nil || pod["volumes"] == nil || pod["initContainers"] == nil {
			t.Errorf("%s: the pod has no volume of the plugin: %v", chart, pod)
		}
	}
	forCluster.mustRender(t).object(t, "Secret", "fleet-agent-bootstrap")
}
