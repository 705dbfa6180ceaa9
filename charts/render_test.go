package charts_test

import (
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/charts"
)

// helm is a command line of helm, as far as rendering is concerned.
type helm struct {
	chart     string
	namespace string
	release   string
	upgrade   bool
	values    string           // the content of a --values file
	reused    string           // what --reuse-values puts in the place of the chart's own values
	set       []string         // --set
	setString []string         // --set-string
	file      [2]string        // name and content of a file that was put into the chart's directory
	cluster   []runtime.Object // what lookup finds
	kube      string           // --kube-version; empty: one so old that there are no admission policies
	serves    []string         // the kinds that the cluster serves, as group/version/kind; nil for Helm's defaults
}

// release is what helm made of it.
type release struct {
	objects []unstructured.Unstructured
	notes   string
}

func (h helm) render(t *testing.T) (release, error) {
	t.Helper()
	sub, err := fs.Sub(charts.FS, h.chart)
	if err != nil {
		t.Fatal(err)
	}
	var files []*archive.BufferedFile
	err = fs.WalkDir(sub, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(sub, path)
		files = append(files, &archive.BufferedFile{Name: path, Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if h.file[0] != "" {
		files = append(files, &archive.BufferedFile{Name: h.file[0], Data: []byte(h.file[1])})
	}
	chart, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}

	if h.reused != "" {
		chart.Values = map[string]any{}
		if err := yaml.Unmarshal([]byte(h.reused), &chart.Values); err != nil {
			t.Fatal(err)
		}
	}

	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(h.values), &values); err != nil {
		t.Fatal(err)
	}
	for _, flag := range h.set {
		if err := strvals.ParseInto(flag, values); err != nil {
			t.Fatal(err)
		}
	}
	for _, flag := range h.setString {
		if err := strvals.ParseIntoString(flag, values); err != nil {
			t.Fatal(err)
		}
	}
	options := common.ReleaseOptions{Name: h.release, Namespace: h.namespace, Revision: 1, IsInstall: !h.upgrade, IsUpgrade: h.upgrade}
	capabilities := common.DefaultCapabilities.Copy()
	if h.kube != "" {
		version, err := common.ParseKubeVersion(h.kube)
		if err != nil {
			t.Fatal(err)
		}
		capabilities.KubeVersion = *version
	}
	if h.serves != nil {
		capabilities.APIVersions = h.serves
	}
	rendered, err := util.ToRenderValues(chart, values, options, capabilities)
	if err != nil {
		return release{}, err
	}
	manifests, err := engine.RenderWithClientProvider(chart, rendered, lookup(h.cluster))
	if err != nil {
		return release{}, err
	}

	var out release
	for _, path := range slices.Sorted(maps.Keys(manifests)) {
		if strings.HasSuffix(path, "NOTES.txt") {
			out.notes = manifests[path]
			continue
		}
		for _, document := range strings.Split(manifests[path], "\n---") {
			object := unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
				t.Fatalf("%s: %v\n%s", path, err, document)
			}
			if len(object.Object) > 0 {
				out.objects = append(out.objects, object)
			}
		}
	}
	return out, nil
}

// lookup is a cluster that holds some objects.
type lookup []runtime.Object

func (l lookup) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind))
	return fake.NewSimpleDynamicClient(runtime.NewScheme(), l...).Resource(resource), kind == "Deployment", nil
}

func (h helm) mustRender(t *testing.T) release {
	t.Helper()
	out, err := h.render(t)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (r release) object(t *testing.T, kind, name string) unstructured.Unstructured {
	t.Helper()
	for _, object := range r.objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	t.Fatalf("no %s %s was rendered", kind, name)
	return unstructured.Unstructured{}
}

// secretData returns the decoded data of a Secret.
func (r release) secretData(t *testing.T, name string) map[string]string {
	t.Helper()
	data, _, _ := unstructured.NestedStringMap(r.object(t, "Secret", name).Object, "data")
	for key, value := range data {
		decoded, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			t.Fatalf("key %s of Secret %s: %v", key, name, err)
		}
		data[key] = string(decoded)
	}
	return data
}

// config returns the key config of a ConfigMap, parsed.
func (r release) config(t *testing.T, name string) map[string]any {
	t.Helper()
	text, _, _ := unstructured.NestedString(r.object(t, "ConfigMap", name).Object, "data", "config")
	config := map[string]any{}
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		t.Fatalf("config of ConfigMap %s: %v: %s", name, err, text)
	}
	return config
}

// jwt returns an unsigned token with the claims.
func jwt(t *testing.T, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode(payload) + "." + encode([]byte("signature"))
}
