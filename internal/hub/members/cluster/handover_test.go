package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
)

func TestWhichAgentActsFollowsFromTheHeartbeats(t *testing.T) {
	const legacy, native = membership.Legacy, membership.Native
	issued := account{uid: "u", issuedTo: legacy, recorded: legacy}
	shared := account{uid: "u", issuedTo: legacy, recorded: native, shared: true}
	back := account{uid: "u", issuedTo: legacy, recorded: legacy, shared: true}
	beaten := fleet.AgentStatus{LastSeen: metav1.NewTime(now)}
	said := func(uid string) fleet.AgentStatus {
		return fleet.AgentStatus{LastSeen: metav1.NewTime(now), Account: uid}
	}
	for name, c := range map[string]struct {
		account account
		agent   fleet.AgentStatus
		beats   liveness.Source
		want    membership.AgentKind
	}{
		"nobody has an account": {account{}, beaten, "", ""},
		"an account of our own is our agent's": {
			account{uid: "u", issuedTo: native, recorded: native}, beaten, liveness.InStatus, native,
		},
		"an account of theirs is their agent's":                    {issued, beaten, liveness.InStatus, legacy},
		"a Lease that is left does not change that":                {issued, beaten, liveness.InLease, legacy},
		"until ours says by it that it goes on":                    {issued, said("u"), liveness.InStatus, native},
		"which nobody says with another account":                   {issued, said("v"), liveness.InStatus, legacy},
		"or an empty one":                                          {account{issuedTo: legacy}, beaten, "", legacy},
		"ours has said so":                                         {shared, said("u"), liveness.InLease, native},
		"a beat of theirs takes it back":                           {shared, beaten, liveness.InStatus, legacy},
		"also one that came while the hub was away":                {shared, beaten, "", legacy},
		"a Lease that goes on to be renewed gives it back to ours": {back, beaten, liveness.InLease, native},
		"neither has sent a heartbeat":                             {shared, fleet.AgentStatus{}, "", native},
		"neither has sent a heartbeat, and theirs was the last":    {back, fleet.AgentStatus{}, "", legacy},
	} {
		if got := acting(c.account, c.agent, c.beats); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhoeverBeatsInTheStatusIsAnAgentOfRancherFleetUnlessItNamesItsAccount(t *testing.T) {
	legacy, native := account{uid: "u", issuedTo: membership.Legacy, shared: true}, account{uid: "u", issuedTo: membership.Native}
	beaten, ours := fleet.AgentStatus{LastSeen: metav1.NewTime(now)}, fleet.AgentStatus{LastSeen: metav1.NewTime(now), Account: "u"}
	if !isLegacyBeat(legacy, beaten) || isLegacyBeat(legacy, ours) || isLegacyBeat(native, beaten) ||
		isLegacyBeat(legacy, fleet.AgentStatus{}) {
		t.Error("the beats are mixed up")
	}
}

func TestNothingOfTheAgentBeforeIsShownOfALegacyAgent(t *testing.T) {
	o := member(func(o *observed) {
		o.agent, o.Report = membership.Legacy, nil
		o.before.Display.ReadyNodes, o.before.Display.SampleNode = "2/3", "n1"
	})
	if after := describe(o, lifecycle.Departure{}, now); after.Display.ReadyNodes != "" || after.Display.SampleNode != "" {
		t.Errorf("it shows %+v", after.Display)
	}
}

func TestWhoTakesCredentialsThatTheHubIssues(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observed)
		want   bool
	}{
		"an agent of Muster's": {func(*observed) {}, true},
		"not while it is lost": {func(o *observed) { o.Liveness.State = liveness.Lost }, false},
		"not a Rancher Fleet agent": {func(o *observed) {
			o.agent, o.account.issuedTo = membership.Legacy,
				membership.Legacy
		}, false},
		"nor ours with the credential that was for that": {func(o *observed) { o.account.issuedTo, o.account.shared = membership.Legacy, true },
			false},
	} {
		o := member(func(o *observed) { o.account.issuedTo = membership.Native }, c.change)
		if got := o.takesCredentials(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
