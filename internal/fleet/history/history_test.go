package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// marks returns a member with annotations.
func marks(annotations map[string]string) *fleet.Cluster {
	return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", Annotations: annotations}}
}

func TestEachEdgeOfALifeIsAChange(t *testing.T) {
	state := func(agent membership.AgentState) State { return State{Agent: agent, Message: string(agent)} }
	seen := state(membership.AgentLost)
	seen.Seen = noon.Add(-12 * time.Minute)
	old, updated := state(membership.AgentOnline), state(membership.AgentOnline)
	old.AgentVersion, old.KubernetesVersion, updated.AgentVersion, updated.KubernetesVersion = "v1", "v1.30.0", "v2", "v1.31.0"
	unknown := state(membership.AgentOnline)
	waits, approves := State{Approval: reasons.ApprovalRequired, ApprovalMessage: "waits"}, State{Approval: "Approved"}
	moving, inUse := State{Route: reasons.Moving}, State{Route: reasons.InUse}
	further := State{Route: reasons.FallbackInUse}
	revoked := State{Agent: membership.AgentRevoked, Revoked: true}
	quarantined := old
	quarantined.Quarantined = true
	cordoned, drained := map[string]string{fleet.AnnotationCordoned: "true"}, map[string]string{
		fleet.AnnotationCordoned: "true", fleet.AnnotationDrained: "true"}
	entry := func(reason clusterv1beta1.HistoryReason) []clusterv1beta1.HistoryEntry {
		return []clusterv1beta1.HistoryEntry{{Reason: reason}}
	}
	for name, row := range map[string]struct {
		before, after State
		marks         map[string]string
		known         []clusterv1beta1.HistoryEntry
		want          []string
	}{
		"nothing changes":                        {old, old, nil, nil, nil},
		"an agent is seen first":                 {state(membership.AgentAwaited), state(membership.AgentOnline), nil, nil, []string{"Joined"}},
		"the first status is one of an agent":    {State{}, state(membership.AgentUnhealthy), nil, nil, []string{"Joined"}},
		"an agent joins again":                   {state(membership.AgentLeft), state(membership.AgentOnline), nil, nil, []string{"Joined"}},
		"an earlier hub wrote an unknown status": {State{Seen: noon}, state(membership.AgentOnline), nil, nil, nil},
		"an agent is lost":                       {old, state(membership.AgentLost), nil, nil, []string{"Lost"}},
		"an agent is back":                       {seen, old, nil, nil, []string{"Back"}},
		"a lost agent is unhealthy":              {seen, state(membership.AgentUnhealthy), nil, nil, []string{"Back"}},
		"an agent turns unhealthy":               {old, state(membership.AgentUnhealthy), nil, nil, nil},
		"an agent leaves by itself":              {old, state(membership.AgentLeft), nil, nil, []string{"Left"}},
		"versions change":                        {old, updated, nil, nil, []string{"AgentUpdated", "KubernetesUpdated"}},
		"versions become known":                  {unknown, old, nil, nil, nil},
		"an approval is needed":                  {State{}, waits, nil, nil, []string{"ApprovalRequired"}},
		"an approval is given":                   {waits, approves, nil, nil, []string{"Approved"}},
		"an approval is no longer needed":        {waits, State{}, nil, nil, nil},
		"the hub's address changes":              {moving, inUse, nil, nil, []string{"Moved"}},
		"the first address is lost":              {inUse, further, nil, nil, []string{"Moved"}},
		"the first address is back":              {further, inUse, nil, nil, []string{"Moved"}},
		"the first address is in use":            {State{}, inUse, nil, nil, nil},
		"access is revoked":                      {old, revoked, nil, nil, []string{"Revoked"}},
		"a lost member is revoked":               {seen, revoked, nil, nil, []string{"Revoked"}},
		"a member is quarantined":                {old, quarantined, nil, nil, []string{"Quarantined"}},
		"a quarantine ends":                      {quarantined, old, nil, nil, []string{"QuarantineEnded"}},
		"a revocation is undone":                 {revoked, State{Agent: membership.AgentRevoked}, nil, nil, []string{"Restored"}},
		"a cordon is new":                        {old, old, cordoned, entry("Joined"), []string{"Cordoned"}},
		"a cordon is known":                      {old, old, cordoned, entry("Cordoned"), nil},
		"a drain is new":                         {old, old, drained, entry("Cordoned"), []string{"Drained"}},
		"a cordon and a drain are new":           {old, old, drained, nil, []string{"Cordoned", "Drained"}},
		"a drain is known":                       {old, old, drained, entry("Drained"), nil},
		"a drain without a cordon":               {old, old, map[string]string{fleet.AnnotationDrained: "true"}, nil, nil},
		"a cordon ends":                          {old, old, nil, entry("Drained"), []string{"Uncordoned"}},
		"a cordon has ended":                     {old, old, nil, entry("Uncordoned"), nil},
	} {
		var got []string
		for _, change := range Changes(row.before, row.after, marks(row.marks), row.known, noon) {
			got = append(got, string(change.Reason))
			if change.Reason == clusterv1beta1.HistoryBack && change.Message != "the agent sends heartbeats again, after 12m0s without one" {
				t.Errorf("%s: %s", name, change.Message)
			}
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAnApprovalOfARequestIsRecordedOnce covers requests that a user did or did not approve.
func TestAnApprovalOfARequestIsRecordedOnce(t *testing.T) {
	granted := func(ago time.Duration, reason string) *fleet.ClusterRegistration {
		r := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "request-1", Annotations: map[string]string{
			fleet.AnnotationApprovalReason: "new \n site"}}}
		r.Status.Granted, r.Status.GrantedAt, r.Status.ApprovedReason = true, &metav1.Time{Time: noon.Add(-ago)}, reason
		return r
	}
	waits, old := granted(0, reasons.ApprovalRequired), []clusterv1beta1.HistoryEntry{{
		Time: metav1.Time{Time: noon.Add(-time.Minute)}, Reason: clusterv1beta1.HistoryApproved}}
	waits.Status.Granted = false
	for name, row := range map[string]struct {
		request  *fleet.ClusterRegistration
		recorded []clusterv1beta1.HistoryEntry
		who      string
		want     string
	}{
		"a user approved":                 {granted(time.Second, reasons.ApprovalRequired), nil, "ada", "ada"},
		"the user is unknown":             {granted(0, reasons.ApprovalRequired), nil, "", "a user"},
		"a name has several lines":        {granted(0, reasons.HolderAlive), nil, "a\nb", "a b"},
		"an earlier request was approved": {granted(0, reasons.HolderAlive), old, "ada", "ada"},
		"it is recorded":                  {granted(time.Minute, reasons.ApprovalRequired), old, "ada", ""},
		"it is old":                       {granted(2*time.Hour, reasons.ApprovalRequired), nil, "ada", ""},
		"it waits":                        {waits, nil, "ada", ""},
		"it needed no approval":           {granted(0, ""), nil, "ada", ""},
		"the key proved it":               {granted(0, reasons.KeyProved), nil, "ada", ""},
	} {
		if row.want != "" {
			row.want += " approved ClusterRegistration request-1 (new site)"
		}
		got := ""
		for _, change := range Admitted(row.request, row.recorded, noon, func() string { return row.who }) {
			got += change.Message
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

func TestChangesNameTheirUsers(t *testing.T) {
	joined := State{Agent: membership.AgentOnline, IdentityBy: "ada"}
	revoked := State{Agent: membership.AgentRevoked, Revoked: true, RevokedBy: "ada"}
	quarantined := State{Agent: membership.AgentOnline, Quarantined: true, QuarantinedBy: "ada"}
	var got []string
	for _, after := range []State{joined, revoked, quarantined} {
		before := State{Agent: membership.AgentOnline}
		if after.IdentityBy != "" {
			before.Agent = membership.AgentAwaited
		}
		for _, change := range Changes(before, after, marks(nil), nil, noon) {
			got = append(got, change.Message)
		}
	}
	want := []string{
		"the agent has joined and sends heartbeats; ada chose its identity", "ada revoked the access of the member",
		"ada quarantined the member; its agent may only send heartbeats and reports",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestADepartureNeitherBringsAnAgentBackNorEndsTwice covers a deleted member. It has Left
// when its membership object is gone.
func TestADepartureNeitherBringsAnAgentBackNorEndsTwice(t *testing.T) {
	leaving := marks(nil)
	leaving.DeletionTimestamp = &metav1.Time{Time: noon}
	status := func(agent membership.AgentState, reason string) *fleet.ClusterStatus {
		return &fleet.ClusterStatus{
			AgentState: string(agent), Agent: fleet.AgentStatus{LastSeen: metav1.NewTime(noon)},
			Conditions: []fleet.Condition{{Type: fleet.ConditionReady, Status: corev1.ConditionFalse, Reason: reason}},
		}
	}
	revoked := status(membership.AgentRevoked, reasons.Revoked)
	lost, lostLeaving := status(membership.AgentLost, reasons.AgentLost), status(membership.AgentLost, reasons.Leaving)
	online, left := status(membership.AgentOnline, reasons.Leaving), status(membership.AgentLeft, reasons.Leaving)
	for name, row := range map[string]struct {
		before, after *fleet.ClusterStatus
		want          []Change
	}{
		"a lost member is deleted": {lost, lostLeaving, nil},
		"a leaving agent is lost": {online, lostLeaving, []Change{
			{clusterv1beta1.HistoryLost, "the agent sends no heartbeats, and has not left yet"},
		}},
		"a leaving agent has left":    {online, left, nil},
		"a revoked member is deleted": {revoked, status(membership.AgentRevoked, reasons.Leaving), nil},
	} {
		if diff := cmp.Diff(row.want, Changes(OfCluster(row.before), OfCluster(row.after), leaving, nil, noon)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestBothKindsOfMemberHaveTheSameStates(t *testing.T) {
	cluster := OfCluster(&fleet.ClusterStatus{
		Agent: fleet.AgentStatus{LastSeen: metav1.NewTime(noon), Version: "v1", KubernetesVersion: "v1.31.0"},
		Conditions: []fleet.Condition{
			{Type: fleet.ConditionReady, Status: corev1.ConditionFalse, Reason: reasons.AgentLost, Message: "lost"},
			{Type: fleet.ConditionHubConfigured, Reason: reasons.Moving},
		},
	})
	member := OfMemberCluster(&clusterv1beta1.MemberClusterStatus{
		AgentVersion: "v1", Properties: map[string]clusterv1beta1.PropertyValue{"k8s.io/k8s-version": {Value: "v1.31.0"}},
		AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(noon)}},
		Conditions: []metav1.Condition{
			{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue, Reason: reasons.MemberClusterJoined},
			{Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: reasons.AgentLost, Message: "lost"},
			{Type: clusterv1beta1.ConditionHubConfigured, Reason: reasons.Moving},
		},
	})
	want := State{
		Agent: membership.AgentLost, Message: "lost", Seen: noon, AgentVersion: "v1", KubernetesVersion: "v1.31.0", Route: reasons.Moving,
	}
	if diff := cmp.Diff([]State{want, want}, []State{cluster, member}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// reasonsOf lists entries with their counts.
func reasonsOf(entries []clusterv1beta1.HistoryEntry) (list []string) {
	for i := range entries {
		list = append(list, fmt.Sprintf("%s %d", entries[i].Reason, entries[i].Changes()))
	}
	return list
}

func TestAMemberThatFlapsAddsToTwoEntries(t *testing.T) {
	entries := Append(nil, []Change{{Reason: clusterv1beta1.HistoryJoined}}, noon)
	now := noon
	for range 100 {
		for _, reason := range []clusterv1beta1.HistoryReason{clusterv1beta1.HistoryLost, clusterv1beta1.HistoryBack} {
			now = now.Add(30 * time.Second)
			entries = Append(entries, []Change{{reason, now.String()}}, now)
		}
	}
	if diff := cmp.Diff([]string{"Joined 1", "Lost 100", "Back 100"}, reasonsOf(entries)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	back := entries[2]
	if first := noon.Add(time.Minute); !back.Time.Time.Equal(first) || !back.Last().Equal(now) || back.Message != now.String() {
		t.Errorf("the entry is %+v, want from %s to %s", back, first, now)
	}
	entries = Append(entries, []Change{{Reason: clusterv1beta1.HistoryLost}}, now.Add(gatherPeriod))
	if got := reasonsOf(entries); len(got) != 4 || got[3] != "Lost 1" {
		t.Errorf("after an hour the entries are %v", got)
	}
}

func TestAMemberThatFlapsPushesOutNoOtherEntry(t *testing.T) {
	before := []Change{
		{Reason: clusterv1beta1.HistoryJoined}, {Reason: clusterv1beta1.HistoryRevoked}, {Reason: clusterv1beta1.HistoryCordoned},
	}
	entries, now := Append(nil, before, noon), noon
	for range 50 {
		for _, reason := range []clusterv1beta1.HistoryReason{clusterv1beta1.HistoryLost, clusterv1beta1.HistoryBack,
			clusterv1beta1.HistoryAgentUpdated, clusterv1beta1.HistoryKubernetesUpdated} {
			now = now.Add(gatherPeriod)
			entries = Append(entries, []Change{{Reason: reason}}, now)
		}
	}
	if len(entries) != clusterv1beta1.MaxHistory {
		t.Errorf("%d entries are kept", len(entries))
	}
	if diff := cmp.Diff([]string{"Joined 1", "Revoked 1", "Cordoned 1"}, reasonsOf(entries)[:3]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if last := entries[len(entries)-1]; !last.Time.Time.Equal(now) {
		t.Errorf("the last entry is %+v", last)
	}
}

func TestTheKnownHistoryIsNotChanged(t *testing.T) {
	known := Append(nil, []Change{{Reason: clusterv1beta1.HistoryLost}, {Reason: clusterv1beta1.HistoryBack}}, noon)
	was := fmt.Sprint(known)
	Append(known, []Change{{Reason: clusterv1beta1.HistoryLost, Message: "again"}}, noon.Add(time.Minute))
	if fmt.Sprint(known) != was {
		t.Errorf("the history in the cache became %v", known)
	}
	if same := Append(known, nil, noon.Add(time.Hour)); fmt.Sprint(same) != was {
		t.Errorf("without a change it became %v", same)
	}
}
