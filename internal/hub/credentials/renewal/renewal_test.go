package renewal

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// keyed is a member with the account "uid" that is a day old, whose agent has a pinned
// key and reports so.
func keyed(t *testing.T, change ...func(*State)) State {
	t.Helper()
	key, err := credential.NewAgentKey()
	if err != nil {
		t.Fatal(err)
	}
	s := State{
		Member:     membernamespace.Member{Workspace: "clusters", Name: "web", Namespace: "cluster-clusters-web"},
		AccountUID: "uid", Created: now.Add(-24 * time.Hour), Kind: membership.Native, Acting: true, Key: credential.Fingerprint(key.Public()),
		Report: &clusterv1beta1.InternalMemberCluster{Status: clusterv1beta1.InternalMemberClusterStatus{
			AgentKey: key.Public(), Credential: &clusterv1beta1.CredentialInUse{AccountUID: "uid"},
		}},
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

// issuedAt is a member to which the hub has issued a credential.
func issuedAt(at time.Time, sequence int64) func(*State) {
	return func(s *State) {
		s.Report.Spec.Credential = &clusterv1beta1.IssuedCredential{
			AccountUID: "uid", Sequence: sequence, Issued: metav1.NewTime(at), Expires: metav1.NewTime(at.Add(7 * 24 * time.Hour)),
		}
	}
}

// uses is a member that reports a credential, after another one was shown to be in use.
func uses(sequence, shown int64) func(*State) {
	return func(s *State) {
		s.Report.Status.Credential = &clusterv1beta1.CredentialInUse{AccountUID: "uid", Sequence: sequence}
		s.Before = &clusterv1beta1.CredentialStatus{AccountUID: "uid", Sequence: shown}
	}
}

func TestWhenTheHubRenewsACredential(t *testing.T) {
	const week = 7 * 24 * time.Hour
	long := now.Add(-30 * 24 * time.Hour)
	for name, c := range map[string]struct {
		change       func(*State)
		life         time.Duration
		began        time.Time
		never        bool
		after, until time.Time
	}{
		"a day after the registration": {life: week, began: long, after: now.Add(-3 * time.Hour), until: now},
		"a day after the last one": {
			change: issuedAt(now, 3), life: week, began: long, after: now.Add(21 * time.Hour), until: now.Add(24 * time.Hour),
		},
		"seven times in a short life": {
			change: issuedAt(now, 3), life: 70 * time.Minute, began: long, after: now.Add(9 * time.Minute), until: now.Add(10 * time.Minute),
		},
		"what was issued to an account before does not count": {
			change: func(s *State) { issuedAt(now, 3)(s); s.Report.Spec.Credential.AccountUID = "before" }, life: week, began: long,
			after: now.Add(-3 * time.Hour), until: now,
		},
		"what fell due without a hub is spread over an hour": {life: week, began: now, after: now, until: now.Add(time.Hour)},
		"and over a quarter of a shorter interval": {
			life: 70 * time.Minute, began: now, after: now, until: now.Add(150 * time.Second),
		},
		"as often as the life asks for that the API server grants": {change: func(s *State) {
			issuedAt(now, 3)(s)
			s.Report.Spec.Credential.Expires = metav1.NewTime(now.Add(70 * time.Minute))
		}, life: week, began: long, after: now.Add(9 * time.Minute), until: now.Add(10 * time.Minute)},
		"as often as the agent says of the credential of its registration": {change: func(s *State) {
			s.Created = now
			s.Report.Status.Credential.Expires = ptr.To(metav1.NewTime(now.Add(70 * time.Minute)))
		}, life: week, began: long, after: now.Add(9 * time.Minute), until: now.Add(10 * time.Minute)},
		"but not without a pause, whatever the agent says": {change: func(s *State) {
			s.Created = now
			s.Report.Status.Credential.Expires = ptr.To(metav1.NewTime(now.Add(-time.Hour)))
		}, life: week, began: long, after: now.Add(75 * time.Second), until: now.Add(90 * time.Second)},
		"not while no agent of Muster's acts": {change: func(s *State) { s.Acting = false }, life: week, never: true},
		"of a silent member twice in its life": {change: func(s *State) {
			issuedAt(now, 3)(s)
			s.Acting, s.Awaited = false, true
		}, life: week, began: long, after: now.Add(75 * time.Hour), until: now.Add(84 * time.Hour)},
		"also if the agent was about to use the token of the identity": {change: func(s *State) {
			exchanged(s)
			issuedAt(now, 3)(s)
			s.Acting, s.Awaited = false, true
		}, life: week, began: long, after: now.Add(75 * time.Hour), until: now.Add(84 * time.Hour)},
		"of silent members, too, what fell due without a hub is spread": {change: func(s *State) {
			issuedAt(long, 3)(s)
			s.Acting, s.Awaited = false, true
		}, life: week, began: now, after: now, until: now.Add(time.Hour)},
		"at once of an agent of a lost hub": {change: lost, life: week, began: now, until: now.Add(-24 * time.Hour)},
		"of an agent of a lost hub twice in its life": {change: func(s *State) {
			lost(s)
			issuedAt(now, 1)(s)
		}, life: week, began: long, after: now.Add(75 * time.Hour), until: now.Add(84 * time.Hour)},
		"not of an agent of a lost hub with another key": {change: func(s *State) {
			lost(s)
			s.Restored = make([]byte, 32)
		}, life: week, never: true},
		"not of a silent member after an older one was in use": {change: func(s *State) {
			uses(1, 2)(s)
			s.superseded, s.Acting, s.Awaited = true, false, true
		}, life: week, never: true},
		"not of a silent member whose report names another key": {change: func(s *State) {
			s.Acting, s.Awaited, s.Report.Status.AgentKey = false, true, make([]byte, 32)
		}, life: week, never: true},
		"not of an agent without a key":     {change: func(s *State) { s.Key, s.Report.Status.AgentKey = "", nil }, life: week, never: true},
		"not to a key that is not pinned":   {change: func(s *State) { s.Report.Status.AgentKey = make([]byte, 32) }, life: week, never: true},
		"not after an older one was in use": {change: func(s *State) { uses(1, 2)(s); s.superseded = true }, life: week, never: true},
		"not without a report":              {change: func(s *State) { s.Report = nil }, life: week, never: true},
		"not without an account":            {change: func(s *State) { s.AccountUID = "" }, life: week, never: true},
		"the first one in exchange at once": {change: exchanged, life: week, began: now, until: now.Add(-24 * time.Hour)},
		"in exchange, not another one while the agent has not taken the first": {change: func(s *State) {
			exchanged(s)
			issuedAt(now, 3)(s)
			s.Report.Spec.Credential.Sealed = []byte("sealed")
		}, life: week, began: long, after: now.Add(21 * time.Hour), until: now.Add(24 * time.Hour)},
		"in exchange, another one soon if the agent has lost the one that it used": {change: func(s *State) {
			exchanged(s)
			issuedAt(now, 3)(s)
		}, life: week, began: long, after: now.Add(time.Minute), until: now.Add(2 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			s := keyed(t)
			if c.change != nil {
				c.change(&s)
			}
			due := s.renewalDue(c.life, c.began)
			if due.IsZero() != c.never || !c.never && (due.Before(c.after) || due.After(c.until)) {
				t.Errorf("due at %s, want between %s and %s", due, c.after, c.until)
			}
		})
	}
}

func TestRenewalsOfAThousandMembersAreSpread(t *testing.T) {
	perSecond := map[time.Time]int{}
	for i := range 1000 {
		s := keyed(t)
		s.Namespace = "cluster-fleet-" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + time.Duration(i).String()
		perSecond[s.renewalDue(7*24*time.Hour, now).Truncate(time.Second)]++
	}
	for at, n := range perSecond {
		if n > 5 {
			t.Errorf("%d members are renewed in the second of %s", n, at)
		}
	}
}

func TestAnOlderCredentialThatIsInUseAgainIsShown(t *testing.T) {
	accepted := func(sequence string) func(*State) { return func(s *State) { s.Accepted = sequence } }
	late := func(s *State) { s.superseded = true }
	flagged := func(s *State) { s.Before.Superseded = ptr.To[int64](1) }
	for name, c := range map[string]struct {
		change     []func(*State)
		sequence   int64
		superseded *int64
	}{
		"the one of the registration": {sequence: 0},
		"a newer one":                 {change: []func(*State){uses(2, 1)}, sequence: 2},
		"the same one":                {change: []func(*State){uses(2, 2)}, sequence: 2},
		"an older one for a moment":   {change: []func(*State){uses(1, 2)}, sequence: 2},
		"an older one for longer": {
			change: []func(*State){uses(1, 2), late}, sequence: 2, superseded: ptr.To[int64](1),
		},
		"it stays, also when the newer one is back": {
			change: []func(*State){uses(2, 2), flagged}, sequence: 2, superseded: ptr.To[int64](1),
		},
		"until somebody accepts the older one": {change: []func(*State){uses(1, 2), flagged, accepted("1")}, sequence: 1},
		"but not another one": {
			change: []func(*State){uses(1, 2), flagged, accepted("2")}, sequence: 2, superseded: ptr.To[int64](1),
		},
		"what was accepted earlier counts no more": {change: []func(*State){uses(3, 2), accepted("1")}, sequence: 3},
		"a report about another account says nothing": {
			change: []func(*State){uses(1, 2), late, func(s *State) { s.Report.Status.Credential.AccountUID = "other" }}, sequence: 2,
		},
		"an agent that registered anew begins from nothing": {
			change: []func(*State){uses(0, 2), flagged, func(s *State) { s.Before.AccountUID = "before" }}, sequence: 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := keyed(t, c.change...)
			want := clusterv1beta1.CredentialStatus{
				Kind: "native", Key: s.Key[:12], AccountUID: "uid", Sequence: c.sequence, Superseded: c.superseded,
			}
			if diff := cmp.Diff(want, s.Credential()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			why := s.Cloned()
			if (why != "") != (c.superseded != nil) ||
				why != "" && !strings.Contains(why, "kubectl -n clusters annotate cluster web muster/accept-credential=1 ") {
				t.Errorf("it says %q", why)
			}
			s.Workspace = ""
			if why = s.Cloned(); why != "" && !strings.Contains(why, "kubectl annotate membercluster web muster/accept-credential=1 ") {
				t.Errorf("of a MemberCluster it says %q", why)
			}
		})
	}
}

// exchanged is a member whose agent uses another credential and has none of its account.
func exchanged(s *State) {
	s.Exchanged = true
	s.Report.Status.Credential.AccountUID = "identity"
}

// lost is a restored MemberCluster whose agent has not come to this hub.
func lost(s *State) {
	s.Exchanged, s.Acting, s.Awaited = true, false, true
	s.Restored, s.Report.Status = s.Report.Status.AgentKey, clusterv1beta1.InternalMemberClusterStatus{}
}

// TestOnlyTheAPIServerMakesAMemberACopy has the cache show a record that is newer than the report,
// as for a while after the hub's cluster was restored.
func TestOnlyTheAPIServerMakesAMemberACopy(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{fleet.AddToScheme, clusterv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		recorded, reported int64
		copied             bool
	}{
		"the record was restored":         {recorded: 0, reported: 0},
		"the report has caught up":        {recorded: 2, reported: 2},
		"an older one is really in use":   {recorded: 2, reported: 1, copied: true},
		"the record is newer than cached": {recorded: 3, reported: 2, copied: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := keyed(t, uses(1, 2))
			cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.Workspace, Name: s.Name}}
			cluster.Status.Credential = &fleet.CredentialStatus{AccountUID: "uid", Sequence: c.recorded}
			report := s.NewReport(clusterv1beta1.InternalMemberClusterSpec{})
			report.Status.Credential = &clusterv1beta1.CredentialInUse{AccountUID: "uid", Sequence: c.reported}
			clock := clocktesting.NewFakeClock(now)
			r := New(controller.Deps{Clock: clock, Live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, report).Build()}, nil)
			for _, after := range []time.Duration{0, supersededFor} {
				clock.Step(after)
				if err := r.Observe(t.Context(), &s); err != nil {
					t.Fatal(err)
				}
				if want := c.copied && after > 0; s.superseded != want {
					t.Errorf("after %s it is said to be superseded: %t", after, s.superseded)
				}
			}
			if !c.copied && s.settleAt != clock.Now().Add(supersededFor) {
				t.Errorf("it is asked again at %s", s.settleAt)
			}
		})
	}
}
