package hub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

// nativeJoin registers an agent of Muster by hand, which may have to be approved, and returns
// what it may act with.
func (f fixture) nativeJoin(values map[string]string, clientID string, meanwhile func(*fleet.ClusterRegistration)) credential.Answer {
	f.t.Helper()
	key := answerKey(f.t)
	r := f.mustAsk(values, f.signed(f.keyOf(clientID), values, clientID, key))
	meanwhile(&r)
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	answer, err := key.Open(string(r.UID), r.Status.Answer)
	f.check(err)
	f.eventually("the credential works", func() error { return beat(f.as(answer.Token), answer) })
	return answer
}

// untilRefused waits until the API server does not allow an attempt any more.
func untilRefused(f fixture, what string, attempt func() error) {
	f.t.Helper()
	f.eventually(what+" is refused", func() error {
		if err := attempt(); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the answer is %v", err)
		}
		return nil
	})
}

// TestAnotherKindOfAgentHasNoRightsOfTheOneBefore changes the kind of agent of a Cluster. The
// earlier agent's account is gone before its rights are: a user has deleted the account, or the hub
// failed after its deletion.
func TestAnotherKindOfAgentHasNoRightsOfTheOneBefore(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	account := func(clientID string) *corev1.ServiceAccount {
		namespace := naming.MemberNamespace(f.workspace, naming.Cluster(clientID))
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.MemberServiceAccount}}
	}
	writesStatus := func(bearer, clientID string) func() error {
		as := legacyAgent{
			fixture: f, Client: f.as(bearer), answer: map[string]string{"clusterNamespace": f.workspace, "clusterName": naming.Cluster(clientID)},
		}
		return func() error { return as.beat(time.Now()) }
	}

	f.check(f.legacyJoin(values, "by-hand").beat(time.Now()))
	f.untilReady(naming.Cluster("by-hand"), "Ready")
	f.check(f.Delete(context.Background(), account("by-hand")))
	native := f.nativeJoin(values, "by-hand", func(*fleet.ClusterRegistration) {})
	untilRefused(f, "an agent of Muster that writes the status of its Cluster", writesStatus(native.Token, "by-hand"))

	f.check(f.legacyJoin(values, "failing").beat(time.Now()))
	f.untilReady(naming.Cluster("failing"), "Ready")
	probe := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "probe"}, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view",
		},
	}
	f.check(f.Create(context.Background(), probe))
	permit := f.forbid(admissionv1.Delete, rbacv1.GroupName, "rolebindings", "false", func() error {
		return f.Delete(context.Background(), probe, client.DryRunAll)
	},
		f.workspace, account("failing").Namespace)
	native = f.nativeJoin(values, "failing", func(r *fleet.ClusterRegistration) {
		f.untilState(r, fleet.RegistrationPending, "HolderAlive")
		f.approve(r)
		f.eventually("the account of before is gone", func() error {
			return gone(f.get(&corev1.ServiceAccount{}, account("failing").Namespace, naming.MemberServiceAccount))
		})
		f.untilState(r, fleet.RegistrationWaiting, "Failed")
		permit()
	})
	untilRefused(f, "an agent of Muster that writes the status of its Cluster", writesStatus(native.Token, "failing"))

	f.nativeJoin(values, "back", func(*fleet.ClusterRegistration) {})
	f.untilReady(naming.Cluster("back"), "Ready")
	f.check(merge(f, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: naming.Cluster("back")}},
		fmt.Sprintf(`{"metadata":{"annotations":{%q:""}}}`, fleet.AnnotationAgentKey)))
	f.check(f.Delete(context.Background(), account("back")))
	legacy := f.legacyJoin(values, "back")
	untilRefused(f, "a Rancher Fleet agent that reads the report", func() error {
		return legacy.Client.List(context.Background(), &clusterv1beta1.InternalMemberClusterList{},
			client.InNamespace(account("back").Namespace))
	})
}
