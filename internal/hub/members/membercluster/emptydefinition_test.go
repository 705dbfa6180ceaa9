package membercluster

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/servertime"
)

// TestAMemberIsNotTakenForEmptyWhileWorksAreNotServed: nobody knows then what its agent has applied.
func TestAMemberIsNotTakenForEmptyWhileWorksAreNotServed(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, apiextensionsv1.AddToScheme, clusterv1beta1.AddToScheme, placement.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mc := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "u", DeletionTimestamp: &metav1.Time{Time: now}, Finalizers: []string{clusterv1beta1.FinalizerMemberCluster}},
		Spec:       clusterv1beta1.MemberClusterSpec{Identity: rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "m"}},
		Status:     clusterv1beta1.MemberClusterStatus{AgentStatus: []clusterv1beta1.AgentStatus{agent(yes, yes, now)}},
	}
	controls := true
	made := metav1.ObjectMeta{Labels: map[string]string{fleet.LabelManaged: "true"}, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "MemberCluster", Name: "m", UID: "u", Controller: &controls}}}
	namespace := &corev1.Namespace{ObjectMeta: *made.DeepCopy()}
	namespace.Name = membernamespace.OfMemberCluster(mc).Namespace
	report := &clusterv1beta1.InternalMemberCluster{ObjectMeta: made, Spec: clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin},
		Status: clusterv1beta1.InternalMemberClusterStatus{AgentStatus: mc.Status.AgentStatus}}
	report.Namespace, report.Name = namespace.Name, "m"
	definition := func(name string) client.Object {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name + ".cluster.kubernetes-fleet.io"}}
	}
	cl := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).WithStatusSubresource(mc).
		WithObjects(mc, namespace, report, definition("memberclusters"), definition("internalmemberclusters")).
		WithIndex(mc, indexIdentity, func(client.Object) []string { return nil }).Build()
	clock := clocktesting.NewFakeClock(now.Add(time.Minute))
	kinds := servedkinds.New(clock, logr.Discard(), scheme)
	if err := kinds.Register(context.Background(), hub{client: cl}); err != nil {
		t.Fatal(err)
	}
	recorder := events.NewFakeRecorder(9)
	deps := controller.Deps{Client: cl, Live: cl, Clock: clock, Recorder: recorder, Config: settings.New(cl, recorder, "system"), Kinds: kinds,
		Liveness: liveness.New(clock, servertime.New(clock), logr.Discard()), SystemNamespace: "system"}
	if _, err := New(deps, nil, nil).Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(mc)}); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{mc, report} {
		if err := cl.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
	}
	kept := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionReadyToJoin)
	if kept == nil || kept.Reason != servedkinds.ReasonDefinitionDeleted || !strings.Contains(kept.Message, "works.placement.kubernetes-fleet.io") {
		t.Errorf("it says %+v", kept)
	}
	if report.Spec.State != clusterv1beta1.ClusterStateJoin {
		t.Errorf("it is asked to %s", report.Spec.State)
	}
}
