package registration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestLimit(t *testing.T) {
	most := settings.Registration{MaxWaitingPerToken: 10, MaxWaitingPerWorkspace: 30, MaxQueuedPerToken: 20}
	waits := decision{state: fleet.RegistrationConflict, reason: "NameTaken"}
	tooMany := decision{state: fleet.RegistrationWaiting, reason: reasons.TooManyRequests, wake: start.Add(time.Minute)}
	gone := decision{action: remove}
	many := others{queued: 1000, waiting: 1000, waitingInWorkspace: 1000}
	for _, c := range []struct {
		name  string
		d     decision
		have  others
		after time.Duration
		most  *settings.Registration
		want  decision
		says  string
	}{
		{
			name: "what is granted is never too many", d: decision{state: fleet.RegistrationGranted}, have: many, want: decision{
				state: fleet.RegistrationGranted,
			},
		},
		{name: "nor what the hub works on", d: decision{state: fleet.RegistrationWaiting, reason: reasons.Preparing}, have: many,
			want: decision{state: fleet.RegistrationWaiting, reason: reasons.Preparing}},
		{name: "one that waits has a place", d: waits, have: others{waiting: 9}, want: waits},
		{
			name: "one too many is told so for a minute", d: waits, have: others{waiting: 10}, want: tooMany,
			says: "10 requests of ClusterRegistrationToken clusters/t wait",
		},
		{name: "and deleted then", d: waits, have: others{waiting: 10}, after: time.Minute, want: gone},
		{name: "it is deleted at once when there are twice as many", d: waits, have: others{waiting: 20}, want: gone},
		{
			name: "the workspace has a bound, too", d: denied("x", "y"), have: others{waitingInWorkspace: 30}, want: tooMany,
			says: "of workspace clusters wait",
		},
		{
			name: "so have those that wait for room", d: tooManyClusters(asked(), 5), have: others{queued: 20}, want: tooMany,
			says: "registration.maxQueuedPerToken",
		},
		{
			name: "which are not counted with the others", d: tooManyClusters(asked(), 5), have: others{queued: 19, waiting: 1000},
			want: tooManyClusters(asked(), 5), says: "5 new Clusters",
		},
		{
			name: "and are deleted at once when those that wait are many", d: tooManyClusters(asked(), 5),
			have: others{queued: 20, waiting: 20}, want: gone,
		},
		{
			name: "one that has its place keeps it", d: tooManyClusters(asked(), 5), have: others{queued: 21, place: queued},
			want: tooManyClusters(asked(), 5),
		},
		{name: "so does one that was refused", d: waits, have: others{waiting: 12, place: waiting}, want: waits},
		{name: "but a place is for one thing", d: waits, have: others{waiting: 10, place: queued}, want: tooMany},
		{name: "zero is no bound", d: waits, have: many, most: &settings.Registration{}, want: waits},
	} {
		bounds := most
		if c.most != nil {
			bounds = *c.most
		}
		got := limit(c.d, asked(), c.have, bounds, start.Add(c.after))
		if !strings.Contains(got.message, c.says) {
			t.Errorf("%s: it says %q, want %q in it", c.name, got.message, c.says)
		}
		got.message, c.want.message = "", ""
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(decision{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestTracker(t *testing.T) {
	c := newTracker(nil)
	request := func(uid, token string, state fleet.RegistrationState, reason string) *fleet.ClusterRegistration {
		return &fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{
				UID: types.UID(uid), Name: uid, Namespace: "w", Labels: map[string]string{fleet.LabelRegistrationToken: token},
			},
			Status: fleet.ClusterRegistrationStatus{State: state, Reason: reason, Granted: state == fleet.RegistrationGranted},
		}
	}
	for range 2 { // an event may come twice
		c.trackRequest(request("a", "t", fleet.RegistrationDenied, "x"))
		c.trackRequest(request("b", "t", fleet.RegistrationWaiting, reasons.TooManyNewClusters))
		c.trackRequest(request("c", "other", fleet.RegistrationConflict, "x"))
		c.trackRequest(request("d", "t", fleet.RegistrationWaiting, reasons.Preparing))
		c.trackRequest(request("e", "t", fleet.RegistrationGranted, "Granted"))
	}
	if got, want := c.others(request("z", "t", "", "")), (others{queued: 1, waiting: 1, waitingInWorkspace: 2}); got != want {
		t.Errorf("there are %+v, want %+v", got, want)
	}
	if got, want := c.others(request("a", "t", "", "")), (others{queued: 1, waitingInWorkspace: 1, place: waiting}); got != want {
		t.Errorf("besides a there are %+v, want %+v", got, want)
	}
	if got := c.others(request("a", "t", fleet.RegistrationWaiting, reasons.TooManyRequests)); got.place != free {
		t.Errorf("one too many has a place: %+v", got)
	}
	from := origin{workspace: "w", token: "t"}
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "w", Name: name} }
	if !c.reserve(key("1"), from, 2) || !c.reserve(key("2"), from, 2) || c.reserve(key("3"), from, 2) || !c.reserve(key("1"), from, 2) {
		t.Error("two places are not for two Clusters")
	}
	if next := c.next(from, 2); len(next) > 0 {
		t.Errorf("%v may go on, and there is no room", next)
	}
	beaten := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "w", Name: "1", Annotations: map[string]string{fleet.AnnotationCreatedByToken: "t"}},
	}
	beaten.Status.Agent.LastSeen = metav1.Now()
	if freed, room := c.trackCluster(beaten, false); !room || freed != from {
		t.Errorf("a beat makes room for %v: %v", freed, room)
	}
	if diff := cmp.Diff([]types.NamespacedName{key("b")}, c.next(from, 2)); diff != "" {
		t.Errorf("who goes on (-want +got):\n%s", diff)
	}
	c.forgetRequest(key("a"))
	c.forgetRequest(key("b"))
	c.forgetRequest(key("c"))
	c.release(key("2"))
	if len(c.requests.of)+len(c.requests.members)+len(c.waiting.of)+len(c.waiting.members)+len(c.newClusters.of)+
		len(c.newClusters.members) > 0 {
		t.Errorf("something is left: %v, %v, %v", c.requests, c.waiting, c.newClusters)
	}
}

