package registration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

func controllerScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// TestWhatWasProvedOfAClusterIsNotProvedOfOneThatWasMadeAnew would withdraw an answer before
// its agent can read it.
func TestWhatWasProvedOfAClusterIsNotProvedOfOneThatWasMadeAnew(t *testing.T) {
	scheme := controllerScheme(t)
	cl := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&fleet.ClusterRegistration{}, indexClientID,
		func(client.Object) []string { return nil }).Build()
	c := &Controller{Deps: Deps{Deps: controller.Deps{Client: cl}}, tracker: newTracker(nil)}
	seen := func(uid types.UID, at time.Time) *fleet.Cluster {
		return &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", UID: uid}, Status: fleet.ClusterStatus{
				Agent: fleet.AgentStatus{LastSeen: metav1.NewTime(at)},
			},
		}
	}
	key, now := client.ObjectKeyFromObject(seen("former", time.Time{})), time.Now()
	c.tracker.given(key, "account", time.Time{})
	c.onCluster(t.Context(), seen("former", time.Time{}), seen("former", now), nil)
	if !c.tracker.proved(key) {
		t.Error("a beat proves nothing")
	}
	c.onCluster(t.Context(), seen("former", now), seen("anew", now.Add(time.Minute)), nil)
	if c.tracker.proved(key) {
		t.Error("the Cluster that was made anew has the proof of the former")
	}
}
