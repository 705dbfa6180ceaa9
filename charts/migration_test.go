package charts_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// rancherValues are the values of Rancher Fleet's chart fleet-agent.
const rancherValues = `
image: {os: "windows,linux", repository: rancher/fleet-agent, tag: v0.16.1}
apiServerURL: https://hub:6443
apiServerCA: ""
agentTLSMode: system-store
garbageCollectionInterval: 15m
tokenName: ""
clientID: ""
noProxy: 127.0.0.0/8
internal: {systemNamespace: cattle-fleet-system, managedReleaseName: fleet-agent}
fleetAgent: {nodeSelector: {disk: ssd}, tolerations: [], hostNetwork: false}
kubectl: {}
global: {cattle: {systemDefaultRegistry: registry.example.com}}
debug: false
disableSecurityContext: false
agent: {replicas: 1}
leaderElection: {leaseDuration: 30s}
`

func TestValuesReusedOfTheChartOfRancherFleetRunOurAgentWithItsDefaults(t *testing.T) {
	command := agent(valuesOfToken(t))
	command.reused, command.upgrade = rancherValues, true
	out := command.mustRender(t)
	container := out.container(t, "fleet-agent")
	limits, _, _ := unstructured.NestedString(container, "resources", "limits", "memory")
	if container["image"] != "registry.example.com/muster-agent:0.1.0" || container["imagePullPolicy"] != "IfNotPresent" || limits != "512Mi" {
		t.Errorf("it runs %v, %v, with a limit of %q", container["image"], container["imagePullPolicy"], limits)
	}
	if env := environment(container); env["DELIVERY"] != nil {
		t.Error("it does not deploy")
	}
	out.object(t, "ClusterRole", "fleet-agent-delivery")
	if !strings.Contains(out.notes, "rancher/fleet-agent:v0.16.1, the image of Rancher Fleet's agent") {
		t.Errorf("the notes are %s", out.notes)
	}
	command.set = []string{"image.repository=private/muster-agent", "image.tag=v2", "fleetAgent.delivery=false", "fleetAgent.resources=null"}
	out = command.mustRender(t)
	if container := out.container(t, "fleet-agent"); container["image"] != "registry.example.com/private/muster-agent:v2" ||
		environment(container)["DELIVERY"] != "false" {
		t.Errorf("what the user sets does not count: %v", container)
	}
}

// An upgrade from a chart that has the Secret as an ordinary object deletes it unless it is kept;
// one to such a chart takes over only what is marked as the release's.
func TestTheBootstrapSecretOutlivesAnUpgradeFromAnotherChartAndDoesNotBlockOneToIt(t *testing.T) {
	secret := agent(valuesOfToken(t), "apiServerURL=https://hub").mustRender(t).object(t, "Secret", "fleet-agent-bootstrap")
	for key, want := range map[string]string{
		"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/resource-policy": "keep",
		"meta.helm.sh/release-name": "fleet-agent", "meta.helm.sh/release-namespace": "cattle-fleet-system",
	} {
		if got := secret.GetAnnotations()[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if got := secret.GetLabels()["app.kubernetes.io/managed-by"]; got != "Helm" {
		t.Errorf("it is managed by %q", got)
	}
}

// Helm never installs what is in crds/ by an upgrade.
func TestBothAgentsChartsInstallAppliedWorkByUpgradesWhereNobodyHas(t *testing.T) {
	const name = "appliedworks.placement.kubernetes-fleet.io"
	for chart, command := range map[string]helm{"fleet-agent": agent(valuesOfToken(t), "apiServerURL=https://hub"), "member-agent": member()} {
		command.upgrade = true
		for owner, want := range map[string]bool{"nobody": true, "": false, "another": false, command.release: true} {
			command.cluster = nil
			if owner != "nobody" {
				definition := &unstructured.Unstructured{}
				definition.SetAPIVersion("apiextensions.k8s.io/v1")
				definition.SetKind("CustomResourceDefinition")
				definition.SetName(name)
				definition.SetAnnotations(map[string]string{"meta.helm.sh/release-name": owner, "meta.helm.sh/release-namespace": command.namespace})
				command.cluster = []runtime.Object{definition}
			}
			rendered := slices.ContainsFunc(command.mustRender(t).objects, func(o unstructured.Unstructured) bool { return o.GetName() == name })
			if rendered != want {
				t.Errorf("chart %s, where the definition is of %q: rendered %t", chart, owner, rendered)
			}
		}
	}
}