// TestRequestsForAnotherManagerAreDeletedUnlessSomebodyTookThemUp makes requests as any
// holder of a token may.
func TestRequestsForAnotherManagerAreDeletedUnlessSomebodyTookThemUp(t *testing.T) {
	cluster := testkube.Start(t, "registration")
	cluster.InstallCRDs(t)
	ctx, cl := context.Background(), cluster.Client(t)
	request := func(name string) *fleet.ClusterRegistration {
		r := &fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{fleet.LabelClusterManagement: "somebody"}},
		}
		if err := cl.Create(ctx, r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	left, taken := request("left"), request("taken")
	taken.Status.ClusterName = "theirs"
	if err := cl.Status().Update(ctx, taken); err != nil {
		t.Fatal(err)
	}
	passive := clocktesting.NewFakePassiveClock(left.CreationTimestamp.Add(59 * time.Minute))
	c := New(Deps{
		Deps: controller.Deps{
			Client: cl, Live: cl, Clock: passive, Recorder: events.NewFakeRecorder(9),
			Config: settings.New(cl, events.NewFakeRecorder(9), "default"),
		},
	})
	reconcile := func(r *fleet.ClusterRegistration) (ctrl.Result, error) {
		result, err := c.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(r)})
		if err != nil {
			t.Fatal(err)
		}
		return result, cl.Get(ctx, client.ObjectKeyFromObject(r), r)
	}
	if result, err := reconcile(left); err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("before its time: %v, looked at again after %s", err, result.RequeueAfter)
	}
	passive.SetTime(left.CreationTimestamp.Add(time.Hour))
	if _, err := reconcile(left); !apierrors.IsNotFound(err) {
		t.Errorf("in its time: %v, want it to be gone", err)
	}
	if _, err := reconcile(taken); err != nil {
		t.Errorf("what another manager has taken up: %v", err)
	}
}
