package charts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// dashboards are the kinds of what the chart makes for the dashboard.
func (r release) dashboards() (made []string) {
	for _, o := range r.objects {
		if o.GetName() == "fleet-dashboard" {
			made = append(made, o.GetKind())
		}
	}
	slices.Sort(made)
	return made
}

func TestTheDashboardIsOffUnlessAskedFor(t *testing.T) {
	for name, values := range map[string][]string{
		"by default": nil, "where helm upgrade --reuse-values takes the values of a chart that had none": {"dashboard=null"},
	} {
		if made := hub("", values...).mustRender(t).dashboards(); len(made) > 0 {
			t.Errorf("%s there are %v", name, made)
		}
	}
	want := []string{"ClusterRole", "ClusterRoleBinding", "Deployment", "NetworkPolicy", "Service", "ServiceAccount"}
	if diff := cmp.Diff(want, hub("", "dashboard.enabled=true").mustRender(t).dashboards()); diff != "" {
		t.Errorf("switched on (-want +got):\n%s", diff)
	}
}

func TestTheDashboardsMetricsArePortsOfPodsOnly(t *testing.T) {
	out := hub("networkPolicy: {metricsFrom: [{podSelector: {}}]}\ndashboard: {from: [{namespaceSelector: {}}]}", "dashboard.enabled=true",
		"monitoring.podMonitor.enabled=true", "monitoring.podMonitor.labels.release=prometheus").mustRender(t)
	port := func(name string) any { return []any{map[string]any{"port": name, "protocol": "TCP"}} }
	want := []any{
		map[string]any{"ports": port("http"), "from": []any{map[string]any{"namespaceSelector": map[string]any{}}}},
		map[string]any{"ports": port("metrics"), "from": []any{map[string]any{"podSelector": map[string]any{}}}},
	}
	ingress, _, _ := unstructured.NestedSlice(out.object(t, "NetworkPolicy", "fleet-dashboard").Object, "spec", "ingress")
	if diff := cmp.Diff(want, ingress); diff != "" {
		t.Errorf("who may connect to it (-want +got):\n%s", diff)
	}
	ports, _, _ := unstructured.NestedSlice(out.object(t, "Service", "fleet-dashboard").Object, "spec", "ports")
	if len(ports) != 1 || ports[0].(map[string]any)["targetPort"] != "http" {
		t.Errorf("the Service leads to %v", ports)
	}
	monitor := out.object(t, "PodMonitor", "fleet-dashboard")
	selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	labels, _, _ := out.podOf(t, "fleet-dashboard")
	if monitor.GetLabels()["release"] != "prometheus" || len(selector) == 0 || labels["app"] != selector["app"] {
		t.Errorf("the PodMonitor has the labels %v and selects %v", monitor.GetLabels(), selector)
	}
	listens, _, _ := unstructured.NestedSlice(map[string]any{"container": out.container(t, "fleet-dashboard")}, "container", "ports")
	if diff := cmp.Diff([]any{map[string]any{"name": "http", "containerPort": float64(8082)},
		map[string]any{"name": "metrics", "containerPort": float64(8080)}}, listens); diff != "" {
		t.Errorf("where it listens (-want +got):\n%s", diff)
	}
}

func TestTheDashboardsAccountOnlyListsAndWatches(t *testing.T) {
	out := hub("", "dashboard.enabled=true").mustRender(t)
	rules, _, _ := unstructured.NestedSlice(out.object(t, "ClusterRole", "fleet-dashboard").Object, "rules")
	for _, rule := range rules {
		rule := rule.(map[string]any)
		if diff := cmp.Diff([]any{"list", "watch"}, rule["verbs"]); diff != "" {
			t.Errorf("%v (-want +got):\n%s", rule["resources"], diff)
		}
		for _, resource := range rule["resources"].([]any) {
			if slices.Contains([]any{"*", "secrets", "serviceaccounts/token", "subjectaccessreviews", "tokenreviews"}, resource) {
				t.Errorf("it may read %v", resource)
			}
		}
	}
	subjects, _, _ := unstructured.NestedSlice(out.object(t, "ClusterRoleBinding", "fleet-dashboard").Object, "subjects")
	if len(subjects) != 1 || subjects[0].(map[string]any)["name"] != "fleet-dashboard" {
		t.Errorf("whose rights these are: %v", subjects)
	}
	_, _, pod := out.podOf(t, "fleet-dashboard")
	if pod["serviceAccountName"] != "fleet-dashboard" {
		t.Errorf("it runs as %v", pod["serviceAccountName"])
	}
}

func TestTheDashboardGetsItsProxiesAndItsLink(t *testing.T) {
	args := func(values string) []any {
		return hub(values, "dashboard.enabled=true").mustRender(t).container(t, "fleet-dashboard")["args"].([]any)
	}
	for _, arg := range args("") {
		if strings.Contains(arg.(string), "proxies") || strings.Contains(arg.(string), "grafana") {
			t.Errorf("by default it is started with %s", arg)
		}
	}
	if all := args("dashboard: {grafanaURL: 'https://grafana.example.com/d/muster'}"); !slices.Contains(all,
		any("--grafana-url=https://grafana.example.com/d/muster")) {
		t.Errorf("with a Grafana board, it is started with %v", all)
	}
	if all := args("dashboard: {trustedProxies: [10.0.0.0/8, 'fd00::/8']}"); !slices.Contains(all,
		any("--trusted-proxies=10.0.0.0/8,fd00::/8")) {
		t.Errorf("it is started with %v", all)
	}
}
