package cli

import (
	"context"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// TestLeftoversOfRancherFleetAreRemovedAndNoNamesakes uses one cluster as hub and member. The
// cluster has objects of Rancher Fleet, and objects of another owner with the names or labels of
// Rancher Fleet's.
func TestLeftoversOfRancherFleetAreRemovedAndNoNamesakes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	cluster := testkube.Turn(t, "cli-leftovers")
	it, ctx := their{t, cluster, cluster.Client(t)}, t.Context()
	record := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c-1"}}
	member := membernamespace.OfCluster(record).Namespace
	for _, namespace := range []string{member, naming.SystemNamespace} {
		it.check(client.IgnoreAlreadyExists(it.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	}
	const request = "fleet.cattle.io/v1alpha1, Kind=ClusterRegistration"
	has := func(o client.Object, namespace, name string, mark func(client.Object)) client.Object {
		o.SetNamespace(namespace)
		o.SetName(name)
		o.SetAnnotations(map[string]string{"fleet.cattle.io/cluster": "c-1"})
		if mark != nil {
			mark(o)
		}
		if binding, is := o.(*rbacv1.ClusterRoleBinding); is {
			binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
		}
		it.check(it.Create(ctx, o))
		return o
	}
	registers := func(by string) func(client.Object) {
		return func(o client.Object) { inSet(o, "cluster-registration", request, by, "default") }
	}
	claims := func(o client.Object) { // to be of the set, which its annotations do not confirm
		registers("request-1")(o)
		o.SetAnnotations(map[string]string{"objectset.rio.cattle.io/id": "another"})
	}
	const agentRole = naming.SystemNamespace + "-fleet-agent-role"
	goes := []client.Object{
		has(&corev1.ServiceAccount{}, member, "request-1-uid", registers("request-1")),
		has(&rbacv1.ClusterRoleBinding{}, "", "request-1-content", registers("request-1")),
		has(&rbacv1.Role{}, "default", "request-1", registers("request-1")),
		has(&corev1.Secret{}, naming.SystemNamespace, "c-1", registers("request-1")),
		has(&rbacv1.ClusterRole{}, "", agentRole, func(o client.Object) { inSet(o, "default-fleet-agent-c-1", "", "", "") }),
	}
	stays := []client.Object{
		// which the agent uses
		has(&corev1.ServiceAccount{}, member, "request-2-uid", registers("request-2")),
		has(&rbacv1.Role{}, "default", "request-2", registers("request-2")),
		has(&corev1.ServiceAccount{}, "default", "request-1-uid", nil), has(&rbacv1.Role{}, member, "request-1", nil),
		has(&corev1.Secret{}, member, "c-1", claims),
		has(&rbacv1.ClusterRoleBinding{}, "", agentRole+"-binding", nil),
		has(&rbacv1.ClusterRole{}, "", "request-1-content", registers("request-9")),
	}
	h := newAccess()
	it.check(rbacv1.AddToScheme(h.scheme))
	on := &checked{access: h, Client: it.Client}
	native := false
	agent := &migratedAgent{cluster: on, record: record, account: "system:serviceaccount:" + member + ":request-2-uid",
		native: func(context.Context) (bool, error) { return native, nil }}
	run := func(remove, dryRun bool) string {
		t.Helper()
		var said strings.Builder
		m := &migrator{removeLeftovers: remove, dryRun: dryRun, progress: newProgress(io.Writer(&said))}
		it.check(m.leftovers(ctx, on, agent))
		return said.String()
	}
	there := func(objects []client.Object, want bool) {
		t.Helper()
		for _, o := range objects {
			kind, err := apiutil.GVKForObject(o, h.scheme)
			it.check(err)
			found := kube.Metadata(kind)
			err = it.Get(ctx, client.ObjectKeyFromObject(o), found)
			if err == nil && found.UID != o.GetUID() || err != nil && !apierrors.IsNotFound(err) || (err == nil) != want {
				t.Errorf("%T %s/%s: %v", o, o.GetNamespace(), o.GetName(), err)
			}
		}
	}
	if said := run(true, false); said != "" { // Rancher Fleet's agent needs them
		t.Errorf("while Rancher Fleet's agent acts it says %s", said)
	}
	native = true
	for _, said := range []string{run(false, false), run(true, true)} {
		if !strings.Contains(said, "has left 5 objects") || !strings.Contains(said, "delete clusterrole "+agentRole+"\n") ||
			strings.Contains(said, "-binding") {
			t.Errorf("it says %s", said)
		}
	}
	there(goes, true)
	run(true, false)
	there(goes, false)
	there(stays, true)
	if said := run(true, false); said != "" {
		t.Errorf("when nothing is left it says %s", said)
	}

	// A user creates an object of the same name between the look and the deletion.
	has(goes[4], "", agentRole, func(o client.Object) { o.SetResourceVersion(""); inSet(o, "default-fleet-agent-c-1", "", "", "") })
	found, err := on.agentRightsOfRancher(ctx)
	it.check(err)
	it.check(it.Delete(ctx, goes[4]))
	theirs := has(&rbacv1.ClusterRole{}, "", agentRole, nil)
	if err := kube.DeleteByUID(ctx, found[0].on, found[0].object); !apierrors.IsConflict(err) {
		t.Errorf("deleting the one that was found: %v", err)
	}
	there([]client.Object{theirs}, true)
	for _, o := range append(stays, theirs) { // for another turn
		it.check(it.Delete(ctx, o))
	}
}
