package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// member is a Cluster whose namespace stands and whose native agent beat a minute ago.
func member(change ...func(*observed)) observed {
	o := observed{
		agent: membership.Native,
	}
	o.Workspace, o.Namespace, o.NamespaceState = "clusters", "ns", membernamespace.NamespaceOurs
	o.Liveness = liveness.Observation{State: liveness.Online, LastBeat: now.Add(-time.Minute)}
	o.Report = &clusterv1beta1.InternalMemberCluster{Status: clusterv1beta1.InternalMemberClusterStatus{
		Nodes:          &clusterv1beta1.NodeSummary{Total: 3, Ready: 2, Sample: "n1"},
		AgentNamespace: "cattle-fleet-system", AgentVersion: "v1", KubernetesVersion: "v1.36.3",
	}}
	o.before.Agent.LastSeen = metav1.NewTime(now.Add(-time.Minute))
	for _, c := range change {
		c(&o)
	}
	o.RecordedBeat = o.before.Agent.LastSeen.Time
	return o
}

func neverSeen(o *observed) {
	o.before.Agent.LastSeen, o.Liveness.LastBeat, o.Liveness.State = metav1.Time{}, time.Time{}, liveness.Unknown
}

// webDigest is the digest in the name of the namespace of Cluster clusters/web after
// its first revocation.
var webDigest = naming.DigestOfParts("1", "clusters", "web")[:16]

// unnamed is a Cluster that was revoked once, with an agent that does not know the
// name of the namespace.
func unnamed(o *observed) {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", Annotations: map[string]string{
		clusterv1beta1.AnnotationMemberEpoch: "1", clusterv1beta1.AnnotationLongDigests: "1",
	}}}
	o.Member = membernamespace.OfCluster(cluster)
	o.Report.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}
}

// says is what the agent says of its membership.
func says(status metav1.ConditionStatus, reason, message string) func(*observed) {
	return func(o *observed) {
		o.Report.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{
			{Type: clusterv1beta1.ConditionJoined, Status: status, Reason: reason, Message: message},
		}}}
	}
}

// managed is a Cluster with a kubeconfig, whose import stands as given; not at all if
// the reason is empty.
func managed(reason, message string) func(*observed) {
	return func(o *observed) {
		o.managed = true
		if reason != "" {
			o.before.Conditions = []fleet.Condition{kube.Condition(fleet.ConditionImported, reason == "Imported", reason, message)}
		}
	}
}

