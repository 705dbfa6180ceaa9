package scan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// files are texts by path, or by the name of a Bundle.
type (
	files = map[string]string
	spec  = fleet.GitRepoSpec
)

// tree is a repository in memory. A file without content has a ConfigMap.
func tree(content files) Tree {
	return Tree{Paths: slices.Sorted(maps.Keys(content)), Read: func(path string) ([]byte, error) {
		text, found := content[path]
		if !found {
			return nil, fmt.Errorf("%s was read, which does not exist", path)
		}
		if text == "" {
			text = configMap
		}
		return []byte(text), nil
	}}
}

func repo(spec fleet.GitRepoSpec) *fleet.GitRepo {
	return &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "repo", Labels: files{"team": "a"}}, Spec: spec}
}

// shape is the names of Bundles with the names of their files.
func shape(bundles []*fleet.Bundle) map[string]string {
	all := map[string]string{}
	for _, b := range bundles {
		var names []string
		for _, r := range b.Spec.Resources {
			names = append(names, r.Name)
		}
		all[b.Name] = strings.Join(names, " ")
	}
	return all
}

func TestDirectoriesBecomeBundles(t *testing.T) {
	for name, row := range map[string]struct {
		files map[string]string
		spec  spec
		want  map[string]string
	}{
		"the root": {files{"a.yaml": "", "b/c.yml": "", "b/README.md": "text", ".git/config.yaml": ""}, spec{},
			files{"repo": "a.yaml b/README.md b/c.yml"}},
		"a directory with a fleet.yaml leaves its parent": {
			files{"a.yaml": "", "b/fleet.yaml": "{}", "b/c.yaml": "", "b/d/e.yaml": "", "b/f/fleet.yml": "{}", "b/f/g.yaml": ""},
			spec{}, files{"repo": "a.yaml", "repo-b": "c.yaml d/e.yaml", "repo-b-f": "g.yaml"}},
		"a base without YAML of its own is no Bundle": {files{"README.md": "x", "b/fleet.yaml": "{}", "b/c.yaml": ""}, spec{},
			files{"repo-b": "c.yaml"}},
		"paths are patterns, and one that matches nothing gives nothing": {
			files{"apps/web/a.yaml": "", "apps/db/b.yaml": "", "other/c.yaml": "", "apps/d.yaml": ""},
			spec{Paths: []string{"apps/*", "/other/", "none"}},
			files{"repo-apps-web": "a.yaml", "repo-apps-db": "b.yaml", "repo-other": "c.yaml"}},
		"a directory within another path is a Bundle of its own too": {files{"a/b/c.yaml": "", "a/d.yaml": ""},
			spec{Paths: []string{"a", "a/b"}}, files{"repo-a": "b/c.yaml d.yaml", "repo-a-b": "c.yaml"}},
		"names with capitals, and a name in the fleet.yaml": {
			files{"Web_1/a.yaml": "", "b/fleet.yaml": "name: chosen", "b/c.yaml": ""}, spec{Paths: []string{"Web_1", "b"}},
			files{"repo-web-1-b5b8a99e": "a.yaml", "chosen": "c.yaml"}},
		"names that differ in case": {
			files{"Web/a.yaml": "", "web/A.yaml": "", "web/a.yaml": ""}, spec{Paths: []string{"Web", "web"}},
			files{"repo-web-4388f66f": "a.yaml", "repo-web": "A.yaml a.yaml"}},
		"ignored files": {
			files{".fleetignore": "# a comment\n*.md\n/top.yaml\nb/skip\n\\#x.yaml\n", "a.yaml": "", "top.yaml": "", "#x.yaml": "",
				"b/top.yaml": "", "b/skip/c.yaml": "", "b/README.md": "x", "c/.fleetignore": "d/*\n", "c/d/e.yaml": "", "c/f.yaml": ""},
			spec{}, files{"repo": "a.yaml b/top.yaml c/f.yaml"}},
		"values files are no resources": {
			files{"fleet.yaml": "helm: {valuesFiles: [values.yaml, prod/v.yaml]}", "values.yaml": "a: 1", "prod/v.yaml": "b: 2",
				"Chart.yaml": "name: a", "templates/a.yaml": ""}, spec{}, files{"repo": "Chart.yaml templates/a.yaml"}},
		"spec.bundles": {
			files{"web/fleet.yaml": "{}", "web/a.yaml": "", "web/b/fleet.yaml": "{}", "web/b/c.yaml": "",
				"web/prod.yaml": "namespace: prod"},
			spec{Bundles: []fleet.BundlePath{{Base: "web"}, {Base: "web", Options: "prod.yaml"}}},
			files{"repo-web": "a.yaml b/c.yaml b/fleet.yaml prod.yaml",
				"repo-web-prod-yaml-4373b5c9": "a.yaml b/c.yaml b/fleet.yaml fleet.yaml"}},
		"a chart of the repository outside of the directory": {
			files{"web/fleet.yaml": "helm: {chart: ../chart}", "chart/Chart.yaml": "name: a", "chart/templates/a.yaml": ""},
			spec{Paths: []string{"web"}}, files{
				"repo-web": ".chart/X/Chart.yaml .chart/X/templates/a.yaml"}},
	} {
		bundles, err := Bundles(t.Context(), repo(row.spec), tree(row.files), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := shape(bundles)
		for key, names := range got {
			for _, b := range bundles {
				if b.Spec.Helm != nil && strings.HasPrefix(b.Spec.Helm.Chart, chartDir) {
					names = strings.ReplaceAll(names, b.Spec.Helm.Chart, chartDir+"/X")
				}
			}
			got[key] = names
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheSpecOfABundle(t *testing.T) {
	r := repo(spec{
		Targets: []fleet.GitTarget{{Name: "all", ClusterSelector: &metav1.LabelSelector{}}}, TargetNamespace: "forced",
		ServiceAccount: "deployer",
		KeepResources:  true, ForceSyncGeneration: 3, CorrectDrift: &fleet.CorrectDrift{Enabled: true},
	})
	r.Status.Commit = "abc"
	bundles, err := Bundles(t.Context(), r, tree(files{
		"fleet.yaml": `
labels: {app: web}
namespace: own
helm: {values: {a: {b: 1, c: 2}, list: [1]}, valuesFiles: [v.yaml]}
targetCustomizations:
- {name: prod, clusterSelector: {matchLabels: {env: prod}}, namespace: prod, helm: {values: {a: 5}, valuesFiles: [v.yaml]}}
`, "v.yaml": "a: {b: 9}\nlist: [2, 3]\n", "a.yaml": "", "logo.png": "\x89PNG"}), nil)
	if err != nil || len(bundles) != 1 {
		t.Fatalf("%v, %v", bundles, err)
	}
	b := bundles[0]
	if diff := cmp.Diff(files{"team": "a", "app": "web", fleet.LabelRepoName: "repo", fleet.LabelCommit: "abc"}, b.Labels); diff != "" {
		t.Error(diff)
	}
	spec := b.Spec
	if spec.TargetNamespace != "forced" || spec.ServiceAccount != "deployer" || !spec.KeepResources || spec.ForceSyncGeneration != 3 ||
		!spec.CorrectDrift.Enabled || string(spec.Helm.Values.Raw) != `{"a":{"b":9,"c":2},"list":[2,3]}` {
		t.Errorf("%+v, values %s", spec.BundleDeploymentOptions, spec.Helm.Values.Raw)
	}
	if len(spec.Targets) != 2 || spec.Targets[0].Name != "prod" || spec.Targets[0].TargetNamespace != "forced" ||
		spec.Targets[1].Name != "all" ||
		string(spec.Targets[0].Helm.Values.Raw) != `{"a":{"b":9},"list":[2,3]}` || spec.Targets[1].TargetNamespace != "" {
		t.Errorf("%+v", spec.Targets)
	}
	if len(spec.TargetRestrictions) != 1 || spec.TargetRestrictions[0].Name != "all" {
		t.Errorf("%+v", spec.TargetRestrictions)
	}
	if len(spec.Resources) != 2 || spec.Resources[1].Encoding != fleet.EncodingGzip || spec.Resources[0].Content != configMap {
		t.Errorf("%+v", spec.Resources)
	}
}

func TestABundleWithoutTargetsGoesToTheDefaultGroup(t *testing.T) {
	bundles, err := Bundles(t.Context(), repo(spec{}), tree(files{"a.yaml": ""}), nil)
	if err != nil || bundles[0].Spec.Targets[0].ClusterGroup != "default" ||
		bundles[0].Spec.TargetRestrictions[0].ClusterGroup != "default" {
		t.Errorf("%+v, %v", bundles, err)
	}
	bundles, err = Bundles(t.Context(), repo(spec{Targets: []fleet.GitTarget{{ClusterName: "a"}}}), tree(files{
		"fleet.yaml": "overrideTargets: [{clusterGroup: edge}]", "a.yaml": ""}), nil)
	if err != nil || len(bundles[0].Spec.Targets) != 1 || bundles[0].Spec.Targets[0].ClusterGroup != "edge" ||
		bundles[0].Spec.TargetRestrictions[0].ClusterGroup != "edge" {
		t.Errorf("%+v, %v", bundles, err)
	}
}

func TestManyFilesAreCompressed(t *testing.T) {
	content := files{"a.yaml": "", "b.txt": strings.Repeat("x", maxPlain)}
	bundles, err := Bundles(t.Context(), repo(spec{}), tree(content), nil)
	if err != nil || bundles[0].Spec.Resources[0].Encoding != fleet.EncodingGzip ||
		bundles[0].Spec.Resources[1].Encoding != fleet.EncodingGzip {
		t.Errorf("%v", err)
	}
	content["c.txt"] = strings.Repeat("x", maxFiles)
	if _, err := Bundles(t.Context(), repo(spec{}), tree(content), nil); err == nil || !strings.Contains(err.Error(),
		"make it several Bundles") {
		t.Errorf("%v", err)
	}
}

func TestChartsFromElsewhereAreFetched(t *testing.T) {
	content := files{"fleet.yaml": "helm: {repo: https://charts.example.com, chart: web, version: ~1.2, releaseName: web}"}
	var asked fleet.HelmOptions
	charts := func(_ context.Context, _ string, options *fleet.HelmOptions) (*Chart, error) {
		asked = *options
		return &Chart{"1.2.3", map[string][]byte{"Chart.yaml": []byte("name: web"), "templates/a.yaml": []byte(configMap)}}, nil
	}
	bundles, err := Bundles(t.Context(), repo(spec{}), tree(content), charts)
	if err != nil || len(bundles) != 1 {
		t.Fatalf("%v, %v", bundles, err)
	}
	helm := bundles[0].Spec.Helm
	if asked.Version != "~1.2" || !strings.HasPrefix(helm.Chart, ".chart/") || helm.Repo != "" || helm.Version != "" ||
		helm.ReleaseName != "web" ||
		bundles[0].Spec.Resources[0].Name != helm.Chart+"/Chart.yaml" {
		t.Errorf("%+v, %+v", asked, bundles[0].Spec)
	}
	bundles, err = Bundles(t.Context(), repo(spec{}), tree(content), nil)
	if err != nil || bundles[0].Spec.Helm.Repo != "https://charts.example.com" || len(bundles[0].Spec.Resources) != 0 {
		t.Errorf("without a fetcher: %+v, %v", bundles, err)
	}
	large := func(context.Context, string, *fleet.HelmOptions) (*Chart, error) {
		return &Chart{Version: "1.2.3"}, nil
	}
	bundles, err = Bundles(t.Context(), repo(spec{}), tree(content), large)
	if err != nil || bundles[0].Spec.Helm.Version != "1.2.3" || bundles[0].Spec.Helm.Chart != "web" || len(bundles[0].Spec.Resources) != 0 {
		t.Errorf("a large chart: %+v, %v", bundles, err)
	}
	failing := func(context.Context, string, *fleet.HelmOptions) (*Chart, error) {
		return nil, errors.New("no such chart")
	}
	if _, err = Bundles(t.Context(), repo(spec{}), tree(content), failing); err == nil || err.Error() != "fleet.yaml: no such chart" {
		t.Errorf("%v", err)
	}
}

func TestABrokenDirectoryCostsOnlyItsOwnBundle(t *testing.T) {
	for name, row := range map[string]struct {
		files map[string]string
		spec  spec
		want  string
		left  int
	}{
		"a key": {files{"a/fleet.yaml": "nam: x", "b/fleet.yaml": "{}", "b/c.yaml": ""}, spec{},
			"a/fleet.yaml:1: unknown key nam; did you mean name?", 1},
		"a name": {files{"fleet.yaml": "name: A B", "b.yaml": ""}, spec{}, "fleet.yaml: name: A B is no name of a Bundle", 0},
		"two Bundles of one name": {files{"a/fleet.yaml": "name: x", "b/fleet.yaml": "name: x"}, spec{},
			"a and b both make a Bundle x: name one of them in its fleet.yaml", 1},
		"values that do not exist": {files{"fleet.yaml": "helm: {valuesFiles: [v.yaml]}", "b.yaml": ""}, spec{},
			"fleet.yaml: helm.valuesFiles[0]: the repository has no file v.yaml", 0},
		"values outside": {files{"a/fleet.yaml": "helm: {valuesFiles: [../../v.yaml]}"}, spec{},
			"a/fleet.yaml: helm.valuesFiles[0]: ../../v.yaml lies outside of the repository", 0},
		"values that are a list": {files{"fleet.yaml": "helm: {valuesFiles: [v.yaml]}", "v.yaml": "- a"}, spec{},
			"v.yaml: its values are no map of YAML", 0},
		"a chart that does not exist": {files{"a/fleet.yaml": "helm: {chart: chart}"}, spec{},
			"a/fleet.yaml: helm.chart: the repository has no a/chart/Chart.yaml", 0},
		"nothing": {files{"README.md": "x"}, spec{}, "no resource found: no file ends with .yaml or .yml in .", 0},
		"nothing in its paths": {files{"a.yaml": ""}, spec{Paths: []string{"b", "c*"}},
			"no resource found: no file ends with .yaml or .yml in b, c*", 0},
		"a pattern": {files{"a.yaml": ""}, spec{Paths: []string{"[", "."}}, "spec.paths: [ is no valid pattern", 1},
		"a base": {files{"a.yaml": ""}, spec{Bundles: []fleet.BundlePath{{Base: "b"}}},
			"spec.bundles[0]: the repository has no directory b", 0},
		"options": {files{"a.yaml": ""}, spec{Bundles: []fleet.BundlePath{{Base: ".", Options: "b.yaml"}}},
			"spec.bundles[0]: the repository has no file b.yaml", 0},
		"an ignored pattern": {files{".fleetignore": "a\n[\n", "a.yaml": ""}, spec{}, ".fleetignore:2: [ is no valid pattern", 0},
	} {
		bundles, err := Bundles(t.Context(), repo(row.spec), tree(row.files), nil)
		if err == nil || !strings.Contains(err.Error(), row.want) || len(bundles) != row.left {
			t.Errorf("%s: %v, %d Bundles", name, err, len(bundles))
		}
	}
}

func TestTheDependenciesOfAChartAreAdded(t *testing.T) {
	const chart = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
	fetched := func(_ context.Context, _ string, options *fleet.HelmOptions) (*Chart, error) {
		if options.Repo == "https://away" {
			return nil, errors.New("it is away")
		}
		version := options.Repo + " " + options.Chart + " " + options.Version
		if options.Repo == "https://large" {
			return &Chart{Version: "2.0.0"}, nil
		}
		return &Chart{Version: version, Files: map[string][]byte{"Chart.yaml": []byte(version)}}, nil
	}
	on := func(name, version, repository string) string {
		return chart + fmt.Sprintf("dependencies: [{name: %s, version: %q, repository: %q}]\n", name, version, repository)
	}
	for name, row := range map[string]struct {
		files   files
		want    string
		content string
		wrong   string
	}{
		"of a repository": {files{"web/Chart.yaml": on("db", "^1", "https://charts")}, "Chart.yaml charts/db/Chart.yaml",
			"https://charts db ^1", ""},
		"of a registry": {files{"web/Chart.yaml": on("db", "1.x", "oci://charts")}, "Chart.yaml charts/db/Chart.yaml",
			"oci://charts db 1.x", ""},
		"locked": {files{"web/Chart.yaml": on("db", "^1", "https://charts"),
			"web/Chart.lock": "dependencies: [{name: db, version: 1.2.3, repository: 'https://charts'}]"},
			"Chart.lock Chart.yaml charts/db/Chart.yaml", "https://charts db 1.2.3", ""},
		"of the first version of charts": {files{"web/Chart.yaml": chart,
			"web/requirements.yaml": "dependencies: [{name: db, version: ^1, repository: 'https://charts'}]"},
			"Chart.yaml charts/db/Chart.yaml requirements.yaml", "https://charts db ^1", ""},
		"there as files": {files{"web/Chart.yaml": on("db", "^1", "https://away"), "web/charts/db/Chart.yaml": "there"},
			"Chart.yaml charts/db/Chart.yaml", "there", ""},
		"there as an archive": {files{"web/Chart.yaml": on("db", "^1", "https://away"), "web/charts/db-1.2.0.tgz": "packed"},
			"Chart.yaml charts/db-1.2.0.tgz", "", ""},
		"switched off": {files{"web/Chart.yaml": on("db", "^1", "https://away"), "web/fleet.yaml": "helm: {disableDependencyUpdate: true}"},
			"Chart.yaml", "", ""},
		"of a chart elsewhere in the repository": {files{"web/fleet.yaml": "helm: {chart: ../charts/web}",
			"charts/web/Chart.yaml": on("db", "^1", "https://charts")},
			"PLACE/Chart.yaml PLACE/charts/db/Chart.yaml", "https://charts db ^1", ""},
		"of the repository itself, with one of its own": {files{"web/Chart.yaml": on("db", "*", "file://../charts/db"),
			"charts/db/Chart.yaml": on("lib", "^2", "https://charts"), "charts/db/templates/a.yaml": "text"},
			"Chart.yaml charts/db/Chart.yaml charts/db/charts/lib/Chart.yaml charts/db/templates/a.yaml", "https://charts lib ^2", ""},
		"away":      {files{"web/Chart.yaml": on("db", "^1", "https://away")}, "", "", "web/Chart.yaml: dependency db: it is away"},
		"large":     {files{"web/Chart.yaml": on("db", "^1", "https://large")}, "", "", "version 2.0.0 is too large for a Bundle"},
		"outside":   {files{"web/Chart.yaml": on("db", "^1", "file://../../etc")}, "", "", "../../etc lies outside of the repository"},
		"missing":   {files{"web/Chart.yaml": on("db", "^1", "file://../db")}, "", "", "the repository has no db/Chart.yaml"},
		"of itself": {files{"web/Chart.yaml": on("web", "^1", "file://../web")}, "", "", "one below the other"},
		"by a name": {files{"web/Chart.yaml": on("db", "^1", "@stable")}, "", "", "repository @stable is a name of a local Helm configuration"},
		"no name":   {files{"web/Chart.yaml": on("../../db", "^1", "https://charts")}, "", "", `dependency "../../db" is no name of a chart`},
	} {
		bundles, err := Bundles(t.Context(), repo(spec{Paths: []string{"web"}}), tree(row.files), fetched)
		if row.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), row.wrong) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || len(bundles) != 1 {
			t.Errorf("%s: %d Bundles, %v", name, len(bundles), err)
			continue
		}
		want := row.want
		if helm := bundles[0].Spec.Helm; helm != nil {
			want = strings.ReplaceAll(want, "PLACE", helm.Chart)
		}
		if got := shape(bundles)["repo-web"]; got != want {
			t.Errorf("%s: %s", name, got)
		}
		if !strings.Contains(fmt.Sprint(bundles[0].Spec.Resources), row.content) {
			t.Errorf("%s: %v", name, bundles[0].Spec.Resources)
		}
	}
}

// BenchmarkMonorepo makes the Bundles of 200 directories with ten files each.
func BenchmarkMonorepo(b *testing.B) {
	content := files{}
	for i := range 200 {
		content[fmt.Sprintf("apps/%d/fleet.yaml", i)] = "defaultNamespace: app\nhelm: {values: {a: 1}}\n"
		for n := range 10 {
			content[fmt.Sprintf("apps/%d/%d.yaml", i, n)] = strings.Repeat(configMap, 20)
		}
	}
	all := tree(content)
	for b.Loop() {
		if bundles, err := Bundles(b.Context(), repo(spec{}), all, nil); err != nil || len(bundles) != 200 {
			b.Fatalf("%d Bundles, %v", len(bundles), err)
		}
	}
}
