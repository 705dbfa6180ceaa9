package bundle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hubclient"
)

// TestABundleDeploymentDoesNotRestForAnEarlierOneOfItsName has a user delete a failing Bundle and
// create a corrected one: both have generation 1.
func TestABundleDeploymentDoesNotRestForAnEarlierOneOfItsName(t *testing.T) {
	now := time.Unix(1000, 0)
	for uid, want := range map[types.UID]State{"earlier": Failed, "later": Deploying} {
		d := &Deployer{Clock: testingclock.NewFakeClock(now), Attempts: &Attempts{}, Hub: &hubclient.Member{Namespace: "m"}}
		d.wakeups.init()
		d.store = newStore(func(string) {}, func(string) {})
		d.store.put(&fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: uid, Generation: 1},
			Spec: fleet.BundleDeploymentSpec{DeploymentID: "s-1:a"}})
		of := &delivery{uid: "earlier", failure: failure{of: 1, message: "no", retryAt: now.Add(time.Minute)}}
		if got := decide(d.observe(t.Context(), "web", of).observed, now).State; got != want {
			t.Errorf("the %s one is %s, want %s", uid, got, want)
		}
	}
}
