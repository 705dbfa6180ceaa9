package anyform

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTheCacheHoldsADigestOfWhatWasDeployed(t *testing.T) {
	status := func(name string) map[string]any {
		return map[string]any{"commit": "0123", "readyClusters": int64(2), "resources": []any{map[string]any{"name": name}}}
	}
	slim := func(status any) *unstructured.Unstructured {
		t.Helper()
		object := Object("GitRepo")
		object.Object["status"] = status
		for range 2 { // a cache may transform an object twice
			if _, err := Slim(object); err != nil {
				t.Fatal(err)
			}
		}
		return object
	}
	one := slim(status("a"))
	if kept := one.Object["status"].(map[string]any); len(kept) != 1 || kept["commit"] != "0123" {
		t.Errorf("the cache holds %v", kept)
	}
	if CachedDigest(one) == "" || CachedDigest(one) != DeployedDigest(status("a")) || CachedDigest(one) == CachedDigest(slim(status("b"))) {
		t.Errorf("the digest is %q", CachedDigest(one))
	}
	for _, nothing := range []any{nil, "text", map[string]any{}, map[string]any{"resources": []any{}, "readyClusters": int64(0),
		"resourceCounts": map[string]any{}}} {
		if digest := CachedDigest(slim(nothing)); digest != "" {
			t.Errorf("%v has the digest %s", nothing, digest)
		}
	}
}

func TestAPatchReplacesEachFieldOfOneObject(t *testing.T) {
	patch, err := DeployedPatch("1-2", map[string]any{"readyClusters": int64(2)})
	text := string(patch)
	if err != nil || strings.Count(text, `"op":"add"`) != len(deployedFields) {
		t.Errorf("%v: %s", err, text)
	}
	for _, part := range []string{`"path":"/metadata/uid","value":"1-2"`, `"path":"/status/readyClusters","value":2`,
		`"path":"/status/resources","value":[]`} {
		if !strings.Contains(text, part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
}
