package bundle

import (
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmkube "helm.sh/helm/v4/pkg/kube"
	helm "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentchart"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	memberRelease    = "edge"
	memberDeployment = "edge-member-agent"
)

// installMember is helm install of the chart member-agent in another namespace than the agent's.
func (u user) installMember(values map[string]any) {
	u.t.Helper()
	u.asHelm(func() error {
		in := action.NewInstall(u.configuration)
		in.ReleaseName, in.Namespace, in.SkipCRDs, in.WaitStrategy = memberRelease, u.target, true, helmkube.HookOnlyStrategy
		in.TakeOwnership, in.ForceConflicts = true, true
		_, err := in.Run(u.chart(), values)
		return err
	})
}

// sendMember writes the BundleDeployment of a MemberCluster's agent, as the hub does.
func (r *rig) sendMember(with settings.Agent) *fleet.BundleDeployment {
	r.t.Helper()
	resources, err := agentchart.MemberResources(with)
	r.check(err)
	placed := r.placeWith(naming.MemberAgentChart, func(*fleet.BundleDeploymentSpec) {}, fleet.BundleDeploymentOptions{
		DefaultNamespace: r.agent, Helm: &fleet.HelmOptions{ReleaseName: naming.MemberAgentChart, TakeOwnership: true, MaxHistory: 10},
	}, resources...)
	if placed.Labels[fleet.LabelAgent] == "" {
		r.change(placed, func() { placed.Labels = map[string]string{fleet.LabelAgent: "v1"} })
	}
	return placed
}

// TestTheAgentOfAMemberClusterReplacesItself upgrades a user's release of the chart member-agent
// with no more rights than that chart gives, and leaves it to the user in the end.
func TestTheAgentOfAMemberClusterReplacesItself(t *testing.T) {
	r := newRigAlone(t)
	u := r.userIn(r.target)
	u.chart = func() *chartv2.Chart {
		loaded, err := loader.LoadDir("../../../charts/member-agent")
		r.check(err)
		return loaded
	}
	u.installMember(map[string]any{
		"namespace": r.agent, "proxy": "http://proxy:3128", "image": map[string]any{"repository": "private/muster-agent"},
		"config":       map[string]any{"hubURL": "https://hub.example.com", "memberClusterName": "my-cluster"},
		"secret":       map[string]any{"name": "token", "namespace": r.target},
		"nodeSelector": map[string]any{"disk": "ssd"},
	})
	r.check(r.kube.Delete(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: r.agent}}))
	r.create(&rbacv1.ClusterRoleBinding{ // the deployer of the rig has the account of the chart fleet-agent
		ObjectMeta: metav1.ObjectMeta{Name: r.agent},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: memberDeployment + "-delivery"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "fleet-agent", Namespace: r.agent}},
	})
	cluster := r.reach(nil)
	cluster.Agent = release.Agent{
		ID: release.ID{Namespace: r.target, Name: memberRelease}, Chart: naming.MemberAgentChart, Deployment: memberDeployment,
	}
	r.onlyAgent = true
	run := r.startOn(cluster)

	r.place("other", fleet.BundleDeploymentOptions{}, configMap("other", "one"))
	r.until("other", fleet.StateErrApplied, "a MemberCluster gets only its own agent")
	foreign := r.setAgent(settings.Agent{}, nil)
	r.until(foreign.Name, fleet.StateErrApplied, "the hub sent chart fleet-agent")
	r.check(r.kube.Delete(t.Context(), foreign))

	sent := r.sendMember(settings.Agent{Image: "muster-agent:v2", Registry: "registry.example.com", PullSecrets: []string{"pull"}})
	r.eventually("the agent has the hub's version", func() error {
		if found := r.get(sent.Name); found.Status.AppliedDeploymentID != sent.Spec.DeploymentID {
			return fmt.Errorf("it is %+v", found.Status)
		}
		return nil
	})
	deployment := &appsv1.Deployment{}
	r.check(r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.agent, Name: memberDeployment}, deployment))
	pod := deployment.Spec.Template.Spec
	if image := pod.Containers[0].Image; image != "private/muster-agent:v2" {
		t.Errorf("the image is %s, want the user's in the hub's version", image)
	}
	if env(deployment)["HTTPS_PROXY"] != "http://proxy:3128" || pod.NodeSelector["disk"] != "ssd" ||
		pod.ImagePullSecrets[0].Name != "pull" {
		t.Errorf("the environment is %v, the nodes are %v, the secrets %v", env(deployment), pod.NodeSelector, pod.ImagePullSecrets)
	}
	if env(deployment)["HELM_RELEASE"] != r.target+"/"+memberRelease || env(deployment)["DEPLOYMENT"] != memberDeployment {
		t.Errorf("the agent takes its release for %v", env(deployment))
	}

	r.check(r.kube.Delete(t.Context(), r.get(sent.Name)))
	r.says(run, "Release removed")
	run.stop()
	found, err := u.configuration.Releases.Last(memberRelease)
	r.check(err)
	if last := found.(*helm.Release); last.Chart.Metadata.Annotations["fleet.cattle.io/bundle-id"] != "" || last.Version != 2 ||
		!strings.HasPrefix(fmt.Sprint(last.Config["namespace"]), "agent-") {
		t.Errorf("revision %d is still the hub's: %v", last.Version, last.Chart.Metadata.Annotations)
	}
	r.check(r.kube.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment))
}
