package selection

import (
	"errors"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestAllows(t *testing.T) {
	t.Parallel()
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	rule := func(verbs, groups, resources []string, names ...string) *authorizationv1.SubjectRulesReviewStatus {
		return &authorizationv1.SubjectRulesReviewStatus{
			ResourceRules: []authorizationv1.ResourceRule{{Verbs: verbs, APIGroups: groups, Resources: resources, ResourceNames: names}},
		}
	}
	reads := []string{"get", "list", "watch"}
	for name, test := range map[string]struct {
		answer *authorizationv1.SubjectRulesReviewStatus
		query  Query
		want   bool
	}{
		"nobody has answered":  {nil, Query{Resource: widgets, Namespace: "a"}, true},
		"no rule":              {&authorizationv1.SubjectRulesReviewStatus{}, Query{Resource: widgets, Namespace: "a"}, false},
		"the kind":             {rule(reads, []string{"example.com"}, []string{"gadgets", "widgets"}), Query{Resource: widgets}, true},
		"everything":           {rule([]string{"*"}, []string{"*"}, []string{"*"}), Query{Resource: widgets}, true},
		"another kind":         {rule(reads, []string{"example.com"}, []string{"gadgets"}), Query{Resource: widgets}, false},
		"its status":           {rule(reads, []string{"example.com"}, []string{"widgets/status"}), Query{Resource: widgets}, false},
		"another group":        {rule(reads, []string{""}, []string{"*"}), Query{Resource: widgets}, false},
		"list without watch":   {rule([]string{"list"}, []string{"*"}, []string{"*"}), Query{Resource: widgets}, false},
		"one by name, for all": {rule(reads, []string{"*"}, []string{"*"}, "a"), Query{Resource: widgets}, false},
		"one by name":          {rule(reads, []string{"*"}, []string{"*"}, "a"), Query{Resource: widgets, Name: "a"}, true},
		"another by name":      {rule(reads, []string{"*"}, []string{"*"}, "a"), Query{Resource: widgets, Name: "b"}, false},
		"two rules": {&authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{
			{Verbs: []string{"list"}, APIGroups: []string{"example.com"}, Resources: []string{"widgets"}},
			{Verbs: []string{"watch"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		}}, Query{Resource: widgets}, true},
	} {
		if got := allows(test.answer, test.query); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// TestOneReviewAnswersForANamespace: what the hub may not list is not asked of each kind, nor again
// while nothing has changed.
func TestOneReviewAnswersForANamespace(t *testing.T) {
	t.Parallel()
	client := fake.NewSimpleDynamicClient(runtime.NewScheme())
	var reviews int
	var failure error
	rules := []any{map[string]any{"verbs": []any{"list", "watch"}, "apiGroups": []any{""}, "resources": []any{"configmaps"}}}
	incomplete := false
	client.PrependReactor("create", "selfsubjectrulesreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		reviews++
		return true, &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"resourceRules": rules,
			"incomplete": incomplete}}}, failure
	})
	clock := clocktesting.NewFakeClock(time.Now())
	r := newRights(client)
	r.clock = clock
	query := func(resource, namespace string) Query {
		return Query{Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Namespace: namespace}
	}
	for _, namespace := range []string{"", "a", "b"} {
		r.add(namespace, 1)
	}
	expect := func(what string, q Query, want time.Duration, reviewsBy int) {
		t.Helper()
		if got, _ := r.refused(t.Context(), q); got != want || reviews != reviewsBy {
			t.Errorf("%s: refused for %s after %d reviews, want %s after %d", what, got, reviews, want, reviewsBy)
		}
	}
	expect("a kind that may be read", query("configmaps", "a"), 0, 1)
	expect("the same again", query("configmaps", "a"), 0, 1)
	expect("another that may not", query("secrets", "a"), firstDoubt, 1)
	expect("a third", query("services", "a"), firstDoubt, 1)
	expect("another namespace", query("secrets", "b"), firstDoubt, 2)
	expect("all namespaces", query("secrets", ""), 0, 2)
	expect("a namespace that nobody selects any more", query("secrets", "c"), 0, 2)
	if r.known["a"].answer != r.known["b"].answer {
		t.Error("two namespaces hold two equal answers")
	}
	clock.Step(firstDoubt)
	expect("after a second", query("secrets", "a"), 2*firstDoubt, 3)
	for range 30 {
		clock.Step(longestDoubt)
		r.refused(t.Context(), query("secrets", "a"))
	}
	expect("after long", query("secrets", "a"), longestDoubt, 33)
	_, renewed := r.refused(t.Context(), query("secrets", "a"))
	rules = []any{map[string]any{"verbs": []any{"*"}, "apiGroups": []any{"*"}, "resources": []any{"*"}}}
	r.renew()
	select {
	case <-renewed:
	default:
		t.Error("who waits is not woken")
	}
	expect("after the role has changed", query("secrets", "a"), 0, 34)
	expect("the same again", query("secrets", "a"), 0, 34)
	r.contradict("a")
	expect("the server has refused it", query("secrets", "a"), 0, 35)
	rules, failure = nil, errors.New("the server is busy")
	r.renew()
	expect("it cannot be asked", query("secrets", "a"), 0, 36)
	failure = nil
	r.renew()
	expect("it says nothing", query("secrets", "a"), 0, 37)
	incomplete = true
	r.renew()
	expect("it does not know everything", query("secrets", "a"), 0, 38)
	r.add("a", -1)
	if r.known["a"] != nil {
		t.Error("a namespace without queries is remembered")
	}
}