func TestReadiness(t *testing.T) {
	recordedLost := func(o *observed) { o.RecordedLost = true }
	troubled := fleet.BundleSummary{Ready: 1, Modified: 1, DesiredReady: 2, NonReadyResources: []fleet.NonReadyResource{
		{Name: "app", State: fleet.StateModified, Message: "Service n/web is missing"},
	}}
	const lost = "agent lost: no heartbeat since 2026-01-02T03:03:05Z"
	for _, c := range []struct {
		name string
		seen observed
		want result
	}{
		{"a member that beats is ready and says nothing", member(), result{ready: true, reason: reasons.Ready}},
		{"an agent that takes what is for it for another member's says how to go on, and not what is not deployed",
			member(unnamed, func(o *observed) { o.bundles = troubled }),
			result{reason: reasons.AgentTooOld, message: "the agent, of version v1, does not support a namespace with the name " +
				"cluster-clusters-web-" + webDigest + ", and deploys nothing from there: " +
				"upgrade it with helm; or revoke this Cluster once more and register the agent again, and its namespace has a name that the agent " +
				"knows"}},
		{"one that is lost may have been upgraded", member(unnamed, func(o *observed) { o.Liveness.State = liveness.Lost }), result{
			reason: reasons.AgentLost, message: lost,
		}},
		{"an agent of Rancher Fleet asks for no name", member(unnamed, func(o *observed) {
			o.agent, o.dropped, o.Report = membership.Legacy, o.Report, nil
		}),
			result{ready: true, reason: reasons.Ready}},
		{"a Cluster that is revoked says what that means and how to take it back", member(func(o *observed) {
			o.Name, o.Revoked, o.agent = "web", true, ""
		}),
			result{reason: reasons.Revoked, message: "revoked by annotation muster/revoked: its agent has no access and cannot register, and " +
				"the hub delivers nothing; deliveries on the cluster stay. To restore the access: " +
				"muster revoke clusters/web --undo, or kubectl -n clusters annotate " +
				"cluster.fleet.cattle.io web " +
				"muster/revoked- and give the cluster a new registration token"}},
		{"one that is imported is installed again then", member(managed("Imported", ""), func(o *observed) {
			o.Name, o.Revoked, o.agent = "web", true, ""
		}),
			result{reason: reasons.Revoked, message: "revoked by annotation muster/revoked: its agent has no access and cannot register, and " +
				"the hub delivers nothing; deliveries on the cluster stay. To restore the access: " +
				"muster revoke clusters/web --undo, or kubectl -n clusters annotate " +
				"cluster.fleet.cattle.io web " +
				"muster/revoked- (the hub then installs the agent again)"}},
		{"a Cluster without an agent waits", member(neverSeen, func(o *observed) { o.agent = "" }),
			result{reason: reasons.WaitCheckIn, message: "waiting for an agent to register and send its first heartbeat"}},
		{"so does one whose agent has not beaten", member(neverSeen),
			result{reason: reasons.WaitCheckIn, message: "waiting for an agent to register and send its first heartbeat"}},
		{"a first beat is enough even before it is recorded", member(neverSeen, func(o *observed) {
			o.Liveness.State, o.Liveness.LastBeat = liveness.Online, now
		}),
			result{ready: true, reason: reasons.Ready}},
		{"Bundles that are not ready are said to be", member(func(o *observed) { o.bundles = troubled }),
			result{reason: "Modified", message: "Modified(1) [Bundle app: Service n/web is missing]"}},
		{"but silence is the greater trouble", member(func(o *observed) { o.bundles, o.Liveness.State = troubled, liveness.Lost }), result{
			reason: reasons.AgentLost, message: lost,
		}},
		{"silence is lost", member(func(o *observed) { o.Liveness.State = liveness.Lost }), result{reason: reasons.AgentLost, message: lost}},
		{"after a restart of the hub a member is as it was: ready", member(func(o *observed) {
			o.Liveness.State, o.Liveness.LastBeat = liveness.Unknown, time.Time{}
		}),
			result{ready: true, reason: reasons.Ready}},
		{"or lost", member(recordedLost, func(o *observed) { o.Liveness.State, o.Liveness.LastBeat = liveness.Unknown, time.Time{} }), result{
			reason: reasons.AgentLost, message: lost,
		}},
		{"until it beats", member(recordedLost), result{ready: true, reason: reasons.Ready}},
		{"an identity that is gone says what to do", member(func(o *observed) { o.agent = "" }),
			result{
				reason:  reasons.IdentityMissing,
				message: "the identity of the agent is gone: give the cluster a new registration token and let it register again",
			}},
		{"an agent that has registered elsewhere is not lost",
			member(says("False", "InternalMemberClusterLeft", "it is at x"), func(o *observed) { o.Liveness.State = liveness.Lost }),
			result{
				reason:  reasons.AgentLeft,
				message: "the agent has left: it is at x; delete this Cluster, or give the cluster a registration token of this workspace",
			}},
		{"one that is about to says what it waits for", member(says("True", "Registering", "denied")),
			result{ready: true, reason: reasons.Ready, message: "the agent is healthy; denied"}},
		{"but no more of that than fits", member(says("True", "Registering", strings.Repeat("x", 2*maxShown))),
			result{ready: true, reason: reasons.Ready, message: "the agent is healthy; " + strings.Repeat("x", maxShown) + "..."}},
		{"a namespace of somebody else stands in the way", member(func(o *observed) { o.NamespaceState = membernamespace.NamespaceTaken }),
			result{
				reason:  reasons.NamespaceTaken,
				message: "namespace ns exists and was not created for this Cluster: delete it, or delete the Cluster and create it under another name",
			}},
		{"a namespace that is going is waited for", member(func(o *observed) { o.NamespaceState = membernamespace.NamespaceTerminating }),
			result{reason: reasons.NamespaceTerminating, message: "namespace ns is being deleted; the hub creates it again when it is gone"}},
		{"a Cluster that the hub imports says so", member(neverSeen, managed("", "")), result{
			reason: reasons.WaitCheckIn, message: "the hub is installing the agent",
		}},
		{"or why not", member(neverSeen, managed("Unreachable", "no answer")), result{reason: "Unreachable", message: "no answer"}},
		{"or that it is done", member(neverSeen, managed("Imported", "")),
			result{reason: reasons.WaitCheckIn, message: "the agent is installed; waiting for it to register and send its first heartbeat"}},
		{"a lost agent that cannot be installed again says both",
			member(func(o *observed) { o.Liveness.State = liveness.Lost }, managed("Unreachable", "no answer")),
			result{reason: reasons.AgentLost, message: lost + "; no answer"}},
		{"so does one without an identity", member(func(o *observed) { o.agent = "" }, managed("Unreachable", "no answer")),
			result{reason: reasons.IdentityMissing, message: "the identity of the agent is gone: the hub installs the agent again; no answer"}},
		{"a member that is well stays ready when new settings cannot be brought to it", member(managed("Unreachable", "no answer")),
			result{ready: true, reason: reasons.Ready, message: "the agent is healthy, but the hub cannot install it again: no answer"}},
		{"an import of long ago means nothing to a Cluster without a kubeconfig",
			member(managed("Unreachable", "no answer"), func(o *observed) { o.managed = false }),
			result{ready: true, reason: reasons.Ready}},
	} {
		if diff := cmp.Diff(c.want, readiness(c.seen), cmp.AllowUnexported(result{}), cmpopts.IgnoreFields(result{}, "agent")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestDescribe(t *testing.T) {
	condition := func(kind string, ok bool, reason, message string) fleet.Condition {
		c := kube.Condition(kind, ok, reason, message)
		c.LastUpdateTime, c.LastTransitionTime = "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"
		return c
	}
	ready := []fleet.Condition{condition("Processed", true, "NamespaceReady", ""), condition("Ready", true, "Ready", "")}
	seen := metav1.NewTime(now.Add(-time.Minute))
	agent := fleet.AgentStatus{LastSeen: seen, Namespace: "cattle-fleet-system", Version: "v1", KubernetesVersion: "v1.36.3"}
	skewed := agent
	skewed.ClockSkewSeconds = new(int64(-3600))
	legacy := fleet.AgentStatus{
		LastSeen: seen, Namespace: "cattle-fleet-system", ReadyNodes: 1, NonReadyNodes: 1, ReadyNodeNames: []string{"a"},
		NonReadyNodeNames: []string{"b"},
	}
	const waits = "waiting for an agent to register and send its first heartbeat"
	for _, c := range []struct {
		name string
		seen observed
		want fleet.ClusterStatus
	}{
		{"a native member", member(), fleet.ClusterStatus{
			Namespace: "ns", Conditions: ready, Agent: agent, AgentState: "Online",
			Display: fleet.ClusterDisplay{ReadyBundles: "0/0", ReadyNodes: "2/3", SampleNode: "n1", State: "Ready"},
		}},
		{"a member with Bundles", member(func(o *observed) {
			o.bundles, o.resources = fleet.BundleSummary{Ready: 2, DesiredReady: 2}, fleet.ResourceCounts{Ready: 5, DesiredReady: 5}
			o.repositories = sources{{Namespace: "clusters", Name: "app"}: true, {Namespace: "clusters", Name: "more"}: false}
			o.helmOps = sources{{Namespace: "clusters", Name: "app"}: true}
		}), fleet.ClusterStatus{
			Namespace: "ns", ReadyGitRepos: 1, DesiredReadyGitRepos: 2, ReadyHelmOps: 1, DesiredReadyHelmOps: 1,
			Conditions: ready, Agent: agent, AgentState: "Online",
			Summary: fleet.BundleSummary{Ready: 2, DesiredReady: 2}, ResourceCounts: fleet.ResourceCounts{Ready: 5, DesiredReady: 5},
			Display: fleet.ClusterDisplay{ReadyBundles: "2/2", ReadyNodes: "2/3", SampleNode: "n1", State: "Ready"},
		}},
		{"one whose clock is wrong", member(func(o *observed) { o.Liveness.ClockSkew = new(int64(-3600)) }), fleet.ClusterStatus{
			Namespace: "ns", Conditions: ready, Agent: skewed, AgentState: "Online",
			Display: fleet.ClusterDisplay{ReadyBundles: "0/0", ReadyNodes: "2/3", SampleNode: "n1", State: "Ready"},
		}},
		{"a member that was never seen shows no report", member(neverSeen), fleet.ClusterStatus{
			Namespace: "ns", AgentState: "Awaited",
			Conditions: []fleet.Condition{condition("Processed", true, "NamespaceReady", ""), condition("Ready", false, "WaitCheckIn", waits)},
			Display:    fleet.ClusterDisplay{ReadyBundles: "0/0", State: "WaitCheckIn"},
		}},
		{"an upstream agent writes of itself", member(func(o *observed) {
			o.agent, o.Report, o.before.Agent, o.Liveness.ClockSkew = membership.Legacy, nil, legacy, new(int64(-3600))
		}), fleet.ClusterStatus{
			Namespace: "ns", Conditions: ready, Agent: legacy, AgentState: "Online",
			Display: fleet.ClusterDisplay{ReadyBundles: "0/0", ReadyNodes: "1/2", SampleNode: "a", State: "Ready"},
		}},
		{"a namespace of somebody else is not shown as the member's",
			member(neverSeen, func(o *observed) { o.agent, o.NamespaceState = "", membernamespace.NamespaceTaken }), fleet.ClusterStatus{
				Conditions: []fleet.Condition{
					condition("Processed", false, "NamespaceTaken",
						"namespace ns exists and was not created for this Cluster: delete it, or delete the Cluster and create it under another name"),
					condition("Ready", false, "NamespaceTaken",
						"namespace ns exists and was not created for this Cluster: delete it, or delete the Cluster and create it under another name"),
				},
				AgentState: "Absent", Display: fleet.ClusterDisplay{ReadyBundles: "0/0", State: "WaitCheckIn"},
			}},
		{"a member whose agent says how it reaches the hub", member(func(o *observed) {
			o.Hub = &clusterv1beta1.HubAddress{APIServerURL: "https://hub"}
			o.Report.Status.Hub = &clusterv1beta1.HubInUse{APIServerURL: "https://hub", APIServerCAHash: "a740", AgentTLSMode: "strict"}
		}), fleet.ClusterStatus{
			Namespace: "ns",
			Conditions: append(slices.Clone(ready),
				condition("HubConfigured", true, "InUse", "the agent uses https://hub (apiServerCAHash a740)")),
			APIServerURL: "https://hub", APIServerCAHash: "a740", AgentTLSMode: "strict", Agent: agent, AgentState: "Online",
			Display: fleet.ClusterDisplay{ReadyBundles: "0/0", ReadyNodes: "2/3", SampleNode: "n1", State: "Ready"},
		}},
		{"of which nothing is known any more when a legacy agent takes its place", member(func(o *observed) {
			o.agent, o.Report, o.before.Agent, o.before.Conditions = membership.Legacy, nil, legacy,
				[]fleet.Condition{condition("HubConfigured", true, "InUse", "")}
		}), fleet.ClusterStatus{
			Namespace: "ns", Conditions: ready, Agent: legacy, AgentState: "Online",
			Display: fleet.ClusterDisplay{ReadyBundles: "0/0", ReadyNodes: "1/2", SampleNode: "a", State: "Ready"},
		}},
	} {
		if diff := cmp.Diff(c.want, describe(c.seen, lifecycle.Departure{}, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestTheStateOfAnAgentOutlivesItsReason reads each state back from the status. While the Cluster
// leaves, no reason shows it. The last column is the state read from the status of an earlier hub.
func TestTheStateOfAnAgentOutlivesItsReason(t *testing.T) {
	leaves := func(o *observed) { o.Deleted = now }
	lost := func(o *observed) { o.Liveness.State = liveness.Lost }
	revoked := func(o *observed) { o.Revoked, o.agent = true, "" }
	namespace := func(state membernamespace.NamespaceState) func(*observed) {
		return func(o *observed) { o.NamespaceState = state }
	}
	for name, c := range map[string]struct {
		seen          observed
		want, earlier membership.AgentState
	}{
		"online":               {member(), membership.AgentOnline, membership.AgentOnline},
		"online, and leaving":  {member(leaves), membership.AgentOnline, membership.AgentUnknown},
		"quarantined":          {member(func(o *observed) { o.Quarantined = true }), membership.AgentOnline, membership.AgentOnline},
		"too old":              {member(unnamed), membership.AgentOnline, membership.AgentOnline},
		"lost":                 {member(lost), membership.AgentLost, membership.AgentLost},
		"lost, and leaving":    {member(lost, leaves), membership.AgentLost, membership.AgentUnknown},
		"revoked":              {member(revoked), membership.AgentRevoked, membership.AgentRevoked},
		"revoked, and leaving": {member(revoked, leaves), membership.AgentRevoked, membership.AgentUnknown},
		"without an identity":  {member(func(o *observed) { o.agent = "" }), membership.AgentRevoked, membership.AgentRevoked},
		"awaited":              {member(neverSeen), membership.AgentAwaited, membership.AgentAwaited},
		"not installed":        {member(neverSeen, managed("Unreachable", "")), membership.AgentAbsent, membership.AgentAbsent},
		"before its namespace is free": {
			member(neverSeen, namespace(membernamespace.NamespaceTaken)), membership.AgentAbsent, membership.AgentAbsent,
		},
		"after its namespace is gone": {
			member(namespace(membernamespace.NamespaceTerminating)), membership.AgentWithoutNamespace, membership.AgentWithoutNamespace,
		},
		"left": {
			member(says("False", clusterv1beta1.ReasonInternalMemberClusterLeft, "it is at x")), membership.AgentLeft, membership.AgentLeft,
		},
		"of another manager": {member(lost, func(o *observed) { o.elsewhere = "x" }), membership.AgentUnknown, membership.AgentUnknown},
	} {
		written := describe(c.seen, lifecycle.Departure{}, now)
		if got := membership.ClusterStatus(&written, nil).Agent; got != c.want {
			t.Errorf("%s: read %q, want %q", name, got, c.want)
		}
		if written.AgentState = ""; membership.ClusterStatus(&written, nil).Agent != c.earlier {
			t.Errorf("%s: read %q of an earlier hub, want %q", name, membership.ClusterStatus(&written, nil).Agent, c.earlier)
		}
	}
}

func TestLastSeenIsWrittenOnTransitionsAndSeldomBetween(t *testing.T) {
	recorded := now.Add(-time.Hour)
	old := func(o *observed) { o.before.Agent.LastSeen = metav1.NewTime(recorded) }
	for _, c := range []struct {
		name string
		seen observed
		want time.Time
	}{
		{"the first beat", member(neverSeen, func(o *observed) { o.Liveness.LastBeat = now }), now},
		{"a beat soon after the last written",
			member(old, func(o *observed) { o.Refresh, o.Liveness.LastBeat = time.Hour, recorded.Add(time.Hour-time.Second) }), recorded},
		{"a beat when it is to be shown anew",
			member(old, func(o *observed) { o.Refresh, o.Liveness.LastBeat = time.Hour, recorded.Add(time.Hour) }), recorded.Add(time.Hour)},
		{"the last beat of one that is lost", member(old,
			func(o *observed) { o.Liveness.State, o.Liveness.LastBeat = liveness.Lost, recorded.Add(time.Second) }), recorded.Add(time.Second)},
		{"a hub that has not seen one yet keeps what is written", member(old, func(o *observed) { o.Liveness.LastBeat = time.Time{} }), recorded},
		{"an upstream agent's own time is never overwritten",
			member(old, func(o *observed) { o.agent, o.Liveness.LastBeat = membership.Legacy, now }), recorded},
	} {
		if got := lastSeen(c.seen); !got.Equal(c.want) {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestADelayIsWrittenWithOtherChangesOnly(t *testing.T) {
	native := member()
	native.before = describe(native, lifecycle.Departure{}, now)
	native.RecordedBeat = native.before.Agent.LastSeen.Time
	native.Liveness.Delay = &clusterv1beta1.HeartbeatDelay{Hour: metav1.NewTime(now), Seconds: []int32{7}}
	if status := describe(native, lifecycle.Departure{}, now); !equality.Semantic.DeepEqual(status, native.before) {
		t.Errorf("the delay alone is written (-want +got):\n%s", cmp.Diff(native.before, status))
	}
	native.Refresh, native.Liveness.LastBeat = time.Minute, native.RecordedBeat.Add(time.Minute)
	status := describe(native, lifecycle.Departure{}, now)
	if diff := cmp.Diff(native.Liveness.Delay, status.HeartbeatDelay); diff != "" {
		t.Errorf("with a later heartbeat (-want +got):\n%s", diff)
	}
	legacy := native
	legacy.agent = membership.Legacy
	if status := describe(legacy, lifecycle.Departure{}, now); status.HeartbeatDelay != nil {
		t.Errorf("an upstream agent has the delay %v", status.HeartbeatDelay)
	}
}

func TestAFirstBeatWaitsAMomentForItsReportAndAMissingIdentityForAnother(t *testing.T) {
	first := func(o *observed) {
		neverSeen(o)
		since := now.Add(-lifecycle.Settle / 2)
		o.Liveness.LastBeat, o.Liveness.OnlineSince, o.Liveness.State = since, since, liveness.Online
		o.Report.Status = clusterv1beta1.InternalMemberClusterStatus{}
	}
	unbeaten := func(o *observed) {
		first(o)
		o.Liveness = liveness.Observation{}
	}
	for name, c := range map[string]struct {
		seen observed
		want time.Duration
	}{
		"the first":    {member(first), lifecycle.Settle / 2},
		"not for ever": {member(first, func(o *observed) { o.Liveness.OnlineSince = now.Add(-lifecycle.Settle) }), 0},
		"not for as long as one hurries": {member(first,
			func(o *observed) { o.Liveness.LastBeat, o.Liveness.OnlineSince = now, now.Add(-lifecycle.Settle) }), 0},
		"not if the report is there": {member(neverSeen, func(o *observed) { o.Liveness.LastBeat = now }), 0},
		"no later one": {member(first,
			func(o *observed) { o.before.Agent.LastSeen = metav1.NewTime(now.Add(-time.Hour)) }), 0},
		"not before there is one": {member(first,
			func(o *observed) { o.Liveness.LastBeat, o.Liveness.OnlineSince = time.Time{}, time.Time{} }), 0},
		"nor does an identity that is replaced": {member(func(o *observed) { o.agent, o.missing = "", now.Add(-replacing/2) }),
			replacing / 2},
		"unless it is gone for good":                {member(func(o *observed) { o.agent, o.missing = "", now.Add(-replacing) }), 0},
		"not that of an agent that reports nothing": {member(first, func(o *observed) { o.agent = membership.Legacy }), 0},
		"a join of a moment ago":                    {member(unbeaten, func(o *observed) { o.moment = time.Second }), time.Second},
		"a join that takes longer":                  {member(unbeaten), 0},
		"not if its namespace is another's": {
			member(unbeaten, func(o *observed) { o.moment, o.NamespaceState = time.Second, membernamespace.NamespaceTaken }), 0},
		"not if its import fails": {member(unbeaten, func(o *observed) {
			o.moment, o.managed = time.Second, true
			o.before.Conditions = []fleet.Condition{kube.Condition(fleet.ConditionImported, false, "Unreachable", "")}
		}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.seen.unsettled(now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestDepart(t *testing.T) {
	leaving := func(o *observed) { o.Deleted, o.LeavePolicy = now.Add(-time.Minute), clusterv1beta1.LeaveDelete }
	for _, c := range []struct {
		name       string
		seen       observed
		step       lifecycle.Step
		unanswered string
	}{
		{
			"what was delivered stays unless the record says otherwise",
			member(leaving, func(o *observed) { o.LeavePolicy = clusterv1beta1.LeaveOrphan }), lifecycle.RemoveNamespace, "",
		},
		{"an agent that is to remove it is asked", member(leaving), lifecycle.WaitForAgent, ""},
		{"also a lost one", member(leaving, func(o *observed) { o.Liveness.State = liveness.Lost }), lifecycle.WaitForAgent, ""},
		{"one that never came is not", member(leaving, neverSeen), lifecycle.RemoveNamespace, ""},
		{
			"a Rancher Fleet agent cannot be asked", member(leaving, func(o *observed) { o.agent, o.Report = membership.Legacy, nil }),
			lifecycle.RemoveNamespace, "is Rancher Fleet's, which cannot remove its deliveries",
		},
		{
			"nor can one whose identity is gone", member(leaving, func(o *observed) { o.agent = "" }), lifecycle.RemoveNamespace,
			"has lost its identity",
		},
		{
			"unless it has answered before", member(leaving, says("False", "InternalMemberClusterLeft", ""), func(o *observed) { o.agent = "" }),
			lifecycle.RemoveNamespace, "",
		},
	} {
		got := leaver(c.seen, 15*time.Minute).Depart(now)
		if got.Step != c.step || got.Unanswered != c.unanswered {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}

func TestAClusterThatLeavesSaysWhatItWaitsForAndWritesThatOnce(t *testing.T) {
	lost := member(func(o *observed) {
		o.Deleted, o.LeavePolicy, o.Liveness.State = now.Add(-time.Minute), clusterv1beta1.LeaveDelete, liveness.Lost
	})
	first := describe(lost, leaver(lost, 15*time.Minute).Depart(now), now)
	ready := kube.FindCondition(first.Conditions, fleet.ConditionReady)
	const want = "leaving: agent lost: no heartbeat since 2026-01-02T03:03:05Z; waiting for the member agent to answer, at most until " +
		"2026-01-02T03:18:05Z (14m0s)"
	if ready.Reason != "Leaving" || ready.Message != want {
		t.Errorf("it says %s: %s", ready.Reason, ready.Message)
	}
	lost.before = first
	later := now.Add(time.Minute)
	if diff := cmp.Diff(first, describe(lost, leaver(lost, 15*time.Minute).Depart(later), later)); diff != "" {
		t.Errorf("a minute later it is written again (-before +after):\n%s", diff)
	}
}

func TestALeavePolicyThatNobodyUnderstandsIsSaid(t *testing.T) {
	o := member(func(o *observed) { o.PolicyProblem = "want Delete or Orphan" })
	if said := kube.FindCondition(describe(o, lifecycle.Departure{}, now).Conditions, fleet.ConditionSupported); said == nil ||
		said.Reason != "LeavePolicyInvalid" {
		t.Errorf("it says %+v", said)
	}
	o.before = describe(o, lifecycle.Departure{}, now)
	o.PolicyProblem = ""
	if said := kube.FindCondition(describe(o, lifecycle.Departure{}, now).Conditions, fleet.ConditionSupported); said != nil {
		t.Errorf("it still says %+v", said)
	}
}

func TestAReleaseThatShouldBeGoneIsShownUnlessThereIsWorseNews(t *testing.T) {
	left := func(o *observed) {
		o.Report.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{
			{
				Type: clusterv1beta1.ConditionPruned, Status: metav1.ConditionFalse, Reason: clusterv1beta1.ReasonRemovalBlocked,
				Message: "ConfigMap shop/a has a finalizer",
			},
		}}}
	}
	o := member(left)
	said := describe(o, lifecycle.Departure{}, now)
	ready, pruned := kube.FindCondition(said.Conditions, fleet.ConditionReady),
		kube.FindCondition(said.Conditions, clusterv1beta1.ConditionPruned)
	if ready.Status != "True" || !strings.Contains(ready.Message, "ConfigMap shop/a has a finalizer") {
		t.Errorf("the Cluster is %+v", ready)
	}
	if pruned == nil || pruned.Status != "False" || pruned.Reason != clusterv1beta1.ReasonRemovalBlocked {
		t.Errorf("it says %+v", pruned)
	}
	o.before = said
	if diff := cmp.Diff(said, describe(o, lifecycle.Departure{}, now.Add(time.Minute))); diff != "" {
		t.Errorf("a minute later it is written again (-before +after):\n%s", diff)
	}
	o.Liveness.State = liveness.Lost
	if ready := kube.FindCondition(describe(o, lifecycle.Departure{}, now).Conditions,
		fleet.ConditionReady); ready.Reason != reasons.AgentLost {
		t.Errorf("a lost Cluster says %+v", ready)
	}
	o = member(func(o *observed) { o.before = said })
	if pruned := kube.FindCondition(describe(o, lifecycle.Departure{}, now).Conditions, clusterv1beta1.ConditionPruned); pruned != nil {
		t.Errorf("after it was removed the Cluster says %+v", pruned)
	}
}
