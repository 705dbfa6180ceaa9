package release

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestConflictIsReadOutOfHelmsError(t *testing.T) {
	for text, want := range map[string]*Conflict{
		`unable to continue with install: ConfigMap "shared" in namespace "web" exists and cannot be imported into the current release: ` +
			`invalid ownership metadata; ` +
			`annotation validation error: key "meta.helm.sh/release-name" must equal "b": current value is "a"`: {
			Kind: "ConfigMap", Namespace: "web", Name: "shared", Release: ID{"web", "a"},
		},
		`unable to continue with install: ClusterRole "x" in namespace "" exists and cannot be imported into the current release: invalid ` +
			`ownership metadata; ` +
			`annotation validation error: key "meta.helm.sh/release-namespace" must equal "web": current value is "db"`: {
			Kind: "ClusterRole", Name: "x", Release: ID{"db", "b"},
		},
		`unable to continue with update: ClusterRole "x" in namespace "" exists and cannot be imported into the current release: invalid ` +
			`ownership metadata; ` +
			`label validation error: missing key "app.kubernetes.io/managed-by": must be set to "Helm"`: {Kind: "ClusterRole", Name: "x"},
		"something else": nil,
	} {
		got, ok := ConflictIn(errors.New(text), ID{"web", "b"})
		if !ok && want != nil || ok && (want == nil || got != *want) {
			t.Errorf("%s: got %+v, %t", text, got, ok)
		}
	}
}

func TestManifestIsTakenApart(t *testing.T) {
	objects, err := parse([]byte("---\n# nothing\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n---\n" +
		"kind: List\napiVersion: v1\nitems:\n- {kind: Secret, apiVersion: v1, metadata: {name: b}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.GetKind()+" "+object.GetName())
	}
	if diff := cmp.Diff([]string{"ConfigMap a", "Secret b"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHookThatOutlivesItsRelease(t *testing.T) {
	for name, row := range map[string]struct {
		kind, hook, policy string
		stays              bool
	}{
		"a claim":                                {"v1 PersistentVolumeClaim", "pre-install", "", true},
		"a claim that Helm makes anew each run":  {"v1 PersistentVolumeClaim", "pre-install,pre-upgrade", "before-hook-creation", true},
		"a claim that goes if it fails":          {"v1 PersistentVolumeClaim", "pre-install", "before-hook-creation,hook-failed", true},
		"a claim that goes if it succeeds":       {"v1 PersistentVolumeClaim", "pre-install", "before-hook-creation, Hook-Succeeded", false},
		"a claim that is handed over":            {"v1 PersistentVolumeClaim", "pre-install", neverDeleted, true},
		"a claim that is no hook":                {"v1 PersistentVolumeClaim", "", "", false},
		"a secret":                               {"v1 Secret", "pre-install", "", true},
		"a namespace":                            {"v1 Namespace", "pre-install", "", true},
		"a definition, which Helm never deletes": {"apiextensions.k8s.io/v1 CustomResourceDefinition", "pre-install", "hook-succeeded", true},
		"a job":                                  {"batch/v1 Job", "pre-install", "", false},
		"another group's Secret":                 {"example.com/v1 Secret", "pre-install", "", false},
		"a ServiceAccount":                       {"v1 ServiceAccount", "pre-install", "", false},
	} {
		version, kind, _ := strings.Cut(row.kind, " ")
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind,
			"metadata": map[string]any{"annotations": map[string]any{
				"helm.sh/hook": row.hook, "helm.sh/hook-delete-policy": row.policy,
			}}}}
		if outlives(object) != row.stays {
			t.Errorf("%s: it does not say %t", name, row.stays)
		}
	}
}

func TestHooksThatHaveEnded(t *testing.T) {
	job := func(condition string) map[string]any {
		return map[string]any{"apiVersion": "batch/v1", "kind": "Job", "status": map[string]any{"conditions": []any{
			map[string]any{"type": "Suspended", "status": "False"}, map[string]any{"type": condition, "status": "True"},
		}}}
	}
	pod := func(phase string) map[string]any {
		return map[string]any{"kind": "Pod", "status": map[string]any{"phase": phase}}
	}
	for name, row := range map[string]struct {
		object        map[string]any
		ended, failed bool
	}{
		"a Job that nobody has begun": {map[string]any{"apiVersion": "batch/v1", "kind": "Job"}, false, false},
		"a Job about to succeed":      {job("SuccessCriteriaMet"), false, false},
		"a Job about to fail":         {job("FailureTarget"), false, false},
		"a Job that has succeeded":    {job("Complete"), true, false},
		"a Job that has failed":       {job("Failed"), true, true},
		"a Pod that runs":             {pod("Running"), false, false},
		"a Pod that has succeeded":    {pod("Succeeded"), true, false},
		"a Pod that has failed":       {pod("Failed"), true, true},
		"what does not run":           {map[string]any{"kind": "ConfigMap"}, true, false},
	} {
		object := &unstructured.Unstructured{Object: row.object}
		if hasEnded(object) != row.ended || hasFailed(object) != row.failed {
			t.Errorf("%s: ended %t, failed %t", name, hasEnded(object), hasFailed(object))
		}
	}
}
