package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/servertime"
)

// remembering is a Controller over some objects.
func remembering(t *testing.T, objects ...client.Object) *Controller {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, clusterv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cl := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&clusterv1beta1.MemberCluster{}).WithObjects(objects...).Build()
	clock := clocktesting.NewFakeClock(deletedAt)
	deps := controller.Deps{Client: cl, Live: cl, Clock: clock, Liveness: liveness.New(clock, servertime.New(clock), logr.Discard())}
	return New(deps, &MoveLimiter{}, nil, clusterv1beta1.FinalizerMemberCluster, clusterv1beta1.LeaveDelete)
}

func TestAStatusThatChangesNothingIsNotExpectedInTheCache(t *testing.T) {
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	c := remembering(t, mc)
	key := client.ObjectKeyFromObject(mc)
	for _, wanted := range []bool{true, false} {
		before := &clusterv1beta1.MemberCluster{}
		if err := c.Client.Get(context.Background(), key, before); err != nil {
			t.Fatal(err)
		}
		c.expected.Await(key, before)
		after := before.DeepCopy()
		after.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}
		if err := c.WriteStatus(context.Background(), before, after); err != nil {
			t.Fatal(err)
		}
		if expected := c.expected.Await(key) > 0; expected != wanted {
			t.Errorf("a status that is another one: %t, is expected: %t", wanted, expected)
		}
	}
}

func TestNoChangeOfTheSettingsIsRememberedForEveryRecord(t *testing.T) {
	var objects []client.Object
	for i := range 100 {
		objects = append(objects, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i)}})
	}
	c := remembering(t, objects...)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	for range 10 {
		c.OnSettings(&clusterv1beta1.MemberClusterList{}).Generic(context.Background(), event.GenericEvent{Object: &corev1.ConfigMap{}}, queue)
	}
	if waiting := len(c.moves.reserved); waiting != 0 {
		t.Errorf("%d records wait to move although no address has changed", waiting)
	}
	o := Observed{
		Member: membernamespace.OfMemberCluster(objects[0].(*clusterv1beta1.MemberCluster)), Report: &clusterv1beta1.InternalMemberCluster{},
	}
	c.moves.Wait("somebody", c.Clock.Now())
	o.Hub = &clusterv1beta1.HubAddress{APIServerURL: "https://new"}
	if c.AddressToAsk(&o); o.WaitToMove != moveInterval || len(c.moves.reserved) != 1 {
		t.Errorf("one that has to move waits for %s, among %d", o.WaitToMove, len(c.moves.reserved))
	}
	o.Hub = nil
	if c.AddressToAsk(&o); len(c.moves.reserved) != 0 {
		t.Errorf("after the change was taken back %d records wait", len(c.moves.reserved))
	}
}

// forgetful notes what it is told to forget, and goes no further.
type forgetful struct {
	Reconciliation
	forgotten []string
}

var errEnough = errors.New("enough")

func (f *forgetful) Forget(namespace string)                 { f.forgotten = append(f.forgotten, namespace) }
func (f *forgetful) Observe(context.Context, Observed) error { return errEnough }

func TestWhatWasRememberedOfAMemberIsForgottenWhenItIsRevoked(t *testing.T) {
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "u", Annotations: map[string]string{
		clusterv1beta1.AnnotationRevoked: "true", clusterv1beta1.AnnotationMemberEpoch: "1",
	}}}
	former, _ := membernamespace.Former(mc)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: former.Namespace, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "MemberCluster", Name: "m", UID: "u", Controller: new(true)},
	}}}
	c := remembering(t, mc, namespace)
	c.Liveness.Track(former.Namespace, time.Minute, false)
	f := &forgetful{}
	if _, err := c.ReconcileRecord(context.Background(), mc, nil, f); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	if !slices.Equal(f.forgotten, []string{former.Namespace}) || c.Liveness.Observe(former.Namespace).Budget != 0 {
		t.Errorf("forgotten is %v, and known is %+v", f.forgotten, c.Liveness.Observe(former.Namespace))
	}
}
