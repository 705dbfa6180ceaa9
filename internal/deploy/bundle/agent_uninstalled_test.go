package bundle

import (
	"fmt"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	helmkube "helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentchart"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

// uninstall is helm uninstall.
func (u user) uninstall() {
	u.t.Helper()
	out := action.NewUninstall(u.configuration)
	out.WaitStrategy = helmkube.HookOnlyStrategy
	_, err := out.Run("fleet-agent")
	u.check(err)
}

// TestAnAgentThatIsUninstalledWhileItReplacesItselfLeavesNothing holds the upgrade by the hub in a
// hook, and lets a user uninstall the agent meanwhile.
func TestAnAgentThatIsUninstalledWhileItReplacesItselfLeavesNothing(t *testing.T) {
	r := newRigAlone(t)
	r.target = r.agent
	u := r.user()
	u.install(map[string]any{
		"apiServerURL": "https://hub.example.com", "token": "t", "tokenName": "n", "clusterNamespace": "clusters",
		"internal": map[string]any{"systemNamespace": r.agent},
	})
	run := r.start()
	resources, err := agentchart.Resources(settings.Agent{})
	r.check(err)
	upgrade := hook
	upgrade.Name = "templates/hook.yaml"
	placed := r.placeWith("fleet-agent-web", func(*fleet.BundleDeploymentSpec) {}, fleet.BundleDeploymentOptions{
		DefaultNamespace: r.agent, Helm: &fleet.HelmOptions{ReleaseName: "fleet-agent", TakeOwnership: true, MaxHistory: 10},
	}, append(resources, upgrade)...)
	r.change(placed, func() { placed.Labels[fleet.LabelAgent] = "v1" })
	r.underWay()

	u.uninstall()
	prepare(t, shared) // the deployer of the test keeps its rights
	r.complete()
	r.says(run, "Deployment waits")
	r.eventually("the revision of the upgrade is withdrawn", func() error {
		list := &corev1.SecretList{}
		if err := r.kube.List(t.Context(),
			list, client.InNamespace(r.agent), client.MatchingLabels{"owner": "helm", "name": "fleet-agent"}); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("revision %s is %s", list.Items[0].Labels["version"], list.Items[0].Labels["status"])
		}
		return nil
	})
	r.nothingOfTheAgent()

	// A new event finds neither a history nor a Deployment: the agent installs itself not again.
	r.change(placed, func() { placed.Spec.Options.ForceSyncGeneration++ })
	r.says(run, "fleet-agent is deleted")
	r.nothingOfTheAgent()
	run.stop()
}

// nothingOfTheAgent fails if an object of the agent's chart exists.
func (r *rig) nothingOfTheAgent() {
	r.t.Helper()
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		r.check(r.kube.List(r.t.Context(), list, client.InNamespace(r.agent)))
		if found := meta.LenList(list); found > 0 {
			r.t.Errorf("%T has %d objects", list, found)
		}
	}
}
