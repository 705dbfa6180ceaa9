package charts_test

import (
	"slices"
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
	for name, values := range map[string][]string{"by default": nil, "where helm upgrade --reuse-values takes the values of a chart that had none": {"dashboard=null"}} {
		if made := hub("", values...).mustRender(t).dashboards(); len(made) > 0 {
			t.Errorf("%s there are %v", name, made)
		}
	}
	want := []string{"ClusterRole", "ClusterRoleBinding", "Deployment", "NetworkPolicy", "Service", "ServiceAccount"}
	if diff := cmp.Diff(want, hub("", "dashboard.enabled=true").mustRender(t).dashboards()); diff != "" {
		t.Errorf("switched on (-want +got):\n%s", diff)
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
