package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// keyed is a member with the account "uid" that is a day old, whose agent has a pinned key and reports so.
func keyed(t *testing.T, change ...func(*observed)) observed {
	t.Helper()
	key, err := credential.NewAgentKey()
	if err != nil {
		t.Fatal(err)
	}
	return member(append([]func(*observed){func(o *observed) {
		o.account = account{uid: "uid", created: now.Add(-24 * time.Hour), issuedTo: membership.Native}
		o.key, o.Report.Status.AgentKey = credential.Fingerprint(key.Public()), key.Public()
		o.Report.Status.Credential = &clusterv1beta1.CredentialInUse{AccountUID: "uid"}
	}}, change...)...)
}

// issuedAt is a member to which the hub has issued a credential.
func issuedAt(at time.Time, sequence int64) func(*observed) {
	return func(o *observed) {
		o.Report.Spec.Credential = &clusterv1beta1.IssuedCredential{AccountUID: "uid", Sequence: sequence, Issued: metav1.NewTime(at), Expires: metav1.NewTime(at.Add(7 * 24 * time.Hour))}
	}
}

// uses is a member that reports a credential, after another one was shown to be in use.
func uses(sequence, shown int64) func(*observed) {
	return func(o *observed) {
		o.Report.Status.Credential = &clusterv1beta1.CredentialInUse{AccountUID: "uid", Sequence: sequence}
		o.before.Credential = &fleet.CredentialStatus{AccountUID: "uid", Sequence: shown}
	}
}

func TestWhenTheHubRenewsACredential(t *testing.T) {
	const week = 7 * 24 * time.Hour
	long := now.Add(-30 * 24 * time.Hour)
	for name, c := range map[string]struct {
		change       func(*observed)
		life         time.Duration
		began        time.Time
		never        bool
		after, until time.Time
	}{
		"a day after the registration":                        {life: week, began: long, after: now.Add(-3 * time.Hour), until: now},
		"a day after the last one":                            {change: issuedAt(now, 3), life: week, began: long, after: now.Add(21 * time.Hour), until: now.Add(24 * time.Hour)},
		"seven times in a short life":                         {change: issuedAt(now, 3), life: 70 * time.Minute, began: long, after: now.Add(9 * time.Minute), until: now.Add(10 * time.Minute)},
		"what was issued to an account before does not count": {change: func(o *observed) { issuedAt(now, 3)(o); o.Report.Spec.Credential.AccountUID = "before" }, life: week, began: long, after: now.Add(-3 * time.Hour), until: now},
		"what fell due without a hub is spread over an hour":  {life: week, began: now, after: now, until: now.Add(time.Hour)},
		"and over a quarter of a shorter interval":            {life: 70 * time.Minute, began: now, after: now, until: now.Add(150 * time.Second)},
		"as often as the life asks for that the API server grants": {change: func(o *observed) {
			issuedAt(now, 3)(o)
			o.Report.Spec.Credential.Expires = metav1.NewTime(now.Add(70 * time.Minute))
		}, life: week, began: long, after: now.Add(9 * time.Minute), until: now.Add(10 * time.Minute)},
		"as often as the agent says of the credential of its registration": {change: func(o *observed) {
			o.account.created = now
			o.Report.Status.Credential.Expires = ptr.To(metav1.NewTime(now.Add(70 * time.Minute)))
		}, life: week, began: long, after: now.Add(9 * time.Minute), until: now.Add(10 * time.Minute)},
		"but not without a pause, whatever the agent says": {change: func(o *observed) {
			o.account.created = now
			o.Report.Status.Credential.Expires = ptr.To(metav1.NewTime(now.Add(-time.Hour)))
		}, life: week, began: long, after: now.Add(75 * time.Second), until: now.Add(90 * time.Second)},
		"not while the agent is lost":                {change: func(o *observed) { o.Liveness.State = liveness.Lost }, life: week, never: true},
		"not of an agent without a key":              {change: func(o *observed) { o.key, o.Report.Status.AgentKey = "", nil }, life: week, never: true},
		"not to a key that is not pinned":            {change: func(o *observed) { o.Report.Status.AgentKey = make([]byte, 32) }, life: week, never: true},
		"not of a Rancher Fleet agent":               {change: func(o *observed) { o.agent, o.account.issuedTo = membership.Legacy, membership.Legacy }, life: week, never: true},
		"not of its credential in the hands of ours": {change: func(o *observed) { o.account.issuedTo, o.account.shared = membership.Legacy, true }, life: week, never: true},
		"not after an older one was in use":          {change: func(o *observed) { uses(1, 2)(o); o.superseded = true }, life: week, never: true},
		"not without a report":                       {change: func(o *observed) { o.Report = nil }, life: week, never: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := keyed(t)
			if c.change != nil {
				c.change(&o)
			}
			due := o.renewalDue(c.life, c.began)
			if due.IsZero() != c.never || !c.never && (due.Before(c.after) || due.After(c.until)) {
				t.Errorf("due at %s, want between %s and %s", due, c.after, c.until)
			}
		})
	}
}

