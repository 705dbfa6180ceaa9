package crash

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// clusterToImport makes the kubeconfig by which the hub reaches the member.
func (in *run) clusterToImport() {
	in.t.Helper()
	in.newNode()
	reach := in.wire.front(in.t, in.node.own, func(*http.Request) string { return hub })
	in.create(in.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in.id, Name: "kubeconfig"}, Data: map[string][]byte{
		"value":        reach.Kubeconfig(in.t, bearer(in.t, in.on, metav1.NamespaceDefault, "agent")),
		"apiServerURL": []byte(in.hubFront.Config.Host), "apiServerCA": in.hubFront.Config.CAData,
	}})
}

// importCluster has the hub install the agent, which the hub does not manage: that is another scenario.
func (in *run) importCluster() {
	in.t.Helper()
	cluster := in.cluster()
	cluster.Labels = map[string]string{fleet.LabelNonManagedAgent: "true"}
	cluster.Spec.KubeConfigSecret, cluster.Spec.AgentNamespace = "kubeconfig", in.agentNamespace()
	in.create(in.Client, cluster)
	in.untilTrue(fleet.ConditionReady)
}

// configure writes the settings of the hub.
func (in *run) configure(settings string) {
	in.t.Helper()
	of := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubConfigMap}}
	in.change(of, func() { of.Data = map[string]string{"config": settings} })
}
