package admission

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// checked is a checker on a cluster that does with the forgery what a test says, and how
// often it was tried.
func checked(t *testing.T, answer *func(client.Object) error) (*Checker, *clocktesting.FakePassiveClock, *events.FakeRecorder, *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(placement.AddToScheme(scheme), fleet.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	tries := 0
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.CreateOption) error {
			tries++
			var given client.CreateOptions
			if given.ApplyOptions(options); len(given.DryRun) != 1 {
				t.Error("it is no dry run")
			}
			return (*answer)(o)
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewNotFound(schema.GroupResource{}, "")
		},
	})
	clock, recorder := clocktesting.NewFakePassiveClock(time.Now()), events.NewFakeRecorder(10)
	return &Checker{Client: c, Live: c, Clock: clock, Recorder: recorder, Log: logr.Discard(), Namespace: "system"}, clock, recorder, &tries
}

// present has every policy, since an hour ago.
type present struct{ client.Reader }

func (present) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-time.Hour)))
	return nil
}

func TestAPolicyIsBelievedInWhenAForgeryFails(t *testing.T) {
	forbidden := func(message string) func(client.Object) error {
		return func(client.Object) error {
			return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(message))
		}
	}
	for _, c := range []struct {
		name    string
		answer  func(client.Object) error
		missing bool
		fails   bool
	}{
		{"the author is written over", func(o client.Object) error {
			o.SetAnnotations(map[string]string{"muster/author": "the hub"})
			return nil
		}, false, false},
		{"the author is taken off", func(o client.Object) error { o.SetAnnotations(nil); return nil }, false, false},
		{
			"the policy refuses it", forbidden("ValidatingAdmissionPolicy 'muster-placement-author' with binding 'muster-placement-author' denied " +
				"request: no"), false, false,
		},
		{"it passes", func(client.Object) error { return nil }, true, false},
		{"the policy of an older chart refuses placements only", func(o client.Object) error {
			if _, is := o.(*placement.ResourcePlacement); is {
				o.SetAnnotations(nil)
			}
			return nil
		}, true, false},
		{"another policy refuses it", forbidden("ValidatingAdmissionPolicy 'other' with binding 'other' denied request: no"), false, true},
		{"the hub may not try", forbidden("no right"), false, true},
	} {
		checker, _, _, _ := checked(t, &c.answer)
		problem, err := checker.Authors(t.Context())
		if (problem != "") != c.missing || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", c.name, problem, err)
		}
	}
}

func TestAPolicyIsLookedForAgainAndAnnouncedOnce(t *testing.T) {
	passes := func(client.Object) error { return nil }
	refused := func(o client.Object) error { o.SetAnnotations(nil); return nil }
	answer := passes
	checker, clock, recorder, tries := checked(t, &answer)
	expect := func(after time.Duration, missing bool, triesBy, eventsBy int) {
		t.Helper()
		clock.SetTime(clock.Now().Add(after))
		problem, err := checker.Authors(t.Context())
		if err != nil || (problem != "") != missing || *tries != triesBy || len(recorder.Events) != eventsBy {
			t.Errorf("%q, %v; %d tries, %d events", problem, err, *tries, len(recorder.Events))
		}
	}
	if err := checker.Start(t.Context()); err != nil || len(recorder.Events) != 1 {
		t.Errorf("at the start: %v, %d events", err, len(recorder.Events))
	}
	expect(0, true, 1, 1)
	expect(absenceLife, true, 2, 1)
	answer = refused
	expect(absenceLife, false, 5, 1) // a placement, an override and an envelope are refused
	expect(effectLife-1, false, 5, 1)
	answer = passes
	expect(1, true, 6, 2)
}

func TestAPolicyThatIsGoneIsNamedAtTheStart(t *testing.T) {
	answer := func(o client.Object) error { o.SetAnnotations(nil); return nil }
	checker, _, recorder, _ := checked(t, &answer)
	if err := checker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-recorder.Events:
		if !strings.Contains(event, "PolicyMissing") || !strings.Contains(event, "ValidatingAdmissionPolicyBinding muster-cluster-status") {
			t.Errorf("the event is %s", event)
		}
	default:
		t.Error("there is no event")
	}
}

// TestTheChartHasThePoliciesThatAreLookedFor keeps the names in step with the chart.
func TestTheChartHasThePoliciesThatAreLookedFor(t *testing.T) {
	files, err := filepath.Glob("../../../../charts/fleet/templates/admission*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`kind: (Validating\w+)\nmetadata:\n  name: (\S+)\n`).FindAllStringSubmatch(string(text), -1) {
			named[found[1]] = append(named[found[1]], found[2])
		}
	}
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		slices.Sort(named[kind])
		if diff := cmp.Diff(named[kind], validating); diff != "" {
			t.Errorf("%s (-chart +looked for):\n%s", kind, diff)
		}
	}
}

func TestAPolicyIsInForceWithItsBinding(t *testing.T) {
	there, reads := map[string]bool{}, 0
	var failure error
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			reads++
			if failure != nil || there[o.GetObjectKind().GroupVersionKind().Kind+" "+key.Name] {
				return failure
			}
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		},
	})
	clock := clocktesting.NewFakePassiveClock(time.Now())
	checker := &Checker{Live: c, Clock: clock, Log: logr.Discard()}
	expect := func(what string, want bool, readsBy int) {
		t.Helper()
		if got := checker.InForce(context.Background(), "a"); got != want || reads != readsBy {
			t.Errorf("%s: in force %t after %d reads", what, got, reads)
		}
	}
	there["ValidatingAdmissionPolicy a"] = true
	expect("without a binding", false, 2)
	there["ValidatingAdmissionPolicyBinding a"] = true
	expect("just after that", false, 2)
	clock.SetTime(clock.Now().Add(absenceLife))
	expect("with a binding", true, 4)
	expect("just after that", true, 4)
	failure = errors.New("no answer")
	clock.SetTime(clock.Now().Add(effectLife))
	expect("not to be asked for", false, 6)
	if (*Checker)(nil).InForce(context.Background(), "a") {
		t.Error("without a checker it is in force")
	}
}
