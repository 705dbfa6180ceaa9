package agent

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// ordered plays the deployer, and passes on the kinds of each order.
func ordered(kinds chan<- []protocol.Kind) func(*Options) {
	return func(o *Options) {
		o.Delivery.Simulation = func(ctx context.Context, orders io.Reader, _ io.Writer) error {
			go func() {
				_ = protocol.ReadOrders(orders, func(order protocol.Order) { kinds <- order.Kinds }) // until the pipe is closed
			}()
			<-ctx.Done()
			return nil
		}
	}
}

// mayDeliver gives the agent the rights on what it delivers.
func (m *testMember) mayDeliver() {
	m.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: m.namespace + "-delivery"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}},
		{APIGroups: []string{placement.GroupVersion.Group}, Resources: []string{"appliedworks"}, Verbs: []string{"list"}},
	}}
	_, err := m.kube.RbacV1().ClusterRoles().Create(m.t.Context(), role, metav1.CreateOptions{})
	check(m.t, err)
	_, err = m.kube.RbacV1().ClusterRoleBindings().Create(m.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "fleet-agent", Namespace: m.namespace}},
	}, metav1.CreateOptions{})
	check(m.t, err)
}

func TestTheDeployerSeesToWorksFromTheFirstOneOn(t *testing.T) {
	for name, row := range map[string]struct {
		// left says that something of an earlier Work is on the member.
		left  bool
		first []protocol.Kind
	}{
		"a member without any":                      {false, []protocol.Kind{protocol.Bundles}},
		"a member with an AppliedWork that is left": {true, []protocol.Kind{protocol.Bundles, protocol.Works}},
	} {
		t.Run(name, func(t *testing.T) {
			hub, member := newCluster(t)
			member.mayDeliver()
			hub.serve(hub.grant)
			hub.prepare(time.Hour)
			hub.bind(hub.namespace, "works", naming.MemberServiceAccount, rbacv1.PolicyRule{
				APIGroups: []string{placement.GroupVersion.Group}, Resources: []string{"works"}, Verbs: []string{"get", "list", "watch"},
			})
			resource := placement.GroupVersion.WithResource("appliedworks")
			applied, err := kubeclient.Of[placement.AppliedWork, placement.AppliedWorkList](hub.connection, resource, "")
			check(t, err)
			if row.left {
				_, err := applied.Create(t.Context(), &placement.AppliedWork{
					ObjectMeta: metav1.ObjectMeta{Name: hub.namespace},
					Spec:       placement.AppliedWorkSpec{WorkName: "web", WorkNamespace: hub.namespace},
				}, metav1.CreateOptions{})
				check(t, err)
			}
			web := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			_, err = hub.deployments().Create(t.Context(), web, metav1.CreateOptions{})
			check(t, err)
			member.bootstrap(hub.values())
			orders := make(chan []protocol.Kind, 10)
			agent := member.start(ordered(orders))
			agent.untilJoined()
			if got := <-orders; !slices.Equal(got, row.first) {
				t.Fatalf("the first order is about %v, want %v", got, row.first)
			}
			if row.left {
				return
			}
			admin, err := dynamic.NewForConfig(hub.config)
			check(t, err)
			work := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": placement.GroupVersion.String(), "kind": "Work", "metadata": map[string]any{"name": "web"},
				"spec": map[string]any{"workload": map[string]any{}},
			}}
			_, err = admin.Resource(hubclient.Works).Namespace(hub.namespace).Create(t.Context(), work, metav1.CreateOptions{})
			check(t, err)
			for got := range orders {
				if slices.Contains(got, protocol.Works) {
					break
				}
			}
		})
	}
}
