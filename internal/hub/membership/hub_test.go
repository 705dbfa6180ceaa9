package membership

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
)

func TestReach(t *testing.T) {
	const url, ca, mode = "https://new", "CA", "system-store"
	// arrived is a member whose agent does as the settings say.
	arrived := func(change func(*Reach, *clusterv1beta1.InternalMemberCluster)) Reach {
		report := &clusterv1beta1.InternalMemberCluster{}
		report.Generation = 2
		report.Spec.Hub = &clusterv1beta1.HubAddress{APIServerURL: url, APIServerCA: ca, AgentTLSMode: mode}
		report.Status.AgentVersion = "v1"
		report.Status.Hub = &clusterv1beta1.HubInUse{APIServerURL: url, APIServerCAHash: credential.CAHash([]byte(ca)), AgentTLSMode: mode}
		r := Reach{Desired: report.Spec.Hub.DeepCopy(), Report: report}
		if change != nil {
			change(&r, report)
		}
		return r
	}
	failed := func(generation int64) func(*Reach, *clusterv1beta1.InternalMemberCluster) {
		return func(_ *Reach, report *clusterv1beta1.InternalMemberCluster) {
			report.Status.Hub.APIServerURL = "https://old"
			report.Status.Hub.Failure, report.Status.Hub.ObservedGeneration = "cannot move", generation
		}
	}
	for _, c := range []struct {
		name   string
		reach  Reach
		reason string
		says   string
	}{
		{"an agent that does as the settings say", arrived(nil), ReasonInUse, "uses https://new (apiServerCAHash 92daeba0b87f)"},
		{"settings that name no address say nothing", arrived(func(r *Reach, _ *clusterv1beta1.InternalMemberCluster) { r.Desired = nil }), "", ""},
		{"nor is anything known of a legacy agent", arrived(func(_ *Reach, report *clusterv1beta1.InternalMemberCluster) { report.Status.AgentVersion = "" }), "", ""},
		{"nor without a report", Reach{Desired: &clusterv1beta1.HubAddress{APIServerURL: url}}, "", ""},
		{"a native agent that cannot be moved is named", arrived(func(_ *Reach, report *clusterv1beta1.InternalMemberCluster) { report.Status.Hub = nil }), ReasonAgentTooOld, "version v1"},
		{"another URL", arrived(func(_ *Reach, report *clusterv1beta1.InternalMemberCluster) {
			report.Status.Hub.APIServerURL = "https://old"
		}),
			ReasonMoving, "uses https://old (apiServerCAHash 92daeba0b87f) and was asked to move to https://new"},
		{"another CA", arrived(func(_ *Reach, report *clusterv1beta1.InternalMemberCluster) {
			report.Status.Hub.APIServerCAHash = "a740"
		}), ReasonMoving, "(apiServerCAHash a740)"},
		{"another mode", arrived(func(r *Reach, report *clusterv1beta1.InternalMemberCluster) {
			r.Desired.AgentTLSMode, report.Spec.Hub.AgentTLSMode = "strict", "strict"
		}), ReasonMoving, "agentTLSMode strict"},
		{"a stricter mode will do", arrived(func(_ *Reach, report *clusterv1beta1.InternalMemberCluster) {
			report.Status.Hub.AgentTLSMode = "strict"
		}), ReasonInUse, ""},
		{"no verification is never in use in silence", arrived(func(_ *Reach, report *clusterv1beta1.InternalMemberCluster) {
			report.Status.Hub.AgentTLSMode = "insecure"
		}),
			ReasonNotVerified, "tlsClientInsecure=false"},
		{"a field that the settings leave open is the agent's", arrived(func(r *Reach, report *clusterv1beta1.InternalMemberCluster) {
			r.Desired.APIServerCA, report.Spec.Hub.APIServerCA, report.Status.Hub.APIServerCAHash = "", "", "anything"
		}), ReasonInUse, ""},
		{"a move that failed says why", arrived(failed(2)), ReasonAddressUnreachable, "cannot move"},
		{"a failure of what was asked before is history", arrived(failed(1)), ReasonMoving, ""},
		{"a member whose turn is to come says so", arrived(func(r *Reach, report *clusterv1beta1.InternalMemberCluster) {
			failed(2)(r, report)
			r.Desired.APIServerURL = "https://newer"
		}), ReasonMoving, "its turn to move to https://newer"},
	} {
		got, known := c.reach.Judge()
		if known != (c.reason != "") || got.Reason != c.reason || got.InUse != (c.reason == ReasonInUse) || !strings.Contains(got.Message, c.says) {
			t.Errorf("%s: got %+v, %t", c.name, got, known)
		}
	}
}

func TestAThousandMembersTakeTheirTurnsOverTwentySeconds(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var turns Turns
	inASecond := map[time.Duration]int{}
	for i := range 1000 {
		inASecond[turns.Take(fmt.Sprint(i), now).Truncate(time.Second)]++
	}
	for second, members := range inASecond {
		if members > 50 {
			t.Errorf("%d members move in second %s", members, second)
		}
	}
	if len(inASecond) != 20 {
		t.Errorf("it takes %d seconds", len(inASecond))
	}
}

func TestTurns(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var turns Turns
	await := func(name, member string, want time.Duration) {
		t.Helper()
		if got := turns.Await(member, now); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	await("where nobody waits it is everybody's turn", "a", 0)
	await("the next one waits", "b", turnEvery)
	await("and asking again does not make it longer", "b", turnEvery)
	turns.Take("c", now)
	now = now.Add(turnEvery)
	await("when its time has come it is its turn", "b", 0)
	await("which is then over", "b", 2*turnEvery)
	turns.Forget("c")
	await("who was forgotten waits behind all others", "c", 3*turnEvery)
	now = now.Add(time.Hour)
	await("a turn that was missed is not lost", "b", 0)
}
