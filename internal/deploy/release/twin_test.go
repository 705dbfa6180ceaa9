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
		for _, object := range lastOfEach(objects, "shop") {
			got = append(got, fmt.Sprint(object.Object["data"].(map[string]any)["is"]))
		}
		if is := strings.Join(got, " "); is != c.want {
			t.Errorf("%s: %s, want %s", c.name, is, c.want)
		}
	}
}
