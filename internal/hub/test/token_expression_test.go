package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// untilToken waits until the condition Ready of a token has a reason, and returns its message.
func (f fixture) untilToken(name, reason string) (message string) {
	f.t.Helper()
	f.eventually("token "+name+" is "+reason, func() error {
		var token fleet.ClusterRegistrationToken
		if err := f.get(&token, f.workspace, name); err != nil {
			return err
		}
		ready := kube.FindCondition(token.Status.Conditions, fleet.ConditionReady)
		if ready == nil || ready.Reason != reason {
			return fmt.Errorf("its condition is %+v", ready)
		}
		message = ready.Message
		return nil
	})
	return message
}

func TestAnExpressionApprovesRequests(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	const rule = "labels.env == 'dev' && clientID.startsWith('edge-')"
	values := f.stampingToken("rule", fleet.ClusterRegistrationTokenSpec{Approval: fleet.ApprovalCEL, ApprovalExpression: rule})
	labelled := func(clientID, env string) fleet.ClusterRegistrationSpec {
		spec := f.signed(f.keyOf(clientID), values, clientID, answerKey(t))
		spec.ClusterLabels = map[string]string{"env": env}
		return spec
	}
	r := f.mustAsk(values, labelled("edge-1", "dev"))
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	r = f.mustAsk(values, labelled("edge-2", "prod"))
	f.untilState(&r, fleet.RegistrationPending, "ApprovalRequired")
	for _, says := range []string{f.workspace + "/rule requires approval", rule + " is false for this request",
		r.Name + " muster/approved=true"} {
		if !strings.Contains(r.Status.Message, says) {
			t.Errorf("%q is missing in %q", says, r.Status.Message)
		}
	}
	if n := len(f.clusters()); n != 1 {
		t.Errorf("there are %d Clusters before anybody has approved", n)
	}
	f.approve(&r)
	f.untilState(&r, fleet.RegistrationGranted, "Granted")

	// A label that the agent asks for and does not get approves nothing: this Cluster keeps its own.
	f.check(f.Create(ctx, &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "shop", Labels: map[string]string{"env": "prod"}},
		Spec:       fleet.ClusterSpec{ClientID: "edge-shop"},
	}))
	r = f.mustAsk(values, labelled("edge-shop", "dev"))
	f.untilState(&r, fleet.RegistrationPending, "ApprovalRequired")

	// An agent of Rancher Fleet, which names no token, is woken by a change of the token, too.
	delete(values, "tokenName")
	legacy := f.mustAsk(values, fleet.ClusterRegistrationSpec{
		ClientID: "other", ClientRandom: "r4nd0m", ClusterLabels: map[string]string{"env": "dev"},
	})
	f.untilState(&legacy, fleet.RegistrationPending, "ApprovalRequired")
	var token fleet.ClusterRegistrationToken
	f.check(f.get(&token, f.workspace, "rule"))
	asker := "system:serviceaccount:" + f.workspace + ":" + naming.TokenServiceAccount("rule", string(token.UID))
	f.change(&token, func() {
		token.Spec.ApprovalExpression = fmt.Sprintf("requester == '%s' && key == '' && !native", asker)
	})
	f.untilState(&legacy, fleet.RegistrationGranted, "Granted")
}

