package hub_test

import (
	"path/filepath"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	helmkube "helm.sh/helm/v4/pkg/kube"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-fleet/muster/internal/naming"
)

// TestHelmUpgradeWithTheValuesOfAnotherTokenMovesTheCluster: Helm waits to see the Secret that it
// makes, and the agent, which runs all the time, deletes it; the clientID comes with the ConfigMap,
// which Helm writes later.
func TestHelmUpgradeWithTheValuesOfAnotherTokenMovesTheCluster(t *testing.T) {
	f := newFixture(t)
	g := f.neighbour()
	cluster := turnApart(t, "migrated") // some of what the chart makes has no namespace
	on := fixture{Client: cluster.Client(t), t: t, cluster: cluster}
	m := &member{fixture: on, agentNamespace: on.namespace("agent-")}
	settings := cli.New()
	settings.KubeConfig = filepath.Join(cluster.Dir, "kubeconfig")
	settings.SetNamespace(m.agentNamespace)
	configuration := action.NewConfiguration()
	f.check(configuration.Init(settings.RESTClientGetter(), m.agentNamespace, "secret"))
	chart, err := loader.LoadDir("../../../charts/fleet-agent")
	f.check(err)
	values := func(of map[string]string, clientID string) map[string]any {
		return map[string]any{
			"apiServerURL": f.cluster.Config.Host, "apiServerCA": string(f.cluster.Config.CAData), "clientID": clientID,
			"token": of["token"], "tokenName": of["tokenName"], "clusterNamespace": of["clusterNamespace"],
			"internal": map[string]any{"systemNamespace": m.agentNamespace},
		}
	}
	upgrade := func(values map[string]any) {
		t.Helper()
		up := action.NewUpgrade(configuration)
		up.Namespace, up.WaitStrategy = m.agentNamespace, helmkube.HookOnlyStrategy
		_, err := up.Run("fleet-agent", chart, values)
		f.check(err)
	}
	forgotten := func() {
		t.Helper()
		f.eventually("the token is forgotten", func() error {
			return gone(m.get(&corev1.Secret{}, m.agentNamespace, naming.AgentBootstrapSecret))
		})
	}
	_, first := f.token("new-token", "")
	install := action.NewInstall(configuration)
	install.ReleaseName, install.Namespace, install.SkipCRDs, install.TakeOwnership = "fleet-agent", m.agentNamespace, true, true
	install.WaitStrategy = helmkube.HookOnlyStrategy
	_, err = install.Run(chart, values(first, "by-helm"))
	f.check(err)
	f.uninstallLater(configuration)
	m.start()
	here := naming.Cluster("by-helm")
	uid := f.untilReady(here, "Ready").UID
	forgotten()

	upgrade(values(first, "by-helm"))
	forgotten()
	if cluster := f.untilReady(here, "Ready"); cluster.UID != uid || f.onlyGranted(here) != nil {
		t.Error("an upgrade with the same values registered again")
	}

	_, second := g.token("other-token", "")
	upgrade(values(second, "by-helm-elsewhere"))
	g.untilReady(naming.Cluster("by-helm-elsewhere"), "Ready")
	f.saysReady(here, "AgentLeft", "registered as "+g.workspace)
	forgotten()
	if all := g.clusters(); len(all) != 1 {
		t.Errorf("it registered as %d Clusters", len(all))
	}
}
