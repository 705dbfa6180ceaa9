package release

import (
	"fmt"
	"strings"
	"testing"
)

func TestOfObjectsWithOneNameTheLastIsTaken(t *testing.T) {
	of := func(apiVersion, kind, namespace, name, more string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {namespace: '" + namespace + "', " + name +
			"}\ndata: {is: " + more + "}\n"
	}
	for _, c := range []struct {
		name      string
		manifests []string
		want      string
	}{
		{"one after the other", []string{of("v1", "ConfigMap", "", "name: a", "1"), of("v1", "Secret", "", "name: a", "2"),
			of("v1", "ConfigMap", "", "name: a", "3")}, "2 3"},
		{"three", []string{of("v1", "ConfigMap", "", "name: a", "1"), of("v1", "ConfigMap", "", "name: a", "2"),
			of("v1", "ConfigMap", "", "name: a", "3")}, "3"},
		{"with and without the release's namespace",
			[]string{of("v1", "ConfigMap", "shop", "name: a", "1"), of("v1", "ConfigMap", "", "name: a", "2")}, "2"},
		{"in another namespace", []string{of("v1", "ConfigMap", "db", "name: a", "1"), of("v1", "ConfigMap", "", "name: a", "2")}, "1 2"},
		{"in two versions of a kind", []string{of("a/v1", "A", "", "name: a", "1"), of("a/v2", "A", "", "name: a", "2")}, "2"},
		{"kinds of two groups", []string{of("a/v1", "A", "", "name: a", "1"), of("b/v1", "A", "", "name: a", "2")}, "1 2"},
		{"with generated names", []string{of("v1", "ConfigMap", "", "generateName: a", "1"), of("v1", "ConfigMap", "", "generateName: a", "2")},
			"1 2"},
		{"hooks", []string{
			of("v1", "ConfigMap", "", "name: a, annotations: {helm.sh/hook: pre-install}", "1"),
			of("v1", "ConfigMap", "", "name: a, annotations: {helm.sh/hook: post-install}", "2"), of("v1", "ConfigMap", "", "name: a", "3"),
		}, "1 2 3"},
	} {
		objects, err := parse([]byte(strings.Join(c.manifests, "---\n")))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		last, repeated := lastOfEach(objects, "shop")
		for _, object := range last {
			got = append(got, fmt.Sprint(object.Object["data"].(map[string]any)["is"]))
		}
		if is := strings.Join(got, " "); is != c.want {
			t.Errorf("%s: %s, want %s", c.name, is, c.want)
		}
		if (len(last) < len(objects)) != (len(repeated) > 0) {
			t.Errorf("%s: %d of %d objects are left out, and %q are named", c.name, len(objects)-len(last), len(objects), repeated)
		}
	}
}

func TestRepeatedObjectsAreNamedIfTheirContentsDiffer(t *testing.T) {
	of := func(file, value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {" + annotationFile + ": " + file + "}}\ndata: {b: '" +
			value + "'}\n"
	}
	for name, c := range map[string]struct {
		manifests []string
		want      string
	}{
		"once":                     {[]string{of("a.yaml", "1")}, ""},
		"twice the same":           {[]string{of("a.yaml", "1"), of("b.yaml", "1")}, ""},
		"with other content":       {[]string{of("a.yaml", "1"), of("b.yaml", "2")}, "ConfigMap shop/a"},
		"three times, two of them": {[]string{of("a.yaml", "1"), of("b.yaml", "3"), of("c.yaml", "3")}, "ConfigMap shop/a"},
	} {
		objects, err := parse([]byte(strings.Join(c.manifests, "---\n")))
		if err != nil {
			t.Fatal(err)
		}
		if _, repeated := lastOfEach(objects, "shop"); strings.Join(repeated, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, repeated, c.want)
		}
	}
}
