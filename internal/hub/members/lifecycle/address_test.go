package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

func TestAddress(t *testing.T) {
	const url, ca, mode = "https://new", "CA", "system-store"
	// arrived is a member whose agent does as the settings say.
	arrived := func(change func(*Address, *clusterv1beta1.InternalMemberCluster)) Address {
		report := &clusterv1beta1.InternalMemberCluster{}
		report.Generation = 2
		report.Spec.Hub = &clusterv1beta1.HubAddress{APIServerURL: url, APIServerCA: ca, AgentTLSMode: mode}
		report.Status.AgentVersion = "v1"
		report.Status.Hub = &clusterv1beta1.HubInUse{APIServerURL: url, APIServerCAHash: credential.CAHash([]byte(ca)), AgentTLSMode: mode}
		r := Address{Desired: report.Spec.Hub.DeepCopy(), Report: report}
		if change != nil {
			change(&r, report)
		}
		return r
	}
	failed := func(generation int64) func(*Address, *clusterv1beta1.InternalMemberCluster) {
		return func(_ *Address, report *clusterv1beta1.InternalMemberCluster) {
			report.Status.Hub.APIServerURL = "https://old"
			report.Status.Hub.Failure, report.Status.Hub.ObservedGeneration = "cannot move", generation
		}
	}
	for _, c := range []struct {
		name    string
		address Address
		reason  string
		says    string
	}{
		{"an agent that does as the settings say", arrived(nil), reasons.InUse, "uses https://new (apiServerCAHash 92daeba0b87f)"},
		{
			"settings that name no address say nothing", arrived(func(r *Address, _ *clusterv1beta1.InternalMemberCluster) { r.Desired = nil }), "",
			"",
		},
		{
			"nor is anything known of a legacy agent",
			arrived(func(_ *Address, report *clusterv1beta1.InternalMemberCluster) { report.Status.AgentVersion = "" }), "", "",
		},
		{"nor without a report", Address{Desired: &clusterv1beta1.HubAddress{APIServerURL: url}}, "", ""},
		{
			"a native agent that cannot be moved is named",
			arrived(func(_ *Address, report *clusterv1beta1.InternalMemberCluster) { report.Status.Hub = nil }), reasons.AgentTooOld, "version v1",
		},
		{"another URL", arrived(func(_ *Address, report *clusterv1beta1.InternalMemberCluster) {
			report.Status.Hub.APIServerURL = "https://old"
		}),
			reasons.Moving, "uses https://old (apiServerCAHash 92daeba0b87f); the hub has requested its move to https://new"},
		{"another CA", arrived(func(_ *Address, report *clusterv1beta1.InternalMemberCluster) {
			report.Status.Hub.APIServerCAHash = "a740"
		}), reasons.Moving, "(apiServerCAHash a740)"},
		{"another mode", arrived(func(r *Address, report *clusterv1beta1.InternalMemberCluster) {
			r.Desired.AgentTLSMode, report.Spec.Hub.AgentTLSMode = "strict", "strict"
		}), reasons.Moving, "agentTLSMode strict"},
		{"a stricter mode will do", arrived(func(_ *Address, report *clusterv1beta1.InternalMemberCluster) {
			report.Status.Hub.AgentTLSMode = "strict"
		}), reasons.InUse, ""},
		{"no verification is never in use in silence", arrived(func(_ *Address, report *clusterv1beta1.InternalMemberCluster) {
			report.Status.Hub.AgentTLSMode = "insecure"
		}),
			reasons.NotVerified, "tlsClientInsecure=false"},
		{"a field that the settings leave open is the agent's", arrived(func(r *Address, report *clusterv1beta1.InternalMemberCluster) {
			r.Desired.APIServerCA, report.Spec.Hub.APIServerCA, report.Status.Hub.APIServerCAHash = "", "", "anything"
		}), reasons.InUse, ""},
		{"a move that failed says why", arrived(failed(2)), reasons.AddressUnreachable, "cannot move"},
		{"a further address is named, with the reason", arrived(func(r *Address, report *clusterv1beta1.InternalMemberCluster) {
			failed(1)(r, report)
			r.Desired.Fallbacks = []clusterv1beta1.HubFallback{{APIServerURL: "https://other"}, {APIServerURL: "https://old"}}
		}), reasons.FallbackInUse,
			"uses https://old (apiServerCAHash 92daeba0b87f), fallback 2 of 2; it returns once https://new answers: cannot move"},
		{"a failure of what was asked before is history", arrived(failed(1)), reasons.Moving, ""},
		{"a member that has to wait says so", arrived(func(r *Address, report *clusterv1beta1.InternalMemberCluster) {
			failed(2)(r, report)
			r.Desired.APIServerURL = "https://newer"
		}), reasons.Moving, "its turn to move to https://newer"},
	} {
		got := c.address.Condition()
		if got.Reason != c.reason || (got.Status == metav1.ConditionTrue) != (c.reason == reasons.InUse) ||
			!strings.Contains(got.Message, c.says) {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}

func TestAThousandMembersMoveWithinTwentySeconds(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var limiter MoveLimiter
	inASecond := map[time.Duration]int{}
	for i := range 1000 {
		inASecond[limiter.Wait(fmt.Sprint(i), now).Truncate(time.Second)]++
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

func TestMoveLimiter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var limiter MoveLimiter
	await := func(name, member string, want time.Duration) {
		t.Helper()
		if got := limiter.Wait(member, now); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	await("where nobody waits each member may move", "a", 0)
	await("the next one waits", "b", moveInterval)
	await("and asking again does not make it longer", "b", moveInterval)
	await("and another one behind", "c", 2*moveInterval)
	now = now.Add(moveInterval)
	await("when its time has come it may move", "b", 0)
	await("which is then over", "b", 2*moveInterval)
	limiter.Forget("c")
	await("who was forgotten waits behind all others", "c", 3*moveInterval)
	now = now.Add(time.Hour)
	await("a turn that was missed is not lost", "b", 0)
}