func TestAnExpressionThatIsWrongIsNamedByTheTokenAndGrantsNothing(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	for name, c := range map[string]struct{ text, says string }{
		"typo":   {"lables.env == 'dev'", "does not compile: line 1, column 1: undeclared reference to 'lables'"},
		"text":   {"clientID", "returns string: want true or false"},
		"costly": {"labels.all(a, labels.all(b, labels.all(c, a != b || b != c)))", "it may cost up to"},
	} {
		token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}}
		token.Spec.Approval, token.Spec.ApprovalExpression = fleet.ApprovalCEL, c.text
		f.check(f.Create(ctx, token))
		if message := f.untilToken(name, "InvalidApprovalExpression"); !strings.Contains(message, "spec.approvalExpression: it") ||
			!strings.Contains(message, c.says) {
			t.Errorf("%s: %q does not say %q", name, message, c.says)
		}
	}
	for name, spec := range map[string]fleet.ClusterRegistrationTokenSpec{
		"without": {Approval: fleet.ApprovalCEL}, "unused": {Approval: fleet.ApprovalManual, ApprovalExpression: "native"},
		"long": {Approval: fleet.ApprovalCEL, ApprovalExpression: "native || " + strings.Repeat("x", 1024)},
	} {
		token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}, Spec: spec}
		if err := f.Create(ctx, token); !apierrors.IsInvalid(err) {
			t.Errorf("a token with an expression that is %s: %v", name, err)
		}
	}

	// A token that becomes wrong keeps its agents waiting, even approved ones, until a user corrects
	// it.
	values := f.stampingToken("edited", fleet.ClusterRegistrationTokenSpec{Approval: fleet.ApprovalCEL, ApprovalExpression: "native"})
	edit := func(text string) {
		t.Helper()
		f.eventually("the token is edited", func() error {
			var token fleet.ClusterRegistrationToken
			if err := f.Get(ctx, client.ObjectKey{Namespace: f.workspace, Name: "edited"}, &token); err != nil {
				return err
			}
			token.Spec.ApprovalExpression = text
			return f.Update(ctx, &token)
		})
	}
	edit("nativ")
	r := f.asking(values, "web")
	f.untilState(&r, fleet.RegistrationPending, "TokenInvalid")
	for _, says := range []string{"ClusterRegistrationToken " + f.workspace + "/edited cannot be used", "undeclared reference to 'nativ'",
		"edit clusterregistrationtoken edited"} {
		if !strings.Contains(r.Status.Message, says) {
			t.Errorf("%q is missing in %q", says, r.Status.Message)
		}
	}
	f.approve(&r)
	edit("1")
	f.eventually("the request says what is wrong now", func() error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(&r), &r); err != nil {
			return err
		}
		if r.Status.Granted || r.Status.Reason != "TokenInvalid" || !strings.Contains(r.Status.Message, "returns int") {
			return fmt.Errorf("its status is %+v", r.Status)
		}
		return nil
	})
	edit("native")
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
}

func TestAHubThatWantsTokensToEndRefusesOthers(t *testing.T) {
	f := newAlone(t, "")
	ctx := context.Background()
	_, values := f.token("endless", "")
	waits := f.stampingToken("waits", fleet.ClusterRegistrationTokenSpec{Approval: fleet.ApprovalManual})
	r := f.asking(waits, "web")
	f.untilState(&r, fleet.RegistrationPending, "ApprovalRequired")
	f.configure(`{"registrationTokenTTL":{"required":true}}`)
	if message := f.untilToken("endless", "TTLRequired"); !strings.Contains(message, "set spec.ttl, for example 240h") {
		t.Errorf("the token says %q", message)
	}
	f.eventually("its credential is refused", func() error {
		if _, err := f.ask(values, fleet.ClusterRegistrationSpec{ClientID: "late"}); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("asking: %v", err)
		}
		return nil
	})
	f.untilToken("waits", "TTLRequired")
	f.approve(&r)
	f.untilState(&r, fleet.RegistrationWaiting, "TokenInvalid")
	if !strings.Contains(r.Status.Message, "does not accept tokens without an expiry") {
		t.Errorf("a request that was made with such a token before says %q", r.Status.Message)
	}
	var token fleet.ClusterRegistrationToken
	f.eventually("the remedy is taken", func() error {
		if err := f.get(&token, f.workspace, "waits"); err != nil {
			return err
		}
		token.Spec.TTL = &metav1.Duration{Duration: 240 * time.Hour}
		return f.Update(ctx, &token)
	})
	f.untilToken("waits", "Ready")
	f.token("new", "240h")
}
