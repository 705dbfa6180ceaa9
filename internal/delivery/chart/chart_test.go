package chart

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

const (
	web   = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  key: one\n"
	chart = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
)

// bomb is a ConfigMap of 100 KiB that becomes one of 100 MiB.
var bomb = web + "  a: &a " + strings.Repeat("x", 100<<10) + "\n  b: [" + strings.Repeat("*a, ", 1<<10) + "]\n"

// render is what a chart renders to, without the name of the chart in the paths.
func render(t *testing.T, made *helm.Chart, values map[string]any) map[string]string {
	t.Helper()
	all, err := util.ToRenderValues(made, values, common.ReleaseOptions{Name: "r", Namespace: "n"}, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(made, all)
	if err != nil {
		t.Fatal(err)
	}
	short := map[string]string{}
	for name, text := range rendered {
		_, name, _ = strings.Cut(name, "/templates/")
		short[name] = text
	}
	return short
}

func TestFilesBecomeTheChartThatTheyMean(t *testing.T) {
	for name, row := range map[string]struct {
		files   Files
		options fleet.BundleDeploymentOptions
		want    map[string]string
	}{
		"plain YAML is taken as it is, templates in it are text": {
			files: Files{"a/web.yaml": []byte(web + "  t: \"{{ .Values.x }} {{`a`}}\"\n"), "README.md": []byte("x"), "fleet.yaml": []byte("x: [")},
			want:  map[string]string{"a/web.yaml": web + "  t: \"{{ .Values.x }} {{`a`}}\"\n"},
		},
		"a chart is taken as it is, with values files": {
			files: Files{
				"Chart.yaml": []byte(chart), "templates/a.yaml": []byte("v: {{ .Values.a }}{{ .Values.b }}"),
				"values.yaml": []byte("a: 1\nb: 1\n"), "dev.yaml": []byte("b: 2\n"),
			},
			options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{ValuesFiles: []string{"dev.yaml"}}},
			want:    map[string]string{"a.yaml": "v: 12"},
		},
		"a values file that the command line merged is ignored": {
			files:   Files{"Chart.yaml": []byte(chart), "templates/a.yaml": []byte("v: {{ .Values.a }}"), "values.yaml": []byte("a: 1\n")},
			options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{ValuesFiles: []string{"dev.yaml"}}},
			want:    map[string]string{"a.yaml": "v: 1"},
		},
		"a chart may do without what it depends on": {
			files: Files{
				"Chart.yaml":       []byte(chart + "dependencies: [{name: db, version: 1.0.0, repository: https://x}]\n"),
				"templates/a.yaml": []byte("v: 1"),
			},
			options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{DisableDependencyUpdate: true}},
			want:    map[string]string{"a.yaml": "v: 1"},
		},
		"a chart may be in a directory": {
			files: Files{"charts/web/Chart.yaml": []byte(chart), "charts/web/templates/a.yaml": []byte("v: 1"), "web.yaml": []byte(web)},
			want:  map[string]string{"a.yaml": "v: 1"},
		},
		"an overlay replaces, adds and patches; the others do not count": {
			files: Files{
				"web.yaml": []byte(web), "db.yaml": []byte(web), "overlays/dev/db.yaml": []byte("apiVersion: v1\nkind: Secret\n"),
				"overlays/dev/web_patch.yaml": []byte("data:\n  key: two\n"), "overlays/prod/extra.yaml": []byte("x: ["),
			},
			options: fleet.BundleDeploymentOptions{YAML: &fleet.YAMLOptions{Overlays: []string{"dev"}}},
			want: map[string]string{
				"db.yaml":  "apiVersion: v1\nkind: Secret\n",
				"web.yaml": `{"apiVersion":"v1","data":{"key":"two"},"kind":"ConfigMap","metadata":{"name":"web"}}`,
			},
		},
		"YAML that is no object is no manifest": {
			files: Files{
				"web.yaml": []byte(web), "values.yaml": []byte("replicas: 3\n"), "list.yml": []byte("- a\n"), "package.json": []byte(`{"name":"x"}`),
				"base/kustomization.yaml": []byte("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [web.yaml]\n"),
			},
			want: map[string]string{"web.yaml": web},
		},
		"files may be empty": {
			files: Files{"a.yaml": nil, "b.yaml": []byte("# nothing\n---\n"), "README.md": []byte("text")}, want: map[string]string{},
		},
		"a Bundle may be empty": {files: Files{}, want: map[string]string{}},
		"a kustomization is built": {
			files: Files{
				"base/kustomization.yaml": []byte("resources: [web.yaml]\n"), "base/web.yaml": []byte(web),
				"dev/kustomization.yaml": []byte("resources: [../base]\nnamePrefix: dev-\n"),
			},
			options: fleet.BundleDeploymentOptions{Kustomize: &fleet.KustomizeOptions{Dir: "dev"}},
			want:    map[string]string{"kustomized.yaml": "apiVersion: v1\ndata:\n  key: one\nkind: ConfigMap\nmetadata:\n  name: dev-web\n"},
		},
	} {
		made, values, err := Build(row.files, nil, "web", "s-1", row.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(row.want, render(t, made, values)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestUnusableFilesAreNamed(t *testing.T) {
	for name, row := range map[string]struct {
		files   Files
		options fleet.BundleDeploymentOptions
		want    string
		field   string
	}{
		"YAML that is none": {
			files: Files{"a.yaml": []byte(web + "---\napiVersion: v1\nkind: [\n")}, want: "a.yaml is no valid YAML: yaml: line ",
		},
		"no kind": {
			files: Files{"a.yaml": []byte(web + "---\napiVersion: v1\n")}, want: "a.yaml, line 8: the object has no kind",
		},
		"no object": {
			files: Files{"a.yaml": []byte(web + "---\n- a\n")}, want: "a.yaml, line 8: this is no Kubernetes object",
		},
		"a text, a list and values": {
			files: Files{"a.yaml": []byte("just text\n"), "b.yaml": []byte("[1]\n"), "c.yml": []byte("a: 1\n"), "d.json": []byte("{}")},
			want:  "no file of the Bundle has a Kubernetes object, with apiVersion and kind: a.yaml, b.yaml, c.yml and 1 more",
		},
		"an empty kind": {
			files: Files{"a.yaml": []byte("apiVersion: v1\nkind:\n")}, want: "a.yaml, line 1: the object has no kind",
		},
		"only an apiVersion": {
			files: Files{"a.yaml": []byte("apiVersion: v1\ndata: {}\n")}, want: "a.yaml, line 1: the object has no kind",
		},
		"aliases that make a manifest huge": {
			files: Files{"a.yaml": []byte(bomb)}, want: "a.yaml: the document that begins at line 1: its aliases make it larger",
		},
		"aliases that make values huge": {
			files: Files{"Chart.yaml": []byte(chart), "values.yaml": []byte(bomb)},
			want:  "values.yaml: the document that begins at line 1: its aliases make it larger",
		},
		"aliases that make a patch huge": {
			files:   Files{"a.yaml": []byte(web), "overlays/dev/a_patch.yaml": []byte(bomb)},
			options: fleet.BundleDeploymentOptions{YAML: &fleet.YAMLOptions{Overlays: []string{"dev"}}},
			want:    "overlays/dev/a_patch.yaml: the document",
		},
		"more values than a parser may take": {
			files: Files{"kustomization.yaml": []byte("resources: [" + strings.Repeat("a,", 150_000) + "]")},
			want:  "kustomization.yaml: the document that begins at line 1: it has up to 300009 values",
		},
		"a values file that is none": {
			files:   Files{"Chart.yaml": []byte(chart), "dev.yaml": []byte("- a\n")},
			options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{ValuesFiles: []string{"dev.yaml"}}},
			want:    "reading the values file dev.yaml",
		},
		"a missing dependency": {
			files: Files{"Chart.yaml": []byte(chart + "dependencies: [{name: db, version: 1.0.0, repository: https://x}]\n")},
			want:  "chart web depends on chart db",
		},
		"a missing overlay": {
			files: Files{"a.yaml": []byte(web)}, options: fleet.BundleDeploymentOptions{YAML: &fleet.YAMLOptions{Overlays: []string{"dev"}}},
			want: "overlays names dev",
		},
		"a patch of nothing": {
			files:   Files{"overlays/dev/a_patch.yaml": []byte("x: 1")},
			options: fleet.BundleDeploymentOptions{YAML: &fleet.YAMLOptions{Overlays: []string{"dev"}}},
			want:    "overlays/dev/a_patch.yaml patches a.yaml, which is not",
		},
		"a missing kustomization": {
			files:   Files{"a.yaml": []byte(web)},
			options: fleet.BundleDeploymentOptions{Kustomize: &fleet.KustomizeOptions{Dir: "dev"}},
			want:    "building the kustomization in directory dev",
		},
		"overlays over a chart": {
			files:   Files{"Chart.yaml": []byte(chart), "overlays/dev/a.yaml": []byte(web)},
			options: fleet.BundleDeploymentOptions{YAML: &fleet.YAMLOptions{Overlays: []string{"dev"}}},
			want:    "overlays are for plain YAML", field: "spec.options.yaml.overlays",
		},
		"overlays over a kustomization": {
			files:   Files{"kustomization.yaml": []byte("resources: [web.yaml]\n"), "web.yaml": []byte(web)},
			options: fleet.BundleDeploymentOptions{YAML: &fleet.YAMLOptions{Overlays: []string{"dev"}}},
			want:    "overlays are for plain YAML", field: "spec.options.yaml.overlays",
		},
		"a chart that is nowhere": {
			files:   Files{},
			options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Chart: "web"}},
			want:    "helm.chart names web, where the Bundle has no Chart.yaml",
		},
	} {
		_, _, err := Build(row.files, nil, "web", "s-1", row.options)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
		var unsupported *Unsupported
		if errors.As(err, &unsupported); unsupported != nil && unsupported.Field != row.field {
			t.Errorf("%s: field %s, want %s", name, unsupported.Field, row.field)
		}
	}
}

func TestFilesOfOneNameAreRefused(t *testing.T) {
	_, err := Decode([]fleet.BundleResource{{Name: "a.yaml"}, {Name: "./a.yaml"}})
	if err == nil || !strings.Contains(err.Error(), "two resources named a.yaml") {
		t.Errorf("got %v", err)
	}
	if _, err = Decode([]fleet.BundleResource{{Name: "../a.yaml"}}); err == nil || !strings.Contains(err.Error(), "lies outside") {
		t.Errorf("got %v", err)
	}
}
