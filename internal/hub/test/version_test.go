package hub_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// TestAgentsOfOtherVersionsLiveTheirWholeLife joins members with programs of this source that
// take themselves for other versions than the hub: nothing is decided by the number, and the
// record shows it. It takes minutes: the programs are built for each version, and what they
// delivered is removed.
func TestAgentsOfOtherVersionsLiveTheirWholeLife(t *testing.T) {
	f := newAlone(t, "")
	f.hub.Kill()
	f.hub = testkube.Run(t, "muster-hub@v0.5.0", append(f.hub.Arguments("--kubeconfig", "--namespace"),
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--leader-elect=false")...)
	member := testkube.Start(t, "delivered")
	on := fixture{Client: member.Client(t), t: t, cluster: member}
	_, values := f.token("new-token", "")
	for what, version := range map[string]string{"one minor version older": "v0.4.2", "one newer": "v0.6.0"} {
		id := "v" + fmt.Sprint(len(what))
		name, agent := naming.Cluster(id), "muster-agent@"+version
		f.check(f.Create(context.Background(), &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name, Labels: map[string]string{fleet.LabelNonManagedAgent: "true"}},
			Spec:       fleet.ClusterSpec{ClientID: id},
		}))
		namespace, target := on.copyOf(f.install(values, map[string]any{"clientID": id})), on.namespace("target-")
		testkube.Build(t, "muster-deployer@"+version)
		testkube.Run(t, agent, "--kubeconfig", filepath.Join(member.Dir, "kubeconfig"), "--namespace", namespace,
			"--health-probe-bind-address", "0", "--metrics-bind-address", "0")
		cluster := f.untilReady(name, "Ready")
		f.eventually(what+" is shown", func() error {
			if err := f.get(&cluster, f.workspace, name); err != nil {
				return err
			}
			if cluster.Status.Agent.Version != version {
				return fmt.Errorf("the agent is %+v", cluster.Status.Agent)
			}
			return nil
		})
		// What stays: the removal of all there is would wait for two minutes.
		f.bundle("stays-"+id, "defaultNamespace: "+target+strings.ReplaceAll(configMap, "WORKSPACE", "stays")+
			"targets: [{clusterName: "+name+"}]")
		app := f.bundle("app-"+id, "defaultNamespace: "+target+configMap+"targets: [{clusterName: "+name+"}]")
		f.untilBundle(app.Name, fleet.ConditionReady, corev1.ConditionTrue)
		f.check(on.get(&corev1.ConfigMap{}, target, f.workspace))
		f.check(f.Delete(context.Background(), app))
		f.eventually(what+" removes it", func() error { return gone(on.get(&corev1.ConfigMap{}, target, f.workspace)) })
		f.check(f.Delete(context.Background(), &cluster))
		f.eventually(what+" leaves", func() error { return gone(f.get(&cluster, f.workspace, name)) })
	}
}
