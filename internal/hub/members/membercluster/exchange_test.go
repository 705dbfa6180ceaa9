package membercluster

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// keyed is a member whose agent, ours, has reported a key that is pinned.
func keyed(t *testing.T, change ...func(*observed)) observed {
	t.Helper()
	key, err := credential.NewAgentKey()
	if err != nil {
		t.Fatal(err)
	}
	o := joined()
	o.Report.Status.AgentVersion, o.Report.Status.AgentKey = "v1", key.Public()
	o.keyPinned, o.credential.Key, o.credential.Exchanged = true, credential.Fingerprint(key.Public()), true
	o.credential.Member = o.Member
	for _, f := range change {
		f(&o)
	}
	o.credential.Report = o.Report
	return o
}

// uses is an agent that reports a credential of the account "uid".
func uses(sequence int64) func(*observed) {
	return func(o *observed) {
		o.credential.AccountUID = "uid"
		o.Report.Status.Credential = &clusterv1beta1.CredentialInUse{
			AccountUID: "uid", Sequence: sequence, Expires: &metav1.Time{Time: now.Add(time.Hour)},
		}
	}
}

func withoutKey(o *observed) { o.Report.Status.AgentKey = nil }

func unreported(o *observed) {
	o.Report.Status.AgentStatus, o.Report.Status.AgentVersion = nil, ""
}

