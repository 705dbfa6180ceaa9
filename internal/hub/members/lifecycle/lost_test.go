package lifecycle

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

func TestTheStepsForAMemberWithoutHeartbeats(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	both := settings.LostMembers{TaintAfter: 48 * time.Hour, RemoveAfter: 24 * time.Hour}
	taintOnly := settings.LostMembers{TaintAfter: 48 * time.Hour}
	lost := func(seen, watched time.Duration) Observed {
		return Observed{RecordedBeat: ago(seen), Liveness: liveness.Observation{
			State: liveness.Lost, Budget: 3 * time.Minute, Tracked: ago(watched),
		}}
	}
	in := func(state liveness.State) Observed {
		o := lost(72*time.Hour, 72*time.Hour)
		o.Liveness.State = state
		return o
	}
	tainted := func(d time.Duration) mark { return mark{set: true, since: ago(d)} }
	for name, row := range map[string]struct {
		o        Observed
		mark     mark
		limits   Limits
		step     cleanupStep
		next     time.Duration
		contains string
	}{
		"off": {o: lost(900*time.Hour, 900*time.Hour)},
		"not yet": {o: lost(47*time.Hour, 47*time.Hour),
			limits: Limits{LostMembers: both}, next: time.Hour, contains: "the hub taints it muster/lost:NoSchedule at 2026-03-01T13:00:00Z"},
		"long enough": {o: lost(48*time.Hour, 48*time.Hour),
			limits: Limits{LostMembers: both}, step: cleanupTaint, contains: "taints it"},
		"a hub that has started": {o: lost(900*time.Hour, time.Minute),
			limits: Limits{LostMembers: both}, next: 2 * time.Minute, contains: "at 2026-03-01T12:02:00Z"},
		"unknown since the start": {o: in(liveness.Unknown), limits: Limits{LostMembers: both}},
		"online":                  {o: in(liveness.Online), limits: Limits{LostMembers: both}},
		"never seen":              {o: Observed{Liveness: in(liveness.Lost).Liveness}, limits: Limits{LostMembers: both}},
		"no settings":             {o: in(liveness.Lost), limits: Limits{LostMembers: both, Unknown: true}},
		"tainted": {o: in(liveness.Lost), mark: tainted(23 * time.Hour),
			limits: Limits{LostMembers: both}, next: time.Hour,
			contains: "tainted muster/lost:NoSchedule since 2026-02-28T13:00:00Z; the hub removes it at 2026-03-01T13:00:00Z"},
		"tainted long enough": {o: in(liveness.Lost), mark: tainted(24 * time.Hour),
			limits: Limits{LostMembers: both}, step: cleanupRemove, contains: "the hub removes it"},
		"tainted by a user before its time": {o: lost(60*time.Hour, 60*time.Hour), mark: tainted(800 * time.Hour),
			limits: Limits{LostMembers: both}, next: 12 * time.Hour, contains: "removes it at 2026-03-02T00:00:00Z"},
		"tainted, and a hub that has started": {o: lost(900*time.Hour, 20*time.Minute), mark: tainted(800 * time.Hour),
			limits: Limits{LostMembers: both}, next: 40 * time.Minute, contains: "removes it at 2026-03-01T12:40:00Z"},
		"tainted, and a short time to the removal": {o: lost(900*time.Hour, time.Minute), mark: tainted(800 * time.Hour),
			limits: Limits{LostMembers: settings.LostMembers{TaintAfter: time.Hour, RemoveAfter: time.Minute}},
			next:   2 * time.Minute, contains: "12:02:00Z"},
		"tainted, without a removal": {o: in(liveness.Lost), mark: tainted(900 * time.Hour),
			limits: Limits{LostMembers: taintOnly}, contains: "tainted muster/lost:NoSchedule since"},
		"tainted and protected": {o: in(liveness.Lost), mark: mark{true, ago(900 * time.Hour), "is protected"},
			limits: Limits{LostMembers: both}, contains: "does not remove it, because it is protected"},
		"tainted and back": {o: in(liveness.Online), mark: tainted(23 * time.Hour),
			limits: Limits{LostMembers: both}, step: cleanupUntaint},
		"tainted, and switched off":        {o: in(liveness.Lost), mark: tainted(23 * time.Hour), step: cleanupUntaint},
		"tainted, unknown since the start": {o: in(liveness.Unknown), mark: tainted(900 * time.Hour), limits: Limits{LostMembers: both}},
		"tainted, and a faulty setting": {o: in(liveness.Lost), mark: tainted(900 * time.Hour),
			limits: Limits{Problem: "annotation x"}, contains: "annotation x"},
		"back, and a faulty setting": {o: in(liveness.Online), mark: tainted(time.Hour),
			limits: Limits{Problem: "annotation x"}, step: cleanupUntaint},
		"a malformed mark": {o: in(liveness.Lost), mark: mark{set: true},
			limits: Limits{LostMembers: both}, step: cleanupTaint, contains: "taints it"},
	} {
		got := planCleanup(row.o, row.mark, row.limits, now)
		var next time.Duration
		if !got.next.IsZero() {
			next = got.next.Sub(now)
		}
		if got.step != row.step || next != row.next || (got.Message == "") != (row.contains == "") ||
			!strings.Contains(got.Message, row.contains) {
			t.Errorf("%s: %q in %s: %s", name, got.step, next, got.Message)
		}
	}
	for what, change := range map[string]func(*Observed){
		"a revoked member": func(o *Observed) { o.Revoked = true },
		"a leaving member": func(o *Observed) { o.Deleted = now },
	} {
		o := in(liveness.Lost)
		if change(&o); planCleanup(o, tainted(900*time.Hour), Limits{LostMembers: both}, now) != (Cleanup{}) {
			t.Errorf("%s is removed", what)
		}
	}
}

func TestWhatKeepsAMemberWithoutHeartbeats(t *testing.T) {
	for name, row := range map[string]struct {
		labels, annotations map[string]string
		keeps               string
	}{
		"nothing":                   {nil, map[string]string{"muster/cordoned": "true"}, ""},
		"a protection":              {nil, map[string]string{"muster/protected": "true"}, "is protected by muster/protected"},
		"a protection by label":     {map[string]string{"muster/protected": "true"}, nil, "is protected by muster/protected"},
		"a protection that is over": {nil, map[string]string{"muster/protected": "false"}, ""},
		"a quarantine":              {nil, map[string]string{"muster/quarantined": "true"}, "is quarantined"},
	} {
		cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: row.labels, Annotations: row.annotations}}
		if got := lostMark(cluster); got.keeps != row.keeps || got.set {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestOnlyTheHubsOwnRemovalKeepsTheDeliveries has users who delete a tainted member themselves.
func TestOnlyTheHubsOwnRemovalKeepsTheDeliveries(t *testing.T) {
	deleted := metav1.Now()
	for name, row := range map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"tainted":                        {metav1.ObjectMeta{Annotations: map[string]string{fleet.AnnotationLost: "x"}}, false},
		"marked, and the hub was killed": {metav1.ObjectMeta{Annotations: map[string]string{fleet.AnnotationLostRemoved: "x"}}, false},
		"tainted, and deleted by a user": {metav1.ObjectMeta{
			DeletionTimestamp: &deleted, Annotations: map[string]string{fleet.AnnotationLost: "x"},
		}, false},
		"marked and deleted": {metav1.ObjectMeta{
			DeletionTimestamp: &deleted, Annotations: map[string]string{fleet.AnnotationLostRemoved: "x"},
		}, true},
	} {
		if got := removedAsLost(&fleet.Cluster{ObjectMeta: row.meta}); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
