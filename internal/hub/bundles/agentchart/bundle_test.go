package agentchart

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/charts"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/bootstrap"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

// maxBundle is how large the chart may be in a Bundle: every Cluster has one.
const maxBundle = 20 << 10

func TestTheSettingsOfTheHubAreDefaultsOfTheChart(t *testing.T) {
	with := agent
	with.PullSecrets = []string{"pull"}
	resources, err := Resources(with)
	if err != nil {
		t.Fatal(err)
	}
	size, values := 0, map[string]any{}
	for _, resource := range resources {
		size += len(resource.Content)
		if resource.Name != valuesFile {
			continue
		}
		text, err := delivery.File(resource)
		if err == nil {
			err = yaml.Unmarshal(text, &values)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if size > maxBundle {
		t.Errorf("the chart takes %d bytes in a Bundle", size)
	}
	t.Logf("the chart takes %d bytes", size)
	want := map[string]any{"repository": "muster-agent", "tag": "v1", "imagePullPolicy": "IfNotPresent"}
	if diff := cmp.Diff(want, values["image"]); diff != "" {
		t.Errorf("the image (-want +got):\n%s", diff)
	}
	global := map[string]any{"cattle": map[string]any{"systemDefaultRegistry": "registry.example.com"}, "imagePullSecrets": []any{"pull"}}
	if diff := cmp.Diff(global, values["global"]); diff != "" {
		t.Errorf("global (-want +got):\n%s", diff)
	}
	if values["garbageCollectionInterval"] != "15m" || values["noProxy"] == "" {
		t.Errorf("the values are %v", values)
	}
}

func TestOverridesAreWhatTheClusterSays(t *testing.T) {
	on := true
	at := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	for _, row := range []struct {
		name            string
		spec            fleet.ClusterSpec
		last            *fleet.ImportStatus
		namespace, want string
	}{
		{"a Cluster that says nothing leaves all to the user", fleet.ClusterSpec{}, nil, naming.SystemNamespace, ""},
		{"what it says goes before the user's", fleet.ClusterSpec{
			HostNetwork: &on, PrivateRepoURL: "private.example.com", AgentPullSecrets: &[]corev1.LocalObjectReference{{Name: "mine"}},
			AgentTolerations: []corev1.Toleration{{Key: "edge"}}, AgentEnvVars: []corev1.EnvVar{{Name: "A", Value: "b"}},
		}, nil, naming.SystemNamespace,
			`{"fleetAgent":{"extraEnv":[{"name":"A","value":"b"}],"hostNetwork":true,"tolerations":[{"key":"edge"}]},` +
				`"global":{"cattle":{"systemDefaultRegistry":"private.example.com"},"imagePullSecrets":["mine"]}}`},
		{"no pull secrets is something to say", fleet.ClusterSpec{AgentPullSecrets: &[]corev1.LocalObjectReference{}},
			nil, naming.SystemNamespace,
			`{"global":{"imagePullSecrets":[]}}`},
		{"an agent that the hub installed has all from it", fleet.ClusterSpec{KubeConfigSecret: "s"}, &fleet.ImportStatus{Time: at}, "agents",
			`{"agentTLSMode":"system-store","clientID":"id","internal":{"generation":"2026-11-21T12:00:00Z","systemNamespace":"agents"}}`},
	} {
		cluster := &fleet.Cluster{Spec: row.spec, Status: fleet.ClusterStatus{Import: row.last}}
		got, err := Overrides(cluster, "id", row.namespace, agent)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(row.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
}

// TestAnImportAndItsBundleMakeTheSamePod renders what the importer installs and what the agent is
// sent after it has joined.
func TestAnImportAndItsBundleMakeTheSamePod(t *testing.T) {
	cluster := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "a", Labels: map[string]string{"env": "dev"}},
		Spec:       fleet.ClusterSpec{KubeConfigSecret: "s", AgentEnvVars: []corev1.EnvVar{{Name: "A", Value: "b"}}},
		Status:     fleet.ClusterStatus{Import: &fleet.ImportStatus{Time: metav1.Now()}},
	}
	with := settings.Agent{Image: "muster-agent:v1", TLSMode: settings.TLSSystemStore, GarbageCollectionInterval: 15 * time.Minute}
	imported := Of(cluster, "id", with, "cattle-fleet-system")
	imported.Bootstrap = &bootstrap.Bootstrap{APIServerURL: "https://hub", Token: "t", TokenName: "n", ClusterNamespace: "clusters"}
	imported.Internal.Generation = Generation(cluster.Status.Import.Time.Time)
	text, err := Overrides(cluster, "id", "cattle-fleet-system", with)
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]any{}
	if err := json.Unmarshal(text, &sent); err != nil {
		t.Fatal(err)
	}
	set(sent, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "internal", "joinedWith") // as the agent adds it
	resources, err := Resources(with)
	if err != nil {
		t.Fatal(err)
	}
	loaded, want := packed(t, resources), find(t, imported, "Deployment")
	if diff := cmp.Diff(want, deploymentOf(t, loaded, sent)); diff != "" {
		t.Errorf("the Deployment (-import +bundle):\n%s", diff)
	}
	for name, text := range rendered(t, loaded, sent) {
		if strings.HasSuffix(name, "config.yaml") && strings.Contains(text, "fleet-agent-bootstrap") {
			t.Error("a bootstrap Secret is rendered for an agent that has joined")
		}
	}
}

// TestAnInstalledAgentAndItsBundleMakeTheSamePod renders what a user installs and what the agent is
// sent after it has joined: the hub does not restart an agent that was just installed.
func TestAnInstalledAgentAndItsBundleMakeTheSamePod(t *testing.T) {
	hub := settings.Default().Agent
	hub.Image = "muster-agent:v1"
	image := map[string]any{"tag": "v1"}
	for name, row := range map[string]struct {
		resources func(settings.Agent) ([]fleet.BundleResource, error)
		values    map[string]any
	}{
		"fleet-agent": {Resources, map[string]any{
			"apiServerURL": "https://hub", "token": "t", "clusterNamespace": "clusters", "image": image,
		}},
		"member-agent": {MemberResources, map[string]any{
			"config": map[string]any{"hubURL": "https://hub", "memberClusterName": "a"}, "image": image,
		}},
	} {
		installed, err := charts.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := row.resources(hub)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(deploymentOf(t, installed, row.values), deploymentOf(t, packed(t, sent), row.values)); diff != "" {
			t.Errorf("%s: the Deployment (-installed +bundle):\n%s", name, diff)
		}
	}
}

// packed loads the chart of a Bundle.
func packed(t *testing.T, resources []fleet.BundleResource) *chart.Chart {
	t.Helper()
	var files []*archive.BufferedFile
	for _, resource := range resources {
		data, err := delivery.File(resource)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, &archive.BufferedFile{Name: resource.Name, Data: data})
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// deploymentOf renders the Deployment of an agent's chart.
func deploymentOf(t *testing.T, loaded *chart.Chart, values map[string]any) map[string]any {
	t.Helper()
	deployment := map[string]any{}
	text := rendered(t, loaded, values)[loaded.Name()+"/templates/deployment.yaml"]
	if err := yaml.Unmarshal([]byte(text), &deployment); err != nil {
		t.Fatal(err)
	}
	made := &unstructured.Unstructured{Object: deployment}
	mark(made, "cattle-fleet-system") // as Helm does
	return made.Object
}

// rendered renders the files of a chart.
func rendered(t *testing.T, loaded *chart.Chart, values map[string]any) map[string]string {
	t.Helper()
	options := common.ReleaseOptions{Name: release, Namespace: "cattle-fleet-system"}
	prepared, err := util.ToRenderValues(loaded, values, options, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(loaded, prepared)
	if err != nil {
		t.Fatal(err)
	}
	return files
}