func TestAFirstBeatWaitsAMomentForItsReportAndItsCredential(t *testing.T) {
	first := func(o *observed) {
		o.before.AgentStatus, o.RecordedBeat = nil, time.Time{}
		o.Liveness.LastBeat, o.Liveness.OnlineSince, o.Liveness.Source = now, now.Add(-lifecycle.Settle/4), liveness.InLease
	}
	const left = lifecycle.Settle * 3 / 4
	for name, c := range map[string]struct {
		change []func(*observed)
		want   time.Duration
	}{
		"no report yet":     {[]func(*observed){first, withoutKey, unreported}, left},
		"no credential yet": {[]func(*observed){first}, left},
		"not for ever":      {[]func(*observed){first, func(o *observed) { o.Liveness.OnlineSince = now.Add(-lifecycle.Settle) }}, 0},
		"a credential":      {[]func(*observed){first, uses(1)}, 0},
		"no key":            {[]func(*observed){first, withoutKey}, 0},
		"no exchange":       {[]func(*observed){first, func(o *observed) { o.credential.Key = "" }}, 0},
		"a later heartbeat": {[]func(*observed){first, func(o *observed) { o.RecordedBeat = now.Add(-time.Hour) }}, 0},
		"KubeFleet's agent": {[]func(*observed){first, withoutKey, func(o *observed) {
			o.Report.Status.AgentVersion, o.Liveness.Source = "", liveness.InStatus
		}}, 0},
		"an identity that is not usable": {[]func(*observed){first, func(o *observed) { o.accountMissing = true }}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := keyed(t, c.change...).unsettled(now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestWhatARecordSaysOfTheExchange(t *testing.T) {
	for name, c := range map[string]struct {
		change []func(*observed)
		reason string
		says   string
	}{
		"an agent that uses what was issued": {
			[]func(*observed){uses(1)}, reasons.Exchanged,
			"expires at 2026-01-02T04:04:05Z; the static token of ServiceAccount fleet-system/a is no longer used: delete its Secret",
		},
		"one that uses the static token":           {nil, reasons.Exchanging, "uses the token of ServiceAccount fleet-system/a until"},
		"a token of the account that nobody knows": {[]func(*observed){uses(0)}, reasons.Exchanging, ""},
		"KubeFleet's agent": {
			[]func(*observed){withoutKey}, reasons.AgentHasNoKey, "keeps the token of ServiceAccount fleet-system/a",
		},
		"an agent that has not reported yet": {[]func(*observed){withoutKey, unreported}, "", ""},
		"a key that is none": {
			[]func(*observed){func(o *observed) { o.Report.Status.AgentKey = []byte("short") }}, reasons.AgentHasNoKey, "",
		},
		"another key": {
			[]func(*observed){uses(1), func(o *observed) { o.credential.Key = "0123456789abcdef" }}, reasons.AnotherKey,
			"and the key of this member is 0123456789ab: ",
		},
		"an admin who wants none": {
			[]func(*observed){func(o *observed) { o.credential.Key = "" }}, reasons.SwitchedOff,
			"annotation muster/agent-key of this MemberCluster is empty",
		},
		"an agent that was never seen":  {[]func(*observed){neverSeen, func(o *observed) { o.RecordedBeat = time.Time{} }}, "", ""},
		"a revoked member":              {[]func(*observed){func(o *observed) { o.Revoked = true }}, "", ""},
		"a member that leaves":          {[]func(*observed){deleted}, "", ""},
		"an identity that is another's": {[]func(*observed){func(o *observed) { o.identityHolder = "MemberCluster b" }}, "", ""},
		"an identity that is gone":      {[]func(*observed){func(o *observed) { o.accountMissing = true }}, "", ""},
	} {
		o := keyed(t, c.change...)
		said := exchangeCondition(o)
		if said.reason != c.reason || !strings.Contains(said.message, c.says) || (said.status == yes) != (c.reason == reasons.Exchanged) {
			t.Errorf("%s: %+v, want %s and %q", name, said, c.reason, c.says)
		}
		if o.Report != nil && len(o.Report.Status.AgentKey) == 32 && strings.Contains(said.message, string(o.Report.Status.AgentKey)) {
			t.Errorf("%s: it quotes the key", name)
		}
		if said.reason != "" {
			after := describe(o, 1, lifecycle.Departure{}, now)
			if shown := after.Credential != nil; shown != (c.reason == reasons.Exchanged || name == "another key") {
				t.Errorf("%s: the status says %+v", name, after.Credential)
			}
		}
	}
}

func TestForWhomAnAccountIs(t *testing.T) {
	made := func(o *observed) {
		o.account = metadataOf(o.ExchangedAccount(o.exchange()))
	}
	pinned := func(uid types.UID) func(*observed) { return func(o *observed) { o.identityUID = uid } }
	for name, c := range map[string]struct {
		change []func(*observed)
		want   bool
	}{
		"for the key and the identity of the record":     {[]func(*observed){made}, true},
		"also while the agent is lost":                   {[]func(*observed){made, func(o *observed) { o.Liveness.State = liveness.Lost }}, true},
		"not before it is made":                          {nil, false},
		"for the same account of the identity":           {[]func(*observed){pinned("a"), made, pinned("a")}, true},
		"also one that says of no account":               {[]func(*observed){made, pinned("a")}, true},
		"also while nobody reads which account it is":    {[]func(*observed){pinned("a"), made, pinned("")}, true},
		"not for another account of the same name":       {[]func(*observed){pinned("a"), made, pinned("b")}, false},
		"not for another key":                            {[]func(*observed){made, func(o *observed) { o.credential.Key = "other" }}, false},
		"not if the record wants none":                   {[]func(*observed){made, func(o *observed) { o.credential.Key = "" }}, false},
		"not for another identity":                       {[]func(*observed){made, func(o *observed) { o.identity.Name = "b" }}, false},
		"not if the account of the identity was deleted": {[]func(*observed){made, func(o *observed) { o.accountMissing = true }}, false},
		"not if the identity is another member's": {
			[]func(*observed){made, func(o *observed) { o.identityHolder = "MemberCluster b" }}, false,
		},
	} {
		o := keyed(t, c.change...)
		if got := o.accountFits(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		if subjects := (membernamespace.Rights{Member: o.Member, Identity: &o.identity,
			Exchanged: o.accountFits()}).Binding().Subjects; (len(subjects) == 2) != c.want {
			t.Errorf("%s: bound are %v", name, subjects)
		}
	}
	lost := keyed(t, func(o *observed) { o.Liveness.State = liveness.Lost })
	if lost.takesCredentials() || !keyed(t).takesCredentials() || keyed(t, withoutKey).takesCredentials() {
		t.Error("only an agent with a key that is alive takes credentials")
	}
}

// TestWhoIsAwaited says which members may find a credential in their report when they come back.
func TestWhoIsAwaited(t *testing.T) {
	made := func(o *observed) {
		o.identityUID = "a"
		o.account, o.reconnect = metadataOf(o.ExchangedAccount(o.exchange())), metadataOf(o.ExchangedAccount(o.exchange()))
		o.Liveness.State = liveness.Lost
	}
	for name, c := range map[string]struct {
		change func(*observed)
		want   bool
	}{
		"one that is silent": {func(*observed) {}, true},
		"one of which a hub that has just started knows nothing": {func(o *observed) { o.Liveness.State = liveness.Unknown }, true},
		"not one that is alive":                                  {func(o *observed) { o.Liveness.State = liveness.Online }, false},
		"not one that has no token for that": {func(o *observed) { o.reconnect = kube.CoreMetadata("ServiceAccount") },
			false},
		"not one whose account somebody deleted": {func(o *observed) { o.account = kube.CoreMetadata("ServiceAccount") }, false},
		"not one whose identity was made anew":   {func(o *observed) { o.identityUID = "b" }, false},
		"not one whose identity is gone":         {func(o *observed) { o.accountMissing = true }, false},
		"not one with another identity":          {func(o *observed) { o.identity.Name = "b" }, false},
		"not one with another key":               {func(o *observed) { o.credential.Key = "other" }, false},
		"not one that was away for more than a year": {
			func(o *observed) { o.Liveness.LastBeat, o.RecordedBeat = now.Add(-reconnectLife), time.Time{} }, false,
		},
	} {
		o := keyed(t, made, c.change)
		if got := o.isAwaited(now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestWhoseReportLetsTheHubMakeAnAccount has an identity made anew while an agent that had the one
// before still reads its report.
func TestWhoseReportLetsTheHubMakeAnAccount(t *testing.T) {
	for name, c := range map[string]struct {
		identity types.UID
		used     *clusterv1beta1.CredentialInUse
		want     bool
	}{
		"an agent with a token of the identity":       {"a", &clusterv1beta1.CredentialInUse{AccountUID: "a"}, true},
		"an agent that does not say":                  {"a", nil, true},
		"an identity without an account":              {"", &clusterv1beta1.CredentialInUse{AccountUID: "b"}, true},
		"not an agent with a token of the one before": {"a", &clusterv1beta1.CredentialInUse{AccountUID: "b"}, false},
	} {
		o := keyed(t, func(o *observed) { o.identityUID, o.Report.Status.Credential = c.identity, c.used })
		if got := o.isShownByIdentity(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func metadataOf(account metav1.Object) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "uid", Annotations: account.GetAnnotations()}}
}
