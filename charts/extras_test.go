package charts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podOf returns the labels and the annotations of the Pods of a Deployment, and their spec.
func (r release) podOf(t *testing.T, deployment string) (labels, annotations map[string]string, spec map[string]any) {
	t.Helper()
	object := r.object(t, "Deployment", deployment).Object
	labels, _, _ = unstructured.NestedStringMap(object, "spec", "template", "metadata", "labels")
	annotations, _, _ = unstructured.NestedStringMap(object, "spec", "template", "metadata", "annotations")
	spec, _, _ = unstructured.NestedMap(object, "spec", "template", "spec")
	return labels, annotations, spec
}

func TestPodsHaveTheLabelsThatKubernetesRecommendsAndTheUsers(t *testing.T) {
	recommended := func(name, component, app string) map[string]string {
		return map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/instance": name, "app.kubernetes.io/component": component,
			"app.kubernetes.io/part-of": "muster",
			"app":                       app, "team": "a"}
	}
	for deployment, c := range map[string]struct {
		chart helm
		want  map[string]string
	}{
		"fleet-controller": {hub("", "extraLabels.team=a", "extraLabels.app=mine"), recommended("fleet", "hub", "fleet-controller")},
		"fleet-agent": {agent(valuesOfToken(t)+"apiServerURL: https://hub:6443\n", "fleetAgent.podLabels.team=a",
			"fleetAgent.podLabels.app=mine"), recommended("fleet-agent", "agent", "fleet-agent")},
		"member-agent": {member("podLabels.team=a", `podLabels.app\.kubernetes\.io/name=mine`),
			map[string]string{"app.kubernetes.io/name": "member-agent", "app.kubernetes.io/instance": "member-agent",
				"app.kubernetes.io/component": "agent", "app.kubernetes.io/part-of": "muster", "team": "a"}},
	} {
		out := c.chart.mustRender(t)
		labels, _, _ := out.podOf(t, deployment)
		if diff := cmp.Diff(c.want, labels); diff != "" {
			t.Errorf("%s (-want +got):\n%s", deployment, diff)
		}
		selector, _, _ := unstructured.NestedStringMap(out.object(t, "Deployment", deployment).Object, "spec", "selector", "matchLabels")
		for key, value := range selector { // which no release may change
			if labels[key] != value {
				t.Errorf("%s selects %s=%s, and its Pods have %s", deployment, key, value, labels[key])
			}
		}
	}
}

func TestAgentsTakeWhatAClusterAsksOfPods(t *testing.T) {
	for deployment, c := range map[string]struct {
		chart   helm
		account string
	}{
		"fleet-agent": {agent(valuesOfToken(t)+"apiServerURL: https://hub:6443\n", "proxy=http://proxy:3128", "fleetAgent.priorityClassName=high",
			"fleetAgent.extraEnv[0].name=A", "fleetAgent.extraEnv[0].value=b",
			"fleetAgent.podAnnotations.note=x", `fleetAgent.podAnnotations.fleet\.cattle\.io/config-checksum=mine`,
			"fleetAgent.serviceAccount.annotations.role=r"), "fleet-agent"},
		"member-agent": {member("proxy=http://proxy:3128", "priorityClassName=high", "extraEnv[0].name=A", "extraEnv[0].value=b",
			"podAnnotations.note=x",
			"serviceAccount.annotations.role=r"), "member-agent-sa"},
	} {
		out := c.chart.mustRender(t)
		_, annotations, spec := out.podOf(t, deployment)
		env := environment(out.container(t, deployment))
		if env["A"] != "b" || env["HTTPS_PROXY"] != "http://proxy:3128" ||
			!strings.HasPrefix(env["NO_PROXY"].(string), "$(KUBERNETES_SERVICE_HOST),::1,fc00::/7,127.0.0.0/8,") {
			t.Errorf("%s has the environment %v", deployment, env)
		}
		if spec["priorityClassName"] != "high" || annotations["note"] != "x" || annotations["fleet.cattle.io/config-checksum"] == "mine" {
			t.Errorf("%s has the priority class %v and the annotations %v", deployment, spec["priorityClassName"], annotations)
		}
		if account := out.object(t, "ServiceAccount", c.account); account.GetAnnotations()["role"] != "r" {
			t.Errorf("%s has the annotations %v", c.account, account.GetAnnotations())
		}
	}
	if _, err := member("podLabels.team=1").render(t); err == nil || !strings.Contains(err.Error(), "podLabels") {
		t.Errorf("a label that is a number: %v", err)
	}
}

func TestAgentsAreProbedEachSecondOnlyUntilTheyHaveJoined(t *testing.T) {
	for deployment, chart := range map[string]helm{
		"fleet-agent":  agent(valuesOfToken(t) + "apiServerURL: https://hub:6443\n"),
		"member-agent": member(),
	} {
		container := chart.mustRender(t).container(t, deployment)
		probe := func(name string, fields ...string) any {
			value, _, _ := unstructured.NestedFieldNoCopy(container, append([]string{name}, fields...)...)
			return value
		}
		got := map[string]any{
			"startup": probe("startupProbe", "httpGet", "path"), "each": probe("startupProbe", "periodSeconds"),
			"for":       probe("startupProbe", "failureThreshold"),
			"readiness": probe("readinessProbe", "httpGet", "path"), "then each": probe("readinessProbe", "periodSeconds"),
		}
		want := map[string]any{"startup": "/healthz?until=joined", "each": 1.0, "for": 120.0, "readiness": "/readyz", "then each": 10.0}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", deployment, diff)
		}
	}
}
