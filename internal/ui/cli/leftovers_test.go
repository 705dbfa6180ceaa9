package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

func TestWhatRancherFleetHasLeftIsOnlyWhatItsMarksProve(t *testing.T) {
	h := newAccess()
	if err := rbacv1.AddToScheme(h.scheme); err != nil {
		t.Fatal(err)
	}
	record := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-default", Name: "c-1"}}
	member := membernamespace.OfCluster(record).Namespace
	const request = "fleet.cattle.io/v1alpha1, Kind=ClusterRegistration"
	registered := func(o client.Object, name, namespace, by string) client.Object {
		o.SetName(name)
		o.SetNamespace(namespace)
		o.SetAnnotations(map[string]string{"fleet.cattle.io/cluster": "c-1"})
		inSet(o, "cluster-registration", request, by, "fleet-default")
		return o
	}
	claims := registered(&corev1.ServiceAccount{}, "claims", member, "request-3")
	claims.GetLabels()["objectset.rio.cattle.io/hash"] = "0000"
	agentRole := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cattle-fleet-system-fleet-agent-role"}}
	inSet(agentRole, "fleet-agent-c-1", "", "", "")
	c := &checked{access: h, Client: fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(
		registered(&corev1.ServiceAccount{}, "request-1-uid", member, "request-1"),
		registered(&corev1.Secret{}, "c-1", "cattle-fleet-clusters-system", "request-1"),
		registered(&rbacv1.ClusterRoleBinding{}, "request-1-content", "", "request-1"),
		registered(&rbacv1.Role{}, "request-1", "fleet-default", "request-1"),
		registered(&corev1.ServiceAccount{}, "request-2-uid", member, "request-2"),
		registered(&rbacv1.ClusterRoleBinding{}, "request-2-content", "", "request-2"),
		claims, registered(&rbacv1.ClusterRoleBinding{}, "others", "", "request-9"), &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Namespace: member, Name: "agent"},
		},
		agentRole, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "cattle-fleet-system-fleet-agent-role-binding"}}).Build()}
	found, err := c.registrationsOf(t.Context(), record, "system:serviceaccount:"+member+":request-2-uid")
	if err != nil {
		t.Fatal(err)
	}
	onMember, err := c.agentRightsOfRancher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range append(found, onMember...) {
		_, command, _ := strings.Cut(l.String(), "kubectl --context CONTEXT ")
		got = append(got, command)
	}
	want := []string{"delete clusterrolebinding request-1-content", "-n fleet-default delete role request-1",
		"-n cattle-fleet-clusters-system delete secret c-1",
		"-n " + member + " delete serviceaccount request-1-uid", "delete clusterrole cattle-fleet-system-fleet-agent-role"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
