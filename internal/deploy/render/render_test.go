package render

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery/chart"
)

func TestMain(m *testing.M) {
	if Asked() {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

// web is a chart with a dependency, a definition and two lookups.
var web = Input{Name: "web", Content: "s-1", Files: chart.Files{
	"Chart.yaml": []byte("apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: db, version: 1.0.0, " +
		"condition: db.enabled}]\n"),
	"values.yaml":            []byte("port: 80\n"),
	"templates/_helpers.tpl": []byte(`{{ define "name" }}n-{{ .Release.Name }}{{ end }}`),
	"templates/a.yaml": []byte(
		`{{ include "name" . }} {{ .Values.port }} {{ .Release.Revision }} {{ (lookup "v1" "Service" "d" "s").spec.big }}`,
	),
	"templates/hook.yaml":                []byte("a: helm.sh/hook"),
	"charts/db/Chart.yaml":               []byte("apiVersion: v2\nname: db\nversion: 1.0.0\n"),
	"charts/db/templates/b.yaml":         []byte(`db {{ .Values.size }}`),
	"charts/db/crds/definition.yaml":     []byte("kind: CustomResourceDefinition\n"),
	"charts/extra/Chart.yaml":            []byte("apiVersion: v2\nname: extra\nversion: 1.0.0\n"),
	"charts/extra/templates/broken.yaml": []byte(`off`),
}}

func TestAChartIsRenderedInAProcessOfItsOwnAsHelmDoes(t *testing.T) {
	r := New(LeastMemory, time.Minute)
	input := web
	input.Own = map[string]any{"db": map[string]any{"enabled": true, "size": 1.0}}
	loaded, err := r.Load(t.Context(), input)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range loaded.Chart.Templates {
		names = append(names, one.Name)
	}
	want := []string{"templates/a.yaml", "templates/hook.yaml", "charts/extra/templates/broken.yaml", "charts/db/templates/b.yaml"}
	if loaded.Hooks != 1 || !slices.Equal(names, want) {
		t.Errorf("it has %d hooks and the templates %s", loaded.Hooks, names)
	}
	if crds := loaded.Chart.CRDObjects(); len(crds) != 1 || crds[0].Name != "crds/charts/db/crds/definition.yaml" {
		t.Errorf("its definitions are %+v", crds)
	}
	files, err := r.Render(t.Context(), input, Templates{
		Values: loaded.Values, Release: common.ReleaseOptions{Name: "x", Revision: 7}, Capabilities: common.DefaultCapabilities,
	}, func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		if apiVersion != "v1" || kind != "Service" || namespace != "d" || name != "s" {
			t.Errorf("it looks up %s %s %s/%s", apiVersion, kind, namespace, name)
		}
		return map[string]any{"spec": map[string]any{"big": int64(12345678)}}, nil
	})
	if err != nil || files["web/templates/a.yaml"] != "n-x 80 7 12345678" || files["web/charts/db/templates/b.yaml"] != "db 1" {
		t.Errorf("it renders %q, %v", files, err)
	}
	refused := func(string, string, string, string) (map[string]any, error) {
		return nil, errors.New("services is forbidden")
	}
	_, err = r.Render(t.Context(), input, Templates{Capabilities: common.DefaultCapabilities}, refused)
	if err == nil || !strings.Contains(err.Error(), "services is forbidden") {
		t.Errorf("a lookup that is refused: %v", err)
	}
}

func TestAKustomizationIsBuiltOverAChart(t *testing.T) {
	files := chart.Files{
		"chart/Chart.yaml":             []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"),
		"chart/templates/_helpers.tpl": []byte(`{{ define "name" }}web{{ end }}`),
		"chart/templates/NOTES.txt":    []byte("thank you"),
		"chart/templates/off.yaml":     []byte("{{ if .Values.off }}x{{ end }}"),
		"chart/templates/a.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ include \"name\" . }}}\ndata: {key: " +
			"\"{{ .Values.key }}\"}"),
		"chart/templates/b.yaml":          []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n"),
		"overlays/dev/kustomization.yaml": []byte("namePrefix: dev-\nresources: [more.yaml]\n"),
		"overlays/dev/more.yaml":          []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"),
	}
	want := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: dev-more\n---\n" +
		"apiVersion: v1\ndata:\n  key: '{{ one }}'\nkind: ConfigMap\nmetadata:\n  name: dev-web\n---\n" +
		"apiVersion: v1\nkind: Secret\nmetadata:\n  name: dev-b\n"
	dev := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Chart: "./chart"}, Kustomize: &fleet.KustomizeOptions{Dir: "overlays/dev"}}
	root := maps.Clone(files)
	root["kustomization.yaml"] = []byte("resources: [overlays/dev/more.yaml]\nnamePrefix: dev-\n")
	for name, input := range map[string]Input{
		"in the directory that is named": {Files: files, Options: dev},
		"at the root of the Bundle":      {Files: root},
	} {
		r := New(LeastMemory, time.Minute)
		loaded, err := r.Load(t.Context(), input)
		if err != nil {
			t.Fatal(err)
		}
		if len(loaded.Chart.Templates) != 1 || loaded.Chart.Templates[0].Name != chart.Kustomized {
			t.Errorf("%s: it has %d templates", name, len(loaded.Chart.Templates))
		}
		made, err := r.Render(t.Context(), input, Templates{Values: map[string]any{"key": "{{ one }}"}, Capabilities: common.DefaultCapabilities},
			nil)
		if err != nil || made["web/"+chart.Kustomized] != want {
			t.Errorf("%s: it renders %q, %v", name, made, err)
		}
	}
	dev.Kustomize.Dir = "overlays/prod"
	_, err := New(LeastMemory, time.Minute).Render(t.Context(), Input{Files: files, Options: dev},
		Templates{Capabilities: common.DefaultCapabilities}, nil)
	if err == nil || !strings.Contains(err.Error(), "kustomize.dir names overlays/prod, where the Bundle has no kustomization.yaml") {
		t.Errorf("a directory without a kustomization: %v", err)
	}
}

