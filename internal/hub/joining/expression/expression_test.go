package expression

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestAnExpressionApprovesOnlyWhatItIsTrueOf(t *testing.T) {
	asked := Request{
		Labels: map[string]string{"env": "dev"}, ClientID: "edge-7", Key: "f00", Requester: "system:serviceaccount:clusters:t", Native: true,
	}
	for text, says := range map[string]string{
		"labels.env == 'dev' && clientID.startsWith('edge-')":    "",
		"native && key in ['f00'] && requester.endsWith(':t')":   "",
		"labels[?'tier'].orValue('') != 'prod'":                  "",
		"labels.exists(k, k == 'env' && labels[k].matches('d'))": "",
		"labels.all(k, !k.startsWith('x/'))":                     "",
		"labels.env == 'prod'":                                   "labels.env == 'prod' is false for this request",
		"labels.tier == 'dev'": "no such key: tier; a label that may be missing is written " +
			"labels[?'env'].orValue('')",
		"int(clientID) > 7":        "fails for this request",
		"1 / (size(key) - 3) == 0": "division by zero",
	} {
		rule, err := Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		approved, why := rule.Approves(asked)
		if approved != (says == "") || !strings.Contains(why, says) {
			t.Errorf("%s approves: %t, %q", text, approved, why)
		}
	}
	rule, err := Compile("labels.size() == 0 && key == ''")
	if err != nil {
		t.Fatal(err)
	}
	if approved, why := rule.Approves(Request{}); !approved {
		t.Errorf("a request without labels: %s", why)
	}
}

func TestAnExpressionThatCannotDecideIsRefusedWithTheReason(t *testing.T) {
	for text, says := range map[string]string{
		"":                   "it is empty",
		" \n":                "it is empty",
		"label.env == 'dev'": "it does not compile: line 1, column 1: undeclared reference to 'label'",
		"labels.env = 'dev'": "it does not compile: line 1, column 12",
		"true &&\n nativ":    "line 2, column 2",
		"clientID":           "it returns string: want true or false (bool)",
		"dyn(native)":        "it returns dyn",
		"labels[?'env']":     "it returns optional_type(string)",
		"native == 'yes'":    "found no matching overload",
		"labels.all(a, labels.all(b, labels.all(c, a != b || b != c)))": "it may cost up to",
		"native || " + strings.Repeat("x", 1024):                        "at most 1024 are allowed",
		strings.Repeat("(", 500) + "native" + strings.Repeat(")", 500):  "it does not compile",
	} {
		if _, err := Compile(text); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") ||
			len(err.Error()) > 700 {
			t.Errorf("%.80q: got %v, want %q in one line", text, err, says)
		}
	}
}

// TestAnEvaluationEnds gives an expression far more than its estimate is for.
func TestAnEvaluationEnds(t *testing.T) {
	if _, err := Compile("labels.all(a, labels.all(b, a != b || labels[a] == labels[b]))"); err == nil {
		t.Fatal("its estimate is within the limit")
	}
	rule, err := Compile("labels.all(k, labels[k].matches('^(x+x+)+$'))")
	if err != nil {
		t.Fatal(err)
	}
	many := map[string]string{}
	for i := range 100_000 {
		many[fmt.Sprintf("label-%d", i)] = strings.Repeat("x", 1000)
	}
	began := time.Now()
	approved, why := rule.Approves(Request{Labels: many})
	if approved || !strings.Contains(why, "cost limit exceeded") {
		t.Errorf("approved: %t, %q", approved, why)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestTheCacheHasOneExpressionForEachTokenThatIsThere(t *testing.T) {
	cache := NewCache()
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "t", UID: "1", Generation: 1}}
	token.Spec.Approval, token.Spec.ApprovalExpression = fleet.ApprovalCEL, "native"
	asked := Request{Native: true}
	expect := func(what string, approved bool, kept int) {
		t.Helper()
		rule, err := cache.Of(token)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got, _ := rule.Approves(asked); got != approved || len(cache.entries) != kept {
			t.Errorf("%s: approved %t, %d expressions are kept", what, got, len(cache.entries))
		}
	}
	expect("before the controller of tokens has seen it", true, 0)
	if err := cache.Keep(token); err != nil {
		t.Fatal(err)
	}
	expect("afterwards", true, 1)
	token.Generation, token.Spec.ApprovalExpression = 2, "!native"
	expect("an edited token", false, 1)
	token.UID, token.Generation, token.Spec.ApprovalExpression = "2", 1, "false"
	expect("another token of its name", false, 1)
	token.Spec.ApprovalExpression = "nonsense"
	if err := cache.Keep(token); err == nil {
		t.Error("an expression that does not compile is kept without a word")
	}
	if _, err := cache.Of(token); err == nil {
		t.Error("and used")
	}
	token.Spec.Approval = fleet.ApprovalManual
	if err := cache.Keep(token); err != nil || len(cache.entries) != 0 {
		t.Errorf("of a token without an expression %d are kept, %v", len(cache.entries), err)
	}
	token.Spec.Approval, token.Spec.ApprovalExpression = fleet.ApprovalCEL, "native"
	if err := cache.Keep(token); err != nil {
		t.Fatal(err)
	}
	cache.Forget(types.NamespacedName{Namespace: "clusters", Name: "t"})
	expect("a token that is gone", true, 0)
}
