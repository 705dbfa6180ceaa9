package membercluster

import (
	"context"
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
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/servertime"
)

// hub is what Kinds asks of a manager.
type hub struct {
	ctrl.Manager
	client client.Client
}

func (h hub) GetAPIReader() client.Reader    { return h.client }
func (h hub) GetRESTMapper() meta.RESTMapper { return h.client.RESTMapper() }
func (h hub) GetCache() cache.Cache          { return unchanged{} }

// unchanged is a cache in which nothing happens.
type unchanged struct{ cache.Cache }

func (unchanged) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return &controllertest.FakeInformer{}, nil
}

// TestAMemberThatHasLeftIsNotTrackedAlsoWhileSomebodyElseKeepsItsRecord: it would be lost,
// and counted, for ever.
func TestAMemberThatHasLeftIsNotTrackedAlsoWhileSomebodyElseKeepsItsRecord(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, apiextensionsv1.AddToScheme, clusterv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mc := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "u", DeletionTimestamp: &metav1.Time{Time: now},
			Finalizers: []string{clusterv1beta1.FinalizerMemberCluster, "kubernetes-fleet.io/cluster-profile-cleanup"}},
		Status: clusterv1beta1.MemberClusterStatus{AgentStatus: []clusterv1beta1.AgentStatus{agent(no, yes, now)}},
	}
	definition := func(name string) client.Object {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name + ".cluster.kubernetes-fleet.io"}}
	}
	cl := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).WithStatusSubresource(mc).
		WithObjects(mc, definition("memberclusters"), definition("internalmemberclusters")).
		WithIndex(mc, indexIdentity, func(client.Object) []string { return nil }).Build()
	clock := clocktesting.NewFakeClock(now.Add(time.Minute))
	kinds := servedkinds.New(clock, logr.Discard(), scheme)
	if err := kinds.Register(context.Background(), hub{client: cl}); err != nil {
		t.Fatal(err)
	}
	recorder := events.NewFakeRecorder(9)
	deps := controller.Deps{Client: cl, Live: cl, Clock: clock, Recorder: recorder, Config: settings.New(cl, recorder, "system"), Kinds: kinds,
		Liveness: liveness.New(clock, servertime.New(clock), logr.Discard()), SystemNamespace: "system"}
	c := New(deps, nil, nil)
	for range 2 {
		if _, err := c.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(mc)}); err != nil {
			t.Fatal(err)
		}
		if observed := deps.Liveness.Observe(membernamespace.OfMemberCluster(mc).Namespace); observed.Budget != 0 {
			t.Errorf("it is tracked: %+v", observed)
		}
	}
	if err := cl.Get(context.Background(), client.ObjectKeyFromObject(mc), mc); err != nil ||
		meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionLeftoversRemoved) == nil {
		t.Errorf("the record is %+v: %v", mc.Status, err)
	}
}
