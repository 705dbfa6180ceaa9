package charts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/naming"
)

func TestWithoutAnAgentOfItsOwnTheHubHasNoInstaller(t *testing.T) {
	const installer = "fleet-controller-bootstrap"
	for _, set := range []string{"bootstrap.enabled=false", "bootstrap.localAgentDisabled=true"} {
		for _, object := range hub("", set).mustRender(t).objects {
			if object.GetName() == installer {
				t.Errorf("with %s there is a %s %s", set, object.GetKind(), installer)
			}
		}
	}
	out := hub("").mustRender(t)
	rules, _, _ := unstructured.NestedSlice(out.object(t, "Role", installer).Object, "rules")
	want := []any{map[string]any{
		"apiGroups": []any{""}, "resources": []any{"serviceaccounts/token"}, "resourceNames": []any{installer}, "verbs": []any{"create"},
	}}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("the hub may do with it (-want +got):\n%s", diff)
	}
}

func TestAHubThatOnlyRBACConfinesSaysSo(t *testing.T) {
	const warning = "Only RBAC limits the hub's account"
	for version, old := range map[string]bool{"v1.29.9": true, "v1.30.0-eks": false, "v1.36.0": false} {
		command := hub("")
		command.kube = version
		out := command.mustRender(t)
		confined := slices.ContainsFunc(out.objects, func(o unstructured.Unstructured) bool {
			return o.GetKind() == "ValidatingAdmissionPolicy" && o.GetName() == "muster-hub"
		})
		if confined == old || strings.Contains(out.notes, warning) != old {
			t.Errorf("%s: confined %t; notes:\n%s", version, confined, out.notes)
		}
	}
}

func TestThePolicyOfTheHubKnowsTheNamespaceOfAnswers(t *testing.T) {
	for _, system := range []string{"cattle-fleet-system", "hub", "a-system-b-system"} {
		command := hub("")
		command.namespace, command.kube = system, "v1.33.4-gke.1245000"
		text := fmt.Sprint(command.mustRender(t).object(t, "ValidatingAdmissionPolicy", "muster-hub").Object)
		for _, want := range []string{"'" + naming.RegistrationNamespace(system) + "'",
			"'system:serviceaccount:" + system + ":" + naming.HubServiceAccount + "'"} {
			if !strings.Contains(text, want) {
				t.Errorf("in %s the policy does not name %s", system, want)
			}
		}
	}
}

// TestNoRoleOfTheChartsWritesPolicies looks at the roles of the hub's chart: a tenant who writes a
// Policy can widen another one.
func TestNoRoleOfTheChartsWritesPolicies(t *testing.T) {
	seen := false
	for _, object := range hub("", "dashboard.enabled=true").mustRender(t).objects {
		if kind := object.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		for key := range object.GetLabels() {
			if strings.Contains(key, "aggregate-to-") {
				t.Errorf("%s %s adds to a role of users, by %s", object.GetKind(), object.GetName(), key)
			}
		}
		rules, _, err := unstructured.NestedSlice(object.Object, "rules")
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			fields := rule.(map[string]any)
			contains := func(field string, values ...string) bool {
				list, _ := fields[field].([]any)
				return slices.ContainsFunc(list, func(value any) bool { return slices.Contains(values, value.(string)) })
			}
			if !contains("apiGroups", "fleet.cattle.io", "*") || !contains("resources", "policies", "*") {
				continue
			}
			seen = true
			if contains("verbs", "create", "update", "patch", "delete", "deletecollection", "*") {
				t.Errorf("%s %s writes Policies: %v", object.GetKind(), object.GetName(), fields)
			}
		}
	}
	if !seen {
		t.Error("not even the hub reads Policies")
	}
}

// TestTheHubDeletesMemberClustersOnlyIfAsked renders each form that turns the removal off.
func TestTheHubDeletesMemberClustersOnlyIfAsked(t *testing.T) {
	for set, want := range map[string]bool{
		"": false, "lostMembers.removeAfter=0s": false, "lostMembers.removeAfter=null": false,
		"lostMembers=null": false, "lostMembers.removeAfter=24h": true,
	} {
		var options []string
		if set != "" {
			options = append(options, set)
		}
		role := hub("", options...).mustRender(t).object(t, "ClusterRole", "fleet-controller")
		rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
		may := slices.ContainsFunc(rules, func(rule any) bool {
			fields := rule.(map[string]any)
			return slices.Contains(fields["resources"].([]any), any("memberclusters")) && slices.Contains(fields["verbs"].([]any), any("delete"))
		})
		if may != want {
			t.Errorf("with %q the hub deletes MemberClusters: %t", set, may)
		}
	}
}
