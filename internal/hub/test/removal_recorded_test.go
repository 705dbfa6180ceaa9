package hub_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// recorded is what the hub records on the report of the member that it has deleted.
func (e *elsewhere) recorded() []string {
	e.t.Helper()
	var report clusterv1beta1.InternalMemberCluster
	e.check(e.get(&report, naming.MemberNamespace(e.workspace, e.name), e.name))
	return strings.Fields(report.Annotations[clusterv1beta1.AnnotationRemoved])
}

// TestWhatWasDeletedWhileAMemberWasAwayIsRemoved lets the hub forget its history meanwhile. It
// takes two minutes, as long as an agent waits before it removes what it finds missing.
func TestWhatWasDeletedWhileAMemberWasAwayIsRemoved(t *testing.T) {
	f := newAlone(t, "")
	e := f.elsewhere("away")
	e.release()
	e.bundle("again", "defaultNamespace: "+e.target+strings.ReplaceAll(configMap, "WORKSPACE", "again")+everywhere)
	e.untilBundle("again", fleet.ConditionReady, corev1.ConditionTrue)
	namespace, before := naming.MemberNamespace(e.workspace, e.name), e.uidOf("again")
	bearer, _ := (&member{fixture: e.on, agentNamespace: e.agent.agentNamespace}).credential()
	e.agent.stop()
	var app, again, now fleet.BundleDeployment
	f.check(f.get(&app, namespace, "app"))
	f.check(f.get(&again, namespace, "again"))

	f.check(f.Delete(context.Background(), &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: e.workspace, Name: "app"}}))
	f.eventually("the hub has deleted the BundleDeployment", func() error { return gone(f.get(&now, namespace, "app")) })
	f.check(f.Delete(context.Background(), again.DeepCopy()))
	f.eventually("the hub has created the other one again, which a user deleted", func() error {
		if err := f.get(&now, namespace, "again"); err != nil || now.UID == again.UID {
			return fmt.Errorf("it is %s (%v)", now.UID, err)
		}
		return nil
	})
	if recorded := e.recorded(); len(recorded) != 1 || recorded[0] != string(app.UID) {
		t.Errorf("recorded is %q, want %s and not %s", recorded, app.UID, again.UID)
	}
	e.nobodyElseRecords(bearer)

	revision, err := strconv.ParseInt(now.ResourceVersion, 10, 64)
	f.check(err)
	testkube.Compact(t, f.cluster.Name(), revision)
	if err := f.List(context.Background(), &fleet.BundleDeploymentList{}, &client.ListOptions{Raw: &metav1.ListOptions{
		ResourceVersion: app.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}}); !apierrors.IsResourceExpired(err) {
		t.Fatalf("the hub still has the history: %v", err)
	}
	e.agent.start()
	f.eventually("the release is removed", func() error {
		if e.uidOf(e.workspace) != "" {
			return fmt.Errorf("it is there")
		}
		return nil
	})
	if after := e.uidOf("again"); after != before {
		t.Errorf("the other object is %q, and was %q", after, before)
	}
}

// nobodyElseRecords tries to record a removal as the member itself, and as a tenant who may do
// anything in the workspace.
func (e *elsewhere) nobodyElseRecords(bearer string) {
	e.t.Helper()
	tenant, _ := e.userWith(e.workspace, "tenant", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	before := e.recorded()
	forged := fmt.Sprintf(`{"metadata":{"annotations":{%q:"forged"}}}`, clusterv1beta1.AnnotationRemoved)
	report := func() *clusterv1beta1.InternalMemberCluster {
		return &clusterv1beta1.InternalMemberCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberNamespace(e.workspace, e.name), Name: e.name},
		}
	}
	for who, as := range map[string]client.Client{"the member": e.as(bearer), "a tenant": tenant} {
		if err := merge(as, report(), forged); !apierrors.IsForbidden(err) {
			e.t.Errorf("%s records a removal: %v", who, err)
		}
	}
	// The API server ignores metadata in a patch of the status.
	e.check(e.as(bearer).Status().Patch(context.Background(), report(), client.RawPatch("application/merge-patch+json", []byte(forged))))
	if after := e.recorded(); fmt.Sprint(after) != fmt.Sprint(before) {
		e.t.Errorf("recorded is %q, and was %q", after, before)
	}
}
