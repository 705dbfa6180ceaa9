package bundle

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	helmkube "helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	contents "github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentchart"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

// user runs Helm's command on the agent's cluster. The deployer must not run at the same time,
// because Helm has one field manager per program.
type user struct {
	*rig
	configuration *action.Configuration
	chart         func() *chartv2.Chart
}

func (r *rig) user() user { return r.userIn(r.agent) }

// userIn is one who works in another namespace.
func (r *rig) userIn(namespace string) user {
	r.t.Helper()
	settings := cli.New()
	settings.KubeConfig = filepath.Join(r.cluster.Dir, "kubeconfig")
	settings.SetNamespace(namespace)
	configuration := action.NewConfiguration()
	r.check(configuration.Init(settings.RESTClientGetter(), namespace, "secret"))
	return user{r, configuration, func() *chartv2.Chart {
		loaded, err := loader.LoadDir("../../../charts/fleet-agent")
		r.check(err)
		return loaded
	}}
}

func (u user) asHelm(do func() error) {
	u.t.Helper()
	defer u.actAs("helm")()
	u.check(do())
}

// actAs gives Helm the name of another program, until the returned function is called. The name is
// a variable of the process, so no other test may run.
func (r *rig) actAs(program string) (end func()) {
	r.t.Helper()
	if !r.alone {
		r.t.Fatal("the test needs newRigAlone")
	}
	helmkube.ManagedFieldsManager = program
	return func() { helmkube.ManagedFieldsManager = release.FieldManager }
}

func (u user) install(values map[string]any) {
	u.t.Helper()
	u.asHelm(func() error {
		in := action.NewInstall(u.configuration)
		in.ReleaseName, in.Namespace, in.TakeOwnership, in.ForceConflicts, in.SkipCRDs = "fleet-agent", u.agent, true, true, true
		in.WaitStrategy = helmkube.HookOnlyStrategy
		_, err := in.Run(u.chart(), values)
		return err
	})
}

// upgrade is helm upgrade --reuse-values.
func (u user) upgrade(values map[string]any) {
	u.t.Helper()
	u.asHelm(func() error {
		up := action.NewUpgrade(u.configuration)
		up.Namespace, up.ReuseValues, up.WaitStrategy = u.agent, true, helmkube.HookOnlyStrategy
		_, err := up.Run("fleet-agent", u.chart(), values)
		return err
	})
}

func (u user) rollback(to int) {
	u.t.Helper()
	u.asHelm(func() error {
		back := action.NewRollback(u.configuration)
		back.Version, back.WaitStrategy = to, helmkube.HookOnlyStrategy
		return back.Run("fleet-agent")
	})
}

func (r *rig) agentDeployment() *appsv1.Deployment {
	r.t.Helper()
	found := &appsv1.Deployment{}
	r.check(r.kube.Get(r.t.Context(), client.ObjectKey{Namespace: r.agent, Name: "fleet-agent"}, found))
	return found
}

// placeAgent places the Bundle of the agent itself, and waits until it is deployed.
func (r *rig) placeAgent(settings settings.Agent, values map[string]any) {
	r.t.Helper()
	placed := r.setAgent(settings, values)
	r.eventually("the Bundle of the agent is deployed", func() error {
		found := r.get("fleet-agent-web")
		if found.Status.AppliedDeploymentID != placed.Spec.DeploymentID {
			return fmt.Errorf("it is %+v", found.Status)
		}
		return nil
	})
}

// setAgent places the Bundle of the agent itself.
func (r *rig) setAgent(settings settings.Agent, values map[string]any) *fleet.BundleDeployment {
	r.t.Helper()
	resources, err := agentchart.Resources(settings)
	r.check(err)
	raw, err := json.Marshal(values)
	r.check(err)
	placed := r.placeWith("fleet-agent-web", func(*fleet.BundleDeploymentSpec) {}, fleet.BundleDeploymentOptions{
		DefaultNamespace: r.agent,
		Helm: &fleet.HelmOptions{
			ReleaseName: "fleet-agent", TakeOwnership: true, MaxHistory: 10, Values: &runtime.RawExtension{Raw: raw},
		},
	}, resources...)
	if placed.Labels[fleet.LabelAgent] == "" {
		r.change(placed, func() { placed.Labels[fleet.LabelAgent] = "v1" })
	}
	return placed
}

