package eventlimit

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestEventsAboutOneObjectAreBoundedAndCostNoOtherObjectAny(t *testing.T) {
	fake := events.NewFakeRecorder(10_000)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	recorder := New(fake, clock)
	object := func(version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: version}}
	}
	another := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "2"}}
	expect := func(want int, because string) {
		t.Helper()
		if got := len(fake.Events); got != want {
			t.Errorf("%d Events, want %d: %s", got, want, because)
		}
		for len(fake.Events) > 0 {
			<-fake.Events
		}
	}
	flap := func() {
		for i := range 1000 {
			recorder.Eventf(object(string(rune('a'+i%26))), nil, corev1.EventTypeNormal, "Flap", "Assess", "%d", i)
		}
	}
	flap()
	expect(Burst, "the burst")
	recorder.Eventf(another, nil, corev1.EventTypeNormal, "Flap", "Assess", "once")
	expect(1, "another object")
	clock.SetTime(clock.Now().Add(time.Hour))
	flap()
	expect(12, "one in five minutes")
}

func TestANoteIsNotLongerThanAnAPIServerTakes(t *testing.T) {
	fake := events.NewFakeRecorder(1)
	New(fake, clocktesting.NewFakePassiveClock(time.Now())).Eventf(&corev1.ConfigMap{}, nil, corev1.EventTypeNormal,
		"Long", "Assess", "%s 100%%", strings.Repeat("x", 2000))
	note := strings.TrimPrefix(<-fake.Events, corev1.EventTypeNormal+" Long ")
	if len(note) != maxNote || !strings.HasSuffix(note, "...") {
		t.Errorf("it has %d bytes: %s", len(note), note)
	}
}

func TestNoOtherReasonUsesUpTheEventsOfALostMember(t *testing.T) {
	fake := events.NewFakeRecorder(10_000)
	recorder := New(fake, clocktesting.NewFakePassiveClock(time.Now()))
	cluster := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	for _, reason := range []string{"HolderAlive", "AgentLost", "Revoked", "IdentityMissing"} {
		for range 100 {
			recorder.Eventf(cluster, nil, corev1.EventTypeWarning, reason, "Assess", "again")
		}
		if got := len(fake.Events); got != Burst {
			t.Errorf("%d Events with the reason %s, want %d", got, reason, Burst)
		}
		for len(fake.Events) > 0 {
			<-fake.Events
		}
	}
	recorder.Eventf(cluster, nil, corev1.EventTypeNormal, "Ready", "Assess", "once more")
	if len(fake.Events) != 0 {
		t.Errorf("each reason has an allowance of its own")
	}
}
