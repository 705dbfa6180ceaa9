package hub_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestTheHubIsAMemberOfItsOwnFleet(t *testing.T) {
	f := newFixture(t)
	const account = "fleet-controller-bootstrap"
	m := &member{fixture: f, agentNamespace: f.namespace("agent-")}
	f.check(f.Create(context.Background(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: account}}))
	f.check(f.Create(context.Background(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: naming.SystemNamespace, Name: account}},
	}))
	f.settings(fmt.Sprintf(`{"bootstrap":{"namespace":%q,"agentNamespace":%q}}`, f.workspace, m.agentNamespace))
	i := importing{fixture: f, down: f.cluster, remote: f.Client, agentNamespace: m.agentNamespace}
	i.imported("local", "Imported")
	m.start()
	cluster := f.untilReady("local", "Ready")
	if cluster.Labels["name"] != "local" || cluster.Status.Import.APIServerURL != testkube.Start(t, "hub").Config.Host {
		t.Errorf("the local cluster is %v and was sent to %s", cluster.Labels, cluster.Status.Import.APIServerURL)
	}
}
