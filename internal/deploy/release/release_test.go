package release

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConflictIsReadOutOfHelmsError(t *testing.T) {
	for text, want := range map[string]*Conflict{
		`unable to continue with install: ConfigMap "shared" in namespace "web" exists and cannot be imported into the current release: invalid ownership metadata; ` +
			`annotation validation error: key "meta.helm.sh/release-name" must equal "b": current value is "a"`: {Kind: "ConfigMap", Namespace: "web", Name: "shared", Release: ID{"web", "a"}},
		`unable to continue with install: ClusterRole "x" in namespace "" exists and cannot be imported into the current release: invalid ownership metadata; ` +
			`annotation validation error: key "meta.helm.sh/release-namespace" must equal "web": current value is "db"`: {Kind: "ClusterRole", Name: "x", Release: ID{"db", "b"}},
		`unable to continue with update: ClusterRole "x" in namespace "" exists and cannot be imported into the current release: invalid ownership metadata; ` +
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