func (u user) revision() *helm.Release {
	u.t.Helper()
	found, err := u.configuration.Releases.Last("fleet-agent")
	u.check(err)
	return found.(*helm.Release)
}

func env(deployment *appsv1.Deployment) map[string]string {
	values := map[string]string{}
	for _, v := range deployment.Spec.Template.Spec.Containers[0].Env {
		if v.ValueFrom == nil {
			values[v.Name] = v.Value
		}
	}
	return values
}

// TestTheReleaseThatAUserInstalledIsAdopted follows the release of an agent from its installation
// until the hub leaves it to the user again.
func TestTheReleaseThatAUserInstalledIsAdopted(t *testing.T) {
	r := newRigAlone(t)
	u := r.user()
	own := map[string]any{
		"apiServerURL": "https://hub.example.com", "token": "t", "tokenName": "n", "clusterNamespace": "clusters", "proxy": "http://proxy:3128",
		"labels": map[string]any{"env": "dev"}, "image": map[string]any{"repository": "private/muster-agent"},
		"fleetAgent": map[string]any{"nodeSelector": map[string]any{"disk": "ssd"}},
		"internal":   map[string]any{"systemNamespace": r.agent},
	}
	u.install(own)
	// as the agent does
	r.check(r.kube.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.agent, Name: "fleet-agent-bootstrap"}}))
	before := r.agentDeployment()
	first := r.start()

	r.placeAgent(settings.Agent{}, nil)
	after := r.agentDeployment()
	if diff := cmp.Diff(before.Spec.Template, after.Spec.Template); diff != "" {
		t.Errorf("the pod is another one, though nothing is new (-want +got):\n%s", diff)
	}
	if err := r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.agent, Name: "fleet-agent-bootstrap"},
		&corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the bootstrap Secret came back: %v", err)
	}

	r.placeAgent(settings.Agent{Image: "muster-agent:v2"}, map[string]any{
		"fleetAgent": map[string]any{"extraEnv": []any{map[string]any{"name": "A", "value": "b"}}},
	})
	after = r.agentDeployment()
	if image := after.Spec.Template.Spec.Containers[0].Image; image != "private/muster-agent:v2" {
		t.Errorf("the image is %s, want the user's in the hub's version", image)
	}
	if env(after)["HTTPS_PROXY"] != "http://proxy:3128" || env(after)["A"] != "b" || after.Spec.Template.Spec.NodeSelector["disk"] != "ssd" {
		t.Errorf("the environment is %v, the nodes are %v", env(after), after.Spec.Template.Spec.NodeSelector)
	}

	first.stop()
	u.upgrade(map[string]any{"debug": true})
	if env(r.agentDeployment())["A"] != "b" {
		t.Error("the user's upgrade lost what the hub has set")
	}
	second := r.start()
	r.placeAgent(settings.Agent{Image: "muster-agent:v3"}, nil)
	after = r.agentDeployment()
	if _, there := env(after)["A"]; there || after.Spec.Template.Spec.Containers[0].Image != "private/muster-agent:v3" {
		t.Errorf("what the hub withdrew stays: %v, image %s", env(after), after.Spec.Template.Spec.Containers[0].Image)
	}
	wanted := loader.MergeMaps(own, map[string]any{
		"debug": true, "internal": map[string]any{"joinedWith": u.revision().Config["internal"].(map[string]any)["joinedWith"]},
	})
	if diff := cmp.Diff(wanted, u.revision().Config); diff != "" {
		t.Errorf("the user's values (-want +got):\n%s", diff)
	}

	second.stop()
	u.rollback(1)
	third := r.start()
	r.placeAgent(settings.Agent{Image: "muster-agent:v4"}, nil)
	if after = r.agentDeployment(); after.Spec.Template.Spec.Containers[0].Image != "private/muster-agent:v4" ||
		env(after)["HTTPS_PROXY"] == "" {
		t.Errorf("after a rollback the image is %s, the environment %v", after.Spec.Template.Spec.Containers[0].Image, env(after))
	}

	r.check(r.kube.Delete(t.Context(), r.get("fleet-agent-web")))
	r.says(third, "Release removed")
	third.stop()
	if last := u.revision(); last.Chart.Metadata.Annotations["fleet.cattle.io/bundle-id"] != "" ||
		r.agentDeployment().DeletionTimestamp != nil {
		t.Errorf("the release is still the hub's: %v", last.Chart.Metadata.Annotations)
	}
	u.upgrade(map[string]any{"debug": false})
	if last := u.revision(); last.Config["proxy"] != "http://proxy:3128" {
		t.Errorf("the user goes on with %v", last.Config)
	}
}

