package charts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// backedUp are values of a hub that takes backups.
const backedUp = "backup: {enabled: true, recipients: [age1qqqq, age1zzzz], secretsFrom: [clusters, team-a]}"

// backups are the kinds of what the chart makes for backups.
func (r release) backups() (made []string) {
	for _, o := range r.objects {
		if o.GetName() == "fleet-backup" {
			made = append(made, strings.TrimSuffix(o.GetKind()+" "+o.GetNamespace(), " "))
		}
	}
	slices.Sort(made)
	return made
}

func TestBackupsAreOffUnlessAskedFor(t *testing.T) {
	for name, values := range map[string][]string{"by default": nil, "without the values": {"backup=null"}} {
		if made := hub("", values...).mustRender(t).backups(); len(made) > 0 {
			t.Errorf("%s there are %v", name, made)
		}
	}
	want := []string{"ClusterRole", "ClusterRoleBinding", "CronJob cattle-fleet-system", "PersistentVolumeClaim cattle-fleet-system",
		"Role clusters", "Role team-a", "RoleBinding clusters", "RoleBinding team-a", "ServiceAccount cattle-fleet-system"}
	if diff := cmp.Diff(want, hub(backedUp).mustRender(t).backups()); diff != "" {
		t.Errorf("switched on (-want +got):\n%s", diff)
	}
	own := hub(backedUp, "backup.existingClaim=mine", "backup.secretsFrom=null").mustRender(t)
	for _, kind := range own.backups() {
		if strings.HasPrefix(kind, "PersistentVolumeClaim") || strings.HasPrefix(kind, "Role ") {
			t.Errorf("with a claim, and without Secrets, there is a %s", kind)
		}
	}
	if text := fmt.Sprint(own.object(t, "CronJob", "fleet-backup").Object); !strings.Contains(text, "claimName:mine") ||
		strings.Contains(text, "--secrets-from") {
		t.Errorf("the CronJob is %s", text)
	}
}

func TestABackupNeedsAKey(t *testing.T) {
	for values, want := range map[string]string{
		"backup: {enabled: true}":                                 "backup.recipients is required",
		"backup: {enabled: true, recipients: [AGE-SECRET-KEY-1]}": "recipients",
	} {
		if _, err := hub(values).render(t); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", values, err)
		}
	}
}

func TestTheAccountOfBackupsOnlyLists(t *testing.T) {
	out := hub(backedUp).mustRender(t)
	rules, _, _ := unstructured.NestedSlice(out.object(t, "ClusterRole", "fleet-backup").Object, "rules")
	for _, rule := range rules {
		rule := rule.(map[string]any)
		text := fmt.Sprint(rule["resources"])
		if verbs := fmt.Sprint(rule["verbs"]); verbs != "[list]" && fmt.Sprint(verbs, rule["resourceNames"]) != "[get][kube-system]" ||
			strings.Contains(text, "secrets") || strings.Contains(text, "*") || strings.Contains(text, "/") {
			t.Errorf("it may %v", rule)
		}
	}
	role, _, _ := unstructured.NestedSlice(out.object(t, "Role", "fleet-backup").Object, "rules")
	want := []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"secrets"}, "verbs": []any{"list"}}}
	if diff := cmp.Diff(want, role); diff != "" {
		t.Errorf("in a workspace (-want +got):\n%s", diff)
	}
	pod, _, _ := unstructured.NestedMap(out.object(t, "CronJob", "fleet-backup").Object, "spec", "jobTemplate", "spec", "template", "spec")
	container := pod["containers"].([]any)[0].(map[string]any)
	args := []any{"backup", "--directory=/backups", "--keep=48", "--recipient=age1qqqq", "--recipient=age1zzzz", "--secrets-from=clusters",
		"--secrets-from=team-a"}
	if diff := cmp.Diff(args, container["args"]); diff != "" || pod["serviceAccountName"] != "fleet-backup" {
		t.Errorf("it runs as %v (-want +got):\n%s", pod["serviceAccountName"], diff)
	}
}
