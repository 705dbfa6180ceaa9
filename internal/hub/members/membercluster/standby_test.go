package membercluster

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// controllerAt is a controller with a clock and nothing else.
func controllerAt(now time.Time) *Controller {
	return &Controller{Controller: &lifecycle.Controller{Deps: controller.Deps{Clock: clocktesting.NewFakePassiveClock(now)}}}
}

func TestForHowLongTheAgentOfALostHubIsAwaited(t *testing.T) {
	for age, want := range map[time.Duration]bool{0: true, reconnectLife - time.Second: true, reconnectLife: false} {
		r := &reconciliation{mc: &clusterv1beta1.MemberCluster{}, o: keyed(t), Controller: controllerAt(now)}
		r.o.credential.Restored = r.o.Report.Status.AgentKey
		r.o.account = metadataOf(r.o.ExchangedAccount(r.o.exchange()))
		r.o.account.CreationTimestamp = metav1.NewTime(now.Add(-age))
		if r.observeReturn(); r.o.credential.Awaited != want {
			t.Errorf("%s after the restore it is awaited: %t", age, r.o.credential.Awaited)
		}
	}
}

func TestForWhichAgentsOfALostHubACredentialIsIssued(t *testing.T) {
	key, err := credential.NewAgentKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := credential.NewAgentKey()
	if err != nil {
		t.Fatal(err)
	}
	restored := func(r *reconciliation, text string) { r.mc.Annotations[fleet.AnnotationRestoredKey] = text }
	for name, c := range map[string]struct {
		change         func(*reconciliation)
		awaits, issues bool
	}{
		"one that has not come":                {func(*reconciliation) {}, true, true},
		"not one that was not restored":        {func(r *reconciliation) { delete(r.mc.Annotations, fleet.AnnotationRestoredKey) }, false, false},
		"not one that beats":                   {func(r *reconciliation) { r.o.Liveness.LastBeat = now }, false, false},
		"not one that beat for another leader": {func(r *reconciliation) { r.o.RecordedBeat = now.Add(-time.Hour) }, false, false},
		"not one that reports a key":           {func(r *reconciliation) { r.o.Report.Status.AgentKey = other.Public() }, false, false},
		"not with a key that is not pinned": {
			func(r *reconciliation) { restored(r, base64.StdEncoding.EncodeToString(other.Public())) }, false, false,
		},
		"not with a key that is none": {func(r *reconciliation) { restored(r, "AAAA") }, false, false},
		"not with a damaged key":      {func(r *reconciliation) { restored(r, "!") }, false, false},
		"not if nothing is to be exchanged": {
			func(r *reconciliation) { r.mc.Annotations[fleet.AnnotationAgentKey] = "" }, false, false,
		},
		"not before the account of the identity is there": {func(r *reconciliation) { r.o.accountMissing = true }, true, false},
		"not with an identity of another member":          {func(r *reconciliation) { r.o.identityHolder = "MemberCluster b" }, true, false},
	} {
		mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{
			fleet.AnnotationAgentKey:    credential.Fingerprint(key.Public()),
			fleet.AnnotationRestoredKey: base64.StdEncoding.EncodeToString(key.Public()),
		}}}
		r := &reconciliation{mc: mc, o: keyed(t, withoutKey, unreported), Controller: controllerAt(now)}
		r.o.RecordedBeat, r.o.Liveness.LastBeat = time.Time{}, time.Time{}
		c.change(r)
		r.observeReturn()
		if got := r.awaitsReturn(); got != c.awaits {
			t.Errorf("%s: awaited is %t", name, got)
		}
		if got := r.o.returns(); got != c.issues {
			t.Errorf("%s: a credential is issued: %t", name, got)
		}
		says := joinedCondition(r.o, lifecycle.Departure{}).message
		if strings.Contains(says, "comes by itself with a token of the standby") != c.issues {
			t.Errorf("%s: the MemberCluster says %q", name, says)
		}
	}
}
