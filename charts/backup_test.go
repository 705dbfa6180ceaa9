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
		"backup: {bucket: {prefix: hub}}":                         "backup.bucket.name is required",
		"backup: {bucket: {name: backups}, existingClaim: mine}":  "exclude each other",
		"backup: {bucket: {name: backups, endpoint: s3.local}}":   "which is no address of an S3 server",
		"backup: {bucket: {name: Backups}}":                       "pattern",
		"backup: {bucket: {name: backups, secretKey: abc}}":       "secretKey",
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

// TestBackupsInABucketHaveNoVolume takes the address of the server from the values, and only the
// credentials from the Secret.
func TestBackupsInABucketHaveNoVolume(t *testing.T) {
	out := hub(backedUp, "backup.bucket.name=backups", "backup.bucket.prefix=hub/eu", "backup.bucket.endpoint=https://s3.example.com:9000",
		"backup.bucket.region=eu-1", "backup.bucket.ca=PEM", "backup.bucket.credentialsSecret=s3", "backup.secretsFrom=null").mustRender(t)
	want := []string{"ClusterRole", "ClusterRoleBinding", "ConfigMap cattle-fleet-system", "CronJob cattle-fleet-system",
		"ServiceAccount cattle-fleet-system"}
	if diff := cmp.Diff(want, out.backups()); diff != "" {
		t.Errorf("the chart makes (-want +got):\n%s", diff)
	}
	pod, _, _ := unstructured.NestedMap(out.object(t, "CronJob", "fleet-backup").Object, "spec", "jobTemplate", "spec", "template", "spec")
	container := pod["containers"].([]any)[0].(map[string]any)
	args := []any{"backup", "--bucket=s3://backups/hub/eu", "--s3-endpoint=https://s3.example.com:9000", "--s3-region=eu-1",
		"--s3-ca-file=/ca/ca.crt", "--keep=48", "--recipient=age1qqqq", "--recipient=age1zzzz"}
	if diff := cmp.Diff(args, container["args"]); diff != "" {
		t.Errorf("it runs (-want +got):\n%s", diff)
	}
	var names []string
	for _, one := range container["env"].([]any) {
		variable := one.(map[string]any)
		names = append(names, fmt.Sprint(variable["name"]))
		from := "secretKeyRef:map[key:" + fmt.Sprint(variable["name"])
		if variable["value"] != nil || !strings.Contains(fmt.Sprint(variable["valueFrom"]), from) {
			t.Errorf("a variable is %v", variable)
		}
	}
	if diff := cmp.Diff([]string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}, names); diff != "" {
		t.Errorf("its variables (-want +got):\n%s", diff)
	}
	role := hub(backedUp, "backup.bucket.name=backups", `backup.serviceAccountAnnotations.role=arn`).mustRender(t)
	if account := role.object(t, "ServiceAccount", "fleet-backup"); account.GetAnnotations()["role"] != "arn" {
		t.Errorf("the account has the annotations %v", account.GetAnnotations())
	}
	job := fmt.Sprint(role.object(t, "CronJob", "fleet-backup").Object)
	for _, never := range []string{"AWS_", "volumes", "--s3-"} {
		if strings.Contains(job, never) {
			t.Errorf("without credentials, the CronJob has %s", never)
		}
	}
}
