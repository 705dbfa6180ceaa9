package registration

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) { os.Exit(testkube.Main(m)) }

func TestOfTwoRequestsOneIsTheNewerWhateverIsWrittenToThem(t *testing.T) {
	second := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	request := func(uid string, created time.Time, asked time.Duration) *fleet.ClusterRegistration {
		r := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), CreationTimestamp: metav1.NewTime(created)}}
		if asked >= 0 {
			r.Spec.RequestedAt = new(metav1.NewMicroTime(second.Add(asked)))
		}
		return r
	}
	seen := func(r *fleet.ClusterRegistration, version string) *fleet.ClusterRegistration {
		r.Status.FirstSeenVersion = version
		return r
	}
	const unsaid = time.Duration(-1)
	for _, c := range []struct {
		name         string
		older, newer *fleet.ClusterRegistration
	}{
		{"a second later", request("b", second, 900*time.Millisecond), request("a", second.Add(time.Second), 0)},
		{"in the same second the agent asked later", request("b", second, time.Millisecond), request("a", second, 2*time.Millisecond)},
		{"nobody says when", request("a", second, unsaid), request("b", second, unsaid)},
		{"nobody says when, and the hub saw one first", seen(request("b", second, unsaid), "9"), seen(request("a", second, unsaid), "10")},
		{"the agent says otherwise than the hub", seen(request("b", second, 1), "10"), seen(request("a", second, 2000), "9")},
		{"a second later than one that was seen first", seen(request("b", second, unsaid), "10"),
			seen(request("a", second.Add(time.Second), unsaid), "9")},
		{"of one it is not recorded", seen(request("a", second, unsaid), "10"), request("b", second, unsaid)},
	} {
		for _, written := range []func(){
			func() {},
			func() { c.older.ResourceVersion, c.newer.ResourceVersion = "9", "8" },
			func() { c.older.Status.Granted = true },
			func() { c.older.Status.Granted, c.newer.Status.Granted = false, true },
		} {
			if written(); !newer(c.newer, c.older) || newer(c.older, c.newer) {
				t.Errorf("%s: %+v is not newer than %+v", c.name, c.newer, c.older)
			}
		}
	}
}

// TestTheHubRemembersWhichRequestItSawFirst has requests of one second written to before the hub
// has reported anything of them.
func TestTheHubRemembersWhichRequestItSawFirst(t *testing.T) {
	second := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	request := func(uid, version string) *fleet.ClusterRegistration {
		return &fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), CreationTimestamp: second, ResourceVersion: version},
		}
	}
	hub := New(Deps{})
	hub.onRequest(t.Context(), nil, request("b", "8"), nil)
	hub.onRequest(t.Context(), nil, request("a", "9"), nil)
	hub.onRequest(t.Context(), request("b", "8"), request("b", "10"), nil)
	if a, b := request("a", "9"), request("b", "10"); !hub.newer(a, b) || hub.newer(b, a) {
		t.Errorf("the first became the newer one when somebody wrote to it")
	}
	hub.onRequest(t.Context(), request("b", "10"), nil, nil)
	reported := request("a", "11")
	reported.Status.FirstSeenVersion = "9"
	hub.onRequest(t.Context(), request("a", "9"), reported, nil)
	hub.tracker.firstSeen.ForgetWhere(func(uid types.UID, _ string) bool {
		t.Errorf("request %v, which is gone or reported, is remembered", uid)
		return false
	})
}

// TestAnOlderRequestDoesNotEndTheIdentityOfANewerOne plays a hub that decided on a request before
// its cache had the newer one, which another worker granted meanwhile: the agent would go on with a
// credential that is none any more.
func TestAnOlderRequestDoesNotEndTheIdentityOfANewerOne(t *testing.T) {
	cluster := testkube.Start(t, "registration")
	cluster.InstallCRDs(t)
	ctx, c := context.Background(), cluster.Client(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	workspace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "clusters-"}}
	check(c.Create(ctx, workspace))
	request := func(at time.Time) *fleet.ClusterRegistration {
		r := &fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "request-", Namespace: workspace.Name},
			Spec:       fleet.ClusterRegistrationSpec{ClientID: "one", RequestedAt: new(metav1.NewMicroTime(at))},
		}
		check(c.Create(ctx, r))
		return r
	}
	of := func(r *fleet.ClusterRegistration) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			fleet.AnnotationRegistration: r.Name, fleet.AnnotationRegistrationNamespace: r.Namespace,
		}}}
	}
	now := time.Now()
	older, younger := request(now), request(now.Add(time.Second))
	hub := New(Deps{Deps: controller.Deps{Client: c, Live: c}})
	if err := hub.mayReplace(ctx, older, of(younger)); err == nil || !strings.Contains(err.Error(), younger.Name) {
		t.Errorf("the older one ends the identity of the newer one: %v", err)
	}
	check(hub.mayReplace(ctx, younger, of(older)))
	check(c.Delete(ctx, younger))
	check(hub.mayReplace(ctx, older, of(younger)))
}