// TestAUsersUpgradeIsAdoptedWhileTheDeployerLooksOn plays what Helm's command leaves behind,
// because Helm has one field manager per program.
func TestAUsersUpgradeIsAdoptedWhileTheDeployerLooksOn(t *testing.T) {
	r := newRigAlone(t)
	u := r.user()
	u.install(map[string]any{
		"apiServerURL": "https://hub.example.com", "token": "t", "tokenName": "n", "clusterNamespace": "clusters",
		"internal": map[string]any{"systemNamespace": r.agent},
	})
	run := r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.placeAgent(settings.Agent{}, nil)
	settled := r.until("fleet-agent-web", fleet.StateNotReady) // no kubelet runs its pod here

	last := u.revision()
	next := *last
	next.Chart, next.Version, next.Config = u.chart(), last.Version+1, loader.MergeMaps(last.Config, map[string]any{"debug": true})
	info := *last.Info
	info.Status, info.LastDeployed = common.StatusPendingUpgrade, time.Now()
	next.Info = &info
	r.check(u.configuration.Releases.Create(&next))
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"config":"{}"}}`))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.agent, Name: "fleet-agent"}}
	r.check(r.kube.Patch(t.Context(), object, patch, client.FieldOwner("helm")))
	r.says(run, "Deployment waits")
	if now := r.get("fleet-agent-web"); contents.StateOf(now) != contents.StateOf(settled) || len(now.Status.ModifiedStatus) > 0 {
		t.Errorf("while Helm's command is at work it says %+v", now.Status)
	}
	info.Status = common.StatusDeployed
	r.check(u.configuration.Releases.Update(&next))
	r.eventually("the user's upgrade is adopted", func() error {
		found := u.revision()
		if found.Chart.Metadata.Annotations["fleet.cattle.io/bundle-id"] == "" || found.Config["debug"] != true {
			return fmt.Errorf("revision %d has %v", found.Version, found.Config)
		}
		return nil
	})
	r.until("fleet-agent-web", fleet.StateNotReady)
}

// TestTheAgentsOwnReleaseNeedsNoWatching lets the deployer end once the agent is well. No kubelet
// runs the agent's pod here, so the test gives the agent a release without pods.
func TestTheAgentsOwnReleaseNeedsNoWatching(t *testing.T) {
	r := newRigAlone(t)
	run := r.start()
	placed := r.placeWith("fleet-agent-web", func(*fleet.BundleDeploymentSpec) {}, fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.change(placed, func() { placed.Labels[fleet.LabelAgent] = "v1" })
	r.until("fleet-agent-web", fleet.StateReady)
	r.nothingLeftToDo(run, 0)
}

// TestAnAgentWithoutAReleaseKeepsItsSettings has an agent of rendered manifests, as GitOps applies
// them. Another clientID would make it another Cluster.
func TestAnAgentWithoutAReleaseKeepsItsSettings(t *testing.T) {
	r := newRig(t)
	r.check(r.kube.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.agent, Name: "fleet-agent"},
		Data: map[string]string{"config": `{"clientID":"web-1","labels":{"env":"prod"},"agentTLSMode":"strict"}`}}))
	r.start()
	r.placeAgent(settings.Agent{}, map[string]any{"internal": map[string]any{"systemNamespace": r.agent}})
	var configMap corev1.ConfigMap
	r.check(r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.agent, Name: "fleet-agent"}, &configMap))
	var config struct {
		ClientID, AgentTLSMode string
		Labels                 map[string]string
	}
	r.check(json.Unmarshal([]byte(configMap.Data["config"]), &config))
	if config.ClientID != "web-1" || config.Labels["env"] != "prod" || config.AgentTLSMode != "strict" {
		t.Errorf("the agent is configured as %s", configMap.Data["config"])
	}
}
