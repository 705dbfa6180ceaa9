package admission

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

func TestWhoMadeARequestIsBelievedWhenAForgeryFails(t *testing.T) {
	refused := func(message string) func(client.Object) error {
		return func(client.Object) error {
			return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(message))
		}
	}
	denied := refused("ValidatingAdmissionPolicy 'muster-registration-token' with binding 'muster-registration-token' denied request: no")
	for _, c := range []struct {
		name, reason string
		answer       func(client.Object) error
	}{
		{"the policy refuses it", "", denied},
		{"it passes", reasons.PolicyMissing, func(client.Object) error { return nil }},
		{"somebody else writes the name over, so that the token is not checked", reasons.PolicyMissing, func(o client.Object) error {
			o.SetAnnotations(nil)
			return nil
		}},
		{"another policy refuses it", reasons.PolicyUnchecked,
			refused("ValidatingAdmissionPolicy 'other' with binding 'other' denied request: no")},
		{"the API server does not answer", reasons.PolicyUnchecked, func(client.Object) error { return errors.New("timeout") }},
	} {
		checker, _, _, _ := checked(t, &c.answer)
		checker.Live = present{}
		if is := checker.Requests(t.Context()); is.Reason != c.reason || (is.Problem == "") != (c.reason == "") {
			t.Errorf("%s: %+v", c.name, is)
		}
	}
	checker, _, _, _ := checked(t, &denied)
	if is := checker.Requests(t.Context()); is.Reason != reasons.PolicyUnchecked {
		t.Errorf("a policy that cannot be read: %+v", is)
	}
}

func TestThePolicyOfRequestsIsLookedForWithBackoff(t *testing.T) {
	passes := func(client.Object) error { return nil }
	refused := func(client.Object) error {
		return errors.New("ValidatingAdmissionPolicy 'muster-registration-token' denied request")
	}
	answer := passes
	checker, clock, recorder, tries := checked(t, &answer)
	checker.Live = present{}
	expect := func(after time.Duration, missing bool, triesBy int, again time.Duration) {
		t.Helper()
		clock.SetTime(clock.Now().Add(after))
		is := checker.Requests(t.Context())
		if (is.Problem != "") != missing || *tries != triesBy || is.Until.Sub(clock.Now()) != again || len(recorder.Events) != 1 {
			t.Errorf("%+v; %d tries, %d events, again in %s", is, *tries, len(recorder.Events), is.Until.Sub(clock.Now()))
		}
	}
	expect(0, true, 1, 5*time.Second)
	expect(4*time.Second, true, 1, time.Second)
	expect(time.Second, true, 2, 10*time.Second)
	for _, tried := range []int{3, 4, 5, 6} {
		clock.SetTime(clock.Now().Add(maxAbsenceLife))
		checker.Requests(t.Context())
		if *tries != tried {
			t.Errorf("%d tries, want %d", *tries, tried)
		}
	}
	expect(maxAbsenceLife, true, 7, maxAbsenceLife)
	answer = refused
	expect(maxAbsenceLife, false, 8, effectLife)
	expect(effectLife/2, false, 8, effectLife/2)
}

// TestNobodyWaitsWhileTheAPIServerIsAsked has a webhook that does not answer.
func TestNobodyWaitsWhileTheAPIServerIsAsked(t *testing.T) {
	answer := func(client.Object) error {
		return errors.New("ValidatingAdmissionPolicy 'muster-registration-token' denied request")
	}
	checker, clock, _, _ := checked(t, &answer)
	checker.Live = present{}
	if is := checker.Requests(t.Context()); is.Problem != "" {
		t.Fatalf("it is %+v", is)
	}
	clock.SetTime(clock.Now().Add(time.Hour))
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	before := answer
	answer = func(o client.Object) error {
		close(entered)
		<-leave
		return before(o)
	}
	go func() {
		defer close(done)
		checker.Requests(t.Context())
	}()
	<-entered
	others := make(chan Attribution, 1)
	go func() {
		checker.InForce(t.Context(), RegistrationToken)
		others <- checker.Requests(t.Context())
	}()
	select {
	case is := <-others:
		if is.Problem != "" {
			t.Errorf("meanwhile it is %+v", is)
		}
	case <-time.After(5 * time.Second):
		t.Error("others wait for that answer")
	}
	close(leave)
	<-done
}
