package registration

import (
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

// numbered are requests of one client ID, each newer than the one before.
func numbered(n int, key func(i int) []byte) []fleet.ClusterRegistration {
	list := make([]fleet.ClusterRegistration, n)
	for i := range list {
		list[i] = fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{
				UID: types.UID(fmt.Sprint(i)), Name: fmt.Sprint(i), Namespace: "w",
				CreationTimestamp: metav1.NewTime(start.Add(time.Duration(i) * time.Second)),
			},
			Spec: fleet.ClusterRegistrationSpec{ClientID: "one", AgentKey: key(i), Signature: make([]byte, 64)},
		}
	}
	return list
}

func randomKey(int) []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return key
}

func TestKeysAreComparedBeforeSignaturesAreVerified(t *testing.T) {
	verifications := 0
	verified := func(err error) func(*fleet.ClusterRegistration) error {
		return func(*fleet.ClusterRegistration) error { verifications++; return err }
	}
	same := func(int) []byte { return []byte("the same key") }
	for _, c := range []struct {
		name     string
		requests []fleet.ClusterRegistration
		err      error
		most     int
		found    bool
	}{
		{"requests with other keys", numbered(1000, randomKey), nil, 0, false},
		{"newer ones with its key", numbered(1000, same), nil, 1, true},
		{"newer ones with its key that are forged", numbered(1000, same), errors.New("forged"), 999, false},
	} {
		verifications = 0
		if by := superseding(&c.requests[0], c.requests, newer, verified(c.err)); (by != "") != c.found || verifications > c.most {
			t.Errorf("%s: superseded by %q after %d verifications", c.name, by, verifications)
		}
	}
}

func TestASignatureIsVerifiedOnceAndAgainWhenTheRequestChanges(t *testing.T) {
	hub := newTracker(nil)
	r := &numbered(1, randomKey)[0]
	r.Generation = 1
	hub.signatures.Set(r.UID, verification{generation: 1})
	if err := hub.verified(r); err != nil {
		t.Errorf("it is verified again: %v", err)
	}
	r.Generation = 2
	if err := hub.verified(r); err == nil {
		t.Error("the signature of the request before counts")
	}
}

// TestWhatIsOneTooManyIsDeletedBeforeItsSignatureIsVerified floods the hub with signed requests for
// a Cluster that has an agent.
func TestWhatIsOneTooManyIsDeletedBeforeItsSignatureIsVerified(t *testing.T) {
	c := &Controller{tracker: newTracker(nil), Deps: Deps{Deps: controller.Deps{Config: settings.New(nil, nil, "system")}}}
	flood := numbered(1001, randomKey)
	for i := range flood[:1000] {
		flood[i].Status.State, flood[i].Status.Reason = fleet.RegistrationPending, reasons.HolderAlive
		c.tracker.trackRequest(&flood[i])
	}
	o := observation{observed: asked(matching(clusterView{name: "c", holder: holderAlive}))}
	d, err := c.decide(t.Context(), &flood[1000], &o, start)
	if err != nil || d.action != remove {
		t.Errorf("it is %+v: %v", d, err)
	}
	if _, verified := c.tracker.signatures.Get(flood[1000].UID); verified {
		t.Error("its signature was verified")
	}
}

func TestOnlyWhatARequestWaitsForWakesIt(t *testing.T) {
	scheme := controllerScheme(t)
	r := &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "w"}, Spec: fleet.ClusterRegistrationSpec{ClientID: "one"},
	}
	cl := fake.NewClientBuilder().WithScheme(scheme).WithObjects(r).WithIndex(&fleet.ClusterRegistration{}, indexClientID,
		func(o client.Object) []string {
			return []string{o.(*fleet.ClusterRegistration).Spec.ClientID}
		}).Build()
	c := &Controller{Deps: Deps{Deps: controller.Deps{Client: cl}}, tracker: newTracker(nil)}
	for _, change := range []struct {
		name  string
		of    func(*fleet.Cluster)
		wakes bool
	}{
		{"what is delivered", func(c *fleet.Cluster) { c.Status.Summary.Ready, c.Status.Display.ReadyBundles = 3, "3/3" }, false},
		{"a label", func(c *fleet.Cluster) { c.Labels = map[string]string{"env": "prod"} }, true},
		{"the key of its agent", func(c *fleet.Cluster) { c.Annotations = map[string]string{fleet.AnnotationAgentKey: "x"} }, true},
		{"its namespace", func(c *fleet.Cluster) { c.Status.Namespace = "ns" }, true},
		{"its spec", func(c *fleet.Cluster) { c.Generation = 2 }, true},
		{"its deletion", func(c *fleet.Cluster) { c.DeletionTimestamp = new(metav1.Now()) }, true},
		{"another client ID", func(c *fleet.Cluster) { c.Spec.ClientID = "two" }, true},
	} {
		before := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "w", UID: "u"}, Spec: fleet.ClusterSpec{ClientID: "one"}}
		after := before.DeepCopy()
		change.of(after)
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		c.onCluster(t.Context(), before, after, q)
		if woken := q.Len() > 0; woken != change.wakes {
			t.Errorf("%s wakes the request: %t", change.name, woken)
		}
		q.ShutDown()
	}
}

// BenchmarkRequestsOfOneClient decides which of 10,000 requests of one client ID are superseded.
func BenchmarkRequestsOfOneClient(b *testing.B) {
	hub, flood := newTracker(nil), numbered(10000, randomKey)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		superseding(&flood[i%len(flood)], flood, newer, hub.verified)
	}
}

func TestARefusedRequestWithoutAKeySupersedesNothing(t *testing.T) {
	signed := func(*fleet.ClusterRegistration) error { return nil }
	for _, c := range []struct {
		state      fleet.RegistrationState
		reason     string
		supersedes bool
	}{
		{"", "", true},
		{fleet.RegistrationPending, "NeedsApproval", true},
		{fleet.RegistrationWaiting, reasons.Preparing, true},
		{fleet.RegistrationGranted, "", true},
		{fleet.RegistrationDenied, "TokenExpired", false},
		{fleet.RegistrationWaiting, reasons.TooManyRequests, false},
	} {
		requests := numbered(2, func(int) []byte { return nil })
		requests[1].Status.State, requests[1].Status.Reason = c.state, c.reason
		if by := superseding(&requests[0], requests, newer, signed); (by != "") != c.supersedes {
			t.Errorf("by a newer one that is %s %s: %q", c.state, c.reason, by)
		}
		requests = numbered(2, func(int) []byte { return []byte("the same key") })
		requests[1].Status.State = c.state
		if superseding(&requests[0], requests, newer, signed) == "" {
			t.Errorf("one with the same key that is %s supersedes nothing", c.state)
		}
	}
}
