package authorization

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/muster-fleet/muster/internal/fleet/author"
)

func TestAnAuthorIsWhoTheAnnotationsName(t *testing.T) {
	for _, c := range []struct {
		name        string
		annotations map[string]string
		known       bool
		groups      []string
	}{
		{"nobody", nil, false, []string{"system:authenticated"}},
		{"groups of nobody are worth nothing", map[string]string{author.AnnotationGroups: "system:masters"}, false, []string{"system:masters"}},
		{
			"a user with groups", map[string]string{author.AnnotationName: "eve", author.AnnotationGroups: "team a\nsystem:authenticated"}, true,
			[]string{"team a", "system:authenticated"},
		},
		{"a user without", map[string]string{author.AnnotationName: "eve"}, true, []string{"system:authenticated"}},
		{"a service account", map[string]string{author.AnnotationName: "system:serviceaccount:shop:ci"}, true,
			[]string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"}},
		{"anybody", map[string]string{author.AnnotationName: "system:anonymous"}, true, nil},
	} {
		a, known := author.Of(c.annotations)
		if diff := cmp.Diff(c.groups, a.Groups()); known != c.known || diff != "" {
			t.Errorf("%s: known %t; groups (-want +got):\n%s", c.name, known, diff)
		}
	}
}

// asked returns an API server that allows these requests, and the list of the queries it receives.
func asked(allowed map[string]bool, failure *error) (client.Client, *[]string) {
	var questions []string
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			if *failure != nil {
				return *failure
			}
			review := o.(*authorizationv1.SubjectAccessReview)
			a := review.Spec.ResourceAttributes
			text := fmt.Sprintf("%s: %s %s.%s %s/%s", review.Spec.User, a.Verb, a.Resource, a.Group, a.Namespace, a.Name)
			questions = append(questions, text)
			review.Status.Allowed = allowed[text]
			return nil
		},
	}), &questions
}

var (
	eve, admin = author.Author{Name: "eve"}, author.Author{Name: "admin"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

func TestAnswersAreGoodForAMinuteAndAFailureIsNone(t *testing.T) {
	var failure error
	clock := clocktesting.NewFakePassiveClock(time.Now())
	c, questions := asked(map[string]bool{
		"admin: * *.* /": true, "eve: get secrets. shop/a": true, "eve: get namespaces. shop/shop": true,
	}, &failure)
	r := NewReviewer(c, clock)
	expect := func(a author.Author, right Right, want bool, questionsBy int) {
		t.Helper()
		got, err := r.Allows(context.Background(), a, right)
		if err != nil || got != want || len(*questions) != questionsBy {
			t.Errorf("%s may %s: %t, %v; asked are %v", a.Name, right, got, err, *questions)
		}
	}
	expect(admin, Right{Resource: secrets}, true, 1)
	expect(admin, Right{Resource: secrets, Namespace: "shop", Name: "a"}, true, 1)
	expect(eve, Right{Resource: secrets, Namespace: "shop", Name: "a"}, true, 3)
	expect(eve, Right{Resource: secrets, Namespace: "shop"}, false, 4)
	expect(eve, Right{Resource: secrets, Namespace: "shop"}, false, 4)
	expect(eve, Right{Resource: namespaces, Name: "shop"}, true, 5)
	clock.SetTime(clock.Now().Add(answerLife))
	expect(admin, Right{Resource: secrets}, true, 6)

	failure = errors.New("the server is busy")
	var unanswered *UnansweredError
	if _, err := r.Allows(context.Background(), eve, Right{Resource: secrets, Namespace: "shop"}); !errors.As(err, &unanswered) {
		t.Errorf("a question that could not be asked is %v", err)
	}
}

// TestAnAuthorizerThatDoesNotAnswerSaysNotNo has a webhook that fails beside one that answers.
func TestAnAuthorizerThatDoesNotAnswerSaysNotNo(t *testing.T) {
	answers := map[string]authorizationv1.SubjectAccessReviewStatus{}
	c := interceptor.NewClient(fake.NewClientBuilder().Build(),
		interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			review := o.(*authorizationv1.SubjectAccessReview)
			review.Status = answers[review.Spec.ResourceAttributes.Verb]
			return nil
		}})
	fails := authorizationv1.SubjectAccessReviewStatus{EvaluationError: "the webhook does not answer"}
	for name, row := range map[string]struct {
		everything, this authorizationv1.SubjectAccessReviewStatus
		want             bool
		unanswered       string
	}{
		"it fails": {fails, fails, false, "the webhook does not answer"},
		"it fails, and another one says yes": {
			fails, authorizationv1.SubjectAccessReviewStatus{Allowed: true, EvaluationError: "the webhook does not answer"}, true, "",
		},
		"it fails, and another one says no": {
			fails, authorizationv1.SubjectAccessReviewStatus{Denied: true, EvaluationError: "the webhook does not answer"}, false, "",
		},
		"all answer": {
			authorizationv1.SubjectAccessReviewStatus{}, authorizationv1.SubjectAccessReviewStatus{}, false, "",
		},
		"everything is allowed by one of them": {authorizationv1.SubjectAccessReviewStatus{Allowed: true, EvaluationError: "x"}, fails, true, ""},
	} {
		answers["*"], answers["list"] = row.everything, row.this
		got, err := NewReviewer(c, clocktesting.NewFakePassiveClock(time.Now())).Allows(t.Context(), eve, Right{
			Resource: secrets, Namespace: "shop",
		})
		var unanswered *UnansweredError
		if got != row.want || errors.As(err, &unanswered) != (row.unanswered != "") ||
			err != nil && !strings.Contains(err.Error(), row.unanswered) {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	var none error
	c, _ := asked(nil, &none)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	r := NewReviewer(c, clock)
	for i := range maxAnswers + 10 {
		r.cache(question{name: fmt.Sprint(i)}, answer{expires: clock.Now().Add(answerLife)}, clock.Now())
	}
	if len(r.answers) > maxAnswers {
		t.Errorf("%d answers are remembered", len(r.answers))
	}
}

// BenchmarkAllows measures what a kind costs a placement whose author was asked about
// less than a minute ago.
func BenchmarkAllows(b *testing.B) {
	var none error
	c, _ := asked(nil, &none)
	r := NewReviewer(c, clocktesting.NewFakePassiveClock(time.Now()))
	for b.Loop() {
		if _, err := r.Allows(context.Background(), eve, Right{Resource: secrets, Namespace: "shop"}); err != nil {
			b.Fatal(err)
		}
	}
}
