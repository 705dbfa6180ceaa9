package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/servertime"
)

func TestAClusterThatIsLabelledForAnotherManagerIsNotTracked(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", Labels: map[string]string{fleet.LabelClusterManagement: "other"}},
	}
	deps := controller.Deps{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster).Build(),
		Clock:    clocktesting.NewFakeClock(now),
		Liveness: liveness.New(clocktesting.NewFakeClock(now), servertime.New(clocktesting.NewFakeClock(now)), logr.Discard())}
	deps.Liveness.Track(membernamespace.OfCluster(cluster).Namespace, time.Minute, false)
	if _, err := New(deps, nil, nil, nil, nil).Reconcile(context.Background(),
		ctrl.Request{NamespacedName: client.ObjectKeyFromObject(cluster)}); err != nil {
		t.Fatal(err)
	}
	if observed := deps.Liveness.Observe(membernamespace.OfCluster(cluster).Namespace); observed.Budget != 0 {
		t.Errorf("it is tracked: %+v", observed)
	}
}