func TestAProcessEndsAtItsLimits(t *testing.T) {
	for name, row := range map[string]struct{ template, says string }{
		"memory": {`{{ repeat 600000000 "x" }}`, "it ran out of memory, with a limit of 128 MiB"},
		"time": {"{{ range until 1000 }}{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}{{ end }}",
			"it did not finish within 3s"},
		"output": {`{{ range until 260 }}{{ repeat 65536 "x" }}{{ end }}`, "the chart makes more than 16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "memory" && raceDetector {
				t.Skip("the race detector's own memory fits no bound; TestTheEndOfARenderingEndsNothingElse tries it with the program")
			}
			memory, within := uint64(LeastMemory), time.Minute
			switch name {
			case "output":
				memory = pair - 1 // so much that the bound of the output comes first
			case "time":
				memory, within = pair-1, 3*time.Second // a busy machine collects garbage late
			}
			input := Input{Files: chart.Files{
				"Chart.yaml": []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"), "templates/a.yaml": []byte(row.template),
			}}
			_, err := New(memory, within).Render(t.Context(), input, Templates{Capabilities: common.DefaultCapabilities}, nil)
			var ended *Ended
			if !errors.As(err, &ended) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// BenchmarkRender says what a process costs.
func BenchmarkRender(b *testing.B) {
	r := New(LeastMemory, time.Minute)
	for b.Loop() {
		loaded, err := r.Load(context.Background(), web)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Render(context.Background(), web, Templates{Values: loaded.Values, Capabilities: common.DefaultCapabilities},
			func(string, string, string, string) (map[string]any, error) {
				return map[string]any{"spec": map[string]any{}}, nil
			}); err != nil {
			b.Fatal(err)
		}
	}
}