func TestRenewalsOfAThousandMembersAreSpread(t *testing.T) {
	perSecond := map[time.Time]int{}
	for i := range 1000 {
		o := keyed(t)
		o.Namespace = "cluster-fleet-" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + time.Duration(i).String()
		perSecond[o.renewalDue(7*24*time.Hour, now).Truncate(time.Second)]++
	}
	for at, n := range perSecond {
		if n > 5 {
			t.Errorf("%d members are renewed in the second of %s", n, at)
		}
	}
}

func TestAnOlderCredentialThatIsInUseAgainIsShown(t *testing.T) {
	accepted := func(sequence string) func(*observed) { return func(o *observed) { o.acceptCredential = sequence } }
	late := func(o *observed) { o.superseded = true }
	flagged := func(o *observed) { o.before.Credential.Superseded = ptr.To[int64](1) }
	for name, c := range map[string]struct {
		change     []func(*observed)
		sequence   int64
		superseded *int64
	}{
		"the one of the registration":                       {sequence: 0},
		"a newer one":                                       {change: []func(*observed){uses(2, 1)}, sequence: 2},
		"the same one":                                      {change: []func(*observed){uses(2, 2)}, sequence: 2},
		"an older one for a moment":                         {change: []func(*observed){uses(1, 2)}, sequence: 2},
		"an older one for longer":                           {change: []func(*observed){uses(1, 2), late}, sequence: 2, superseded: ptr.To[int64](1)},
		"it stays, also when the newer one is back":         {change: []func(*observed){uses(2, 2), flagged}, sequence: 2, superseded: ptr.To[int64](1)},
		"until somebody accepts the older one":              {change: []func(*observed){uses(1, 2), flagged, accepted("1")}, sequence: 1},
		"but not another one":                               {change: []func(*observed){uses(1, 2), flagged, accepted("2")}, sequence: 2, superseded: ptr.To[int64](1)},
		"what was accepted earlier counts no more":          {change: []func(*observed){uses(3, 2), accepted("1")}, sequence: 3},
		"a report about another account says nothing":       {change: []func(*observed){uses(1, 2), late, func(o *observed) { o.Report.Status.Credential.AccountUID = "other" }}, sequence: 2},
		"an agent that registered anew begins from nothing": {change: []func(*observed){uses(0, 2), flagged, func(o *observed) { o.before.Credential.AccountUID = "before" }}, sequence: 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := keyed(t, c.change...)
			want := fleet.CredentialStatus{Kind: "native", Key: o.key[:12], AccountUID: "uid", Sequence: c.sequence, Superseded: c.superseded}
			if diff := cmp.Diff(want, o.credential()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var after fleet.ClusterStatus
			describeCredential(&after, o, now)
			shown := kube.FindCondition(after.Conditions, fleet.ConditionCloned)
			if (shown != nil) != (c.superseded != nil) || shown != nil && !strings.Contains(shown.Message, "muster/accept-credential=1") {
				t.Errorf("the condition is %+v", shown)
			}
		})
	}
}
