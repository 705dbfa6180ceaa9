package agentchart

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/bootstrap"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

var agent = settings.Agent{
	Image: "registry.example.com/muster-agent:v1", Registry: "registry.example.com", TLSMode: settings.TLSSystemStore,
	GarbageCollectionInterval: 15 * time.Minute,
}

func of(change func(*fleet.Cluster)) Values {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "a"}}
	cluster.Labels = map[string]string{"env": "dev", "management.cattle.io/x": "y"}
	if change != nil {
		change(cluster)
	}
	v := Of(cluster, "really-random", agent, "cattle-fleet-system")
	v.Bootstrap = &bootstrap.Bootstrap{APIServerURL: "https://hub", Token: "t", TokenName: "n", ClusterNamespace: "clusters"}
	return v
}

func find(t *testing.T, values Values, kind string) map[string]any {
	t.Helper()
	objects, err := Render(values)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() == kind {
			return object.Object
		}
	}
	t.Fatalf("no %s was rendered", kind)
	return nil
}

func TestEverythingThatAClusterCanAskForReachesTheManifest(t *testing.T) {
	on, never := true, corev1.PreemptNever
	values := of(func(c *fleet.Cluster) {
		c.Spec = fleet.ClusterSpec{
			AgentNamespace: "agents", PrivateRepoURL: "private.example.com", HostNetwork: &on,
			AgentEnvVars:     []corev1.EnvVar{{Name: "A", Value: "b"}},
			AgentTolerations: []corev1.Toleration{{Key: "edge"}},
			AgentAffinity:    &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
			AgentPullSecrets: &[]corev1.LocalObjectReference{{Name: "mine"}},
			AgentSchedulingCustomization: &fleet.AgentSchedulingCustomization{
				PriorityClass:       &fleet.PriorityClassSpec{Value: 7, PreemptionPolicy: &never},
				PodDisruptionBudget: &fleet.PodDisruptionBudgetSpec{MaxUnavailable: "50%"},
			},
		}
	})
	deployment := find(t, values, "Deployment")
	pod, _, _ := unstructured.NestedMap(deployment, "spec", "template", "spec")
	container := pod["containers"].([]any)[0].(map[string]any)
	env := container["env"].([]any)
	got := map[string]any{
		"namespace": deployment["metadata"].(map[string]any)["namespace"], "image": container["image"], "env": env[len(env)-1],
		"hostNetwork": pod["hostNetwork"], "tolerations": pod["tolerations"], "affinity": pod["affinity"],
		"imagePullSecrets": pod["imagePullSecrets"], "priorityClassName": pod["priorityClassName"],
		"priority": find(t, values, "PriorityClass")["value"], "preemption": find(t, values, "PriorityClass")["preemptionPolicy"],
		"budget": find(t, values, "PodDisruptionBudget")["spec"].(map[string]any)["maxUnavailable"],
	}
	want := map[string]any{
		"namespace": "agents", "image": "private.example.com/muster-agent:v1", "env": map[string]any{"name": "A", "value": "b"},
		"hostNetwork": true, "tolerations": []any{map[string]any{"key": "edge"}}, "affinity": map[string]any{"nodeAffinity": map[string]any{}},
		"imagePullSecrets": []any{map[string]any{"name": "mine"}}, "priorityClassName": "fleet-agent-priority-class",
		"priority": float64(7), "preemption": "Never", "budget": "50%",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheManifestIsTheChartsInAnOrderThatCanBeApplied(t *testing.T) {
	objects, err := Render(of(nil))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, object := range objects {
		kinds = append(kinds, object.GetKind())
		annotations := object.GetAnnotations()
		if _, isHook := annotations["helm.sh/hook"]; isHook {
			t.Errorf("%s %s is a hook", object.GetKind(), object.GetName())
		}
		isOfRelease := annotations["meta.helm.sh/release-name"] == "fleet-agent" &&
			annotations["meta.helm.sh/release-namespace"] == "cattle-fleet-system" &&
			object.GetLabels()["app.kubernetes.io/managed-by"] == "Helm"
		if others := []string{"Namespace", "Secret"}; isOfRelease == slices.Contains(others, object.GetKind()) {
			t.Errorf("%s %s is of the release: %t", object.GetKind(), object.GetName(), isOfRelease)
		}
	}
	want := []string{"Namespace", "CustomResourceDefinition", "ConfigMap", "Secret", "NetworkPolicy", "ServiceAccount", "Role", "RoleBinding",
		"ClusterRole", "ClusterRoleBinding", "ClusterRole", "ClusterRoleBinding", "Deployment"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatTheChartRefusesIsOneSentence(t *testing.T) {
	values := of(nil)
	values.APIServerURL = "hub"
	_, err := Render(values)
	if err == nil || !strings.HasPrefix(err.Error(), `rendering the agent's chart: apiServerURL is "hub"`) {
		t.Errorf("got %v", err)
	}
}

func TestTheHashIsOfTheSettingsAlone(t *testing.T) {
	hash := of(nil).Hash()
	for name, c := range map[string]struct {
		change func(*fleet.Cluster)
		same   bool
	}{
		"labels":         {func(c *fleet.Cluster) { c.Labels["a"] = "b" }, true},
		"the kubeconfig": {func(c *fleet.Cluster) { c.Spec.KubeConfigSecret = "x" }, true},
		"the namespace":  {func(c *fleet.Cluster) { c.Spec.AgentNamespace = "x" }, false},
		"environment":    {func(c *fleet.Cluster) { c.Spec.AgentEnvVars = []corev1.EnvVar{{Name: "A"}} }, false},
		"no pull secret": {func(c *fleet.Cluster) { c.Spec.AgentPullSecrets = &[]corev1.LocalObjectReference{} }, true},
	} {
		if got := of(c.change).Hash() == hash; got != c.same {
			t.Errorf("%s: same hash is %t", name, got)
		}
	}
	other := of(nil)
	other.Token = "another"
	if other.Hash() != hash {
		t.Error("a new token counts as a change of the settings")
	}
}

func TestImagesAreDividedAsTheChartJoinsThem(t *testing.T) {
	for reference, want := range map[string]image{
		"muster-agent:v1":                {Repository: "muster-agent", Tag: "v1"},
		"localhost:5000/muster-agent":    {Repository: "localhost:5000/muster-agent"},
		"localhost:5000/muster-agent:v1": {Repository: "localhost:5000/muster-agent", Tag: "v1"},
		"muster-agent@sha256:abc":        {Repository: "muster-agent@sha256", Tag: "abc"},
		"":                               {},
	} {
		if got := splitImage(reference); got != want {
			t.Errorf("%q: got %+v, want %+v", reference, got, want)
		}
	}
}
