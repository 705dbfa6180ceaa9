package agent

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// memberHub plays a hub that has a MemberCluster, with exactly the rights that it grants.
type memberHub struct{ *testHub }

func TestOnlyAnotherNamespaceOfTheSameRecordIsThatOfARevokedMembership(t *testing.T) {
	before := hubclient.Credential{Server: "https://hub", Workspace: "clusters", Cluster: "web", MemberNamespace: "a"}
	with := func(change func(*hubclient.Credential)) hubclient.Credential {
		c := before
		change(&c)
		return c
	}
	for name, row := range map[string]struct {
		now  hubclient.Credential
		want bool
	}{
		"the same record in another namespace": {with(func(c *hubclient.Credential) { c.MemberNamespace = "b" }), true},
		"the same membership":                  {before, false},
		"another Cluster":                      {with(func(c *hubclient.Credential) { c.Cluster, c.MemberNamespace = "db", "b" }), false},
		"a Cluster of another workspace":       {with(func(c *hubclient.Credential) { c.Workspace, c.MemberNamespace = "others", "b" }), false},
		"a Cluster of another hub": {with(func(c *hubclient.Credential) { c.Server, c.MemberNamespace = "https://other", "b" }),
			false},
	} {
		if got := revokedSince(before, row.now); got != row.want {
			t.Errorf("%s: %t, want %t", name, got, row.want)
		}
	}
}

func newMemberHub(t *testing.T, config *rest.Config, name string) *memberHub {
	t.Helper()
	h := &memberHub{newTestHub(t, config)}
	h.name, h.namespace, h.account = name, naming.MemberClusterNamespace(name), name+"-hub-cluster-access"
	_, err := h.kube.CoreV1().ServiceAccounts(h.workspace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: h.account}}, metav1.CreateOptions{})
	check(t, err)
	return h
}

// apply does what a hub does for a MemberCluster.
func (h *memberHub) apply() {
	h.t.Helper()
	h.makeMember(func() {
		_, err := h.kube.RbacV1().Roles(h.namespace).Create(context.Background(),
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "role"}, Rules: []rbacv1.PolicyRule{
				{
					APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"heartbeat"},
					Verbs: []string{"get", "patch"},
				},
				{
					APIGroups: []string{"cluster.kubernetes-fleet.io"}, Resources: []string{"internalmemberclusters"},
					Verbs: []string{"get", "list", "watch"},
				},
				{
					APIGroups: []string{"cluster.kubernetes-fleet.io"}, Resources: []string{"internalmemberclusters/status"},
					Verbs: []string{"patch", "update"},
				},
			}}, metav1.CreateOptions{})
		check(h.t, err)
		_, err = h.kube.RbacV1().RoleBindings(h.namespace).Create(context.Background(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "binding"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "role"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: h.account, Namespace: h.workspace}},
		}, metav1.CreateOptions{})
		check(h.t, err)
	})
}

func (h *memberHub) ask(state clusterv1beta1.ClusterState) {
	h.t.Helper()
	h.patchReport(fmt.Sprintf(`{"spec":{"state":%q}}`, state))
}

func (h *memberHub) lease() coordinationv1.LeaseSpec {
	lease, err := h.kube.CoordinationV1().Leases(h.namespace).Get(context.Background(), "heartbeat", metav1.GetOptions{})
	check(h.t, err)
	return lease.Spec
}

func (h *memberHub) own() string { return h.token(h.workspace, h.account, time.Hour) }

// newGivenMember is a cluster whose agent may read one Secret.
func newGivenMember(t *testing.T, config *rest.Config) *testMember {
	t.Helper()
	m := newTestMember(t, config)
	rights := testHub{t: t, config: config, kube: m.kube}
	rights.bind(m.namespace, "hub-token", "fleet-agent", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"hub-token"}, Verbs: []string{"get", "list", "watch"},
	}, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{naming.LearnedHubConfigMap},
		Verbs: []string{"get", "list", "watch", "update"},
	}, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}})
	return m
}

// membership is how the chart configures the agent.
func (m *testMember) membership(h *memberHub, change ...func(*Membership)) func(*Options) {
	given := Membership{
		Server: h.config.Host, Name: h.name, CA: base64.StdEncoding.EncodeToString(h.config.CAData), SecretNamespace: m.namespace,
		SecretName: "hub-token",
	}
	for _, f := range change {
		f(&given)
	}
	return func(o *Options) { o.Membership = &given }
}

func (m *testMember) give(token string) {
	m.put("hub-token", map[string][]byte{"token": []byte(token)})
}

// newJoinedMember is a hub with a MemberCluster, and the member, whose agent has joined.
func newJoinedMember(t *testing.T, name string) (*memberHub, *testMember, *running) {
	t.Helper()
	config := startCluster(t)
	hub, member := newMemberHub(t, config, name), newGivenMember(t, config)
	hub.apply()
	member.give(hub.own())
	agent := member.start(member.membership(hub))
	agent.untilJoined()
	return hub, member, agent
}

func TestMemberWaitsForEverythingSayingSoAndJoins(t *testing.T) {
	config := startCluster(t)
	hub, member := newMemberHub(t, config, "patient"), newGivenMember(t, config)
	agent := member.start(member.membership(hub))
	agent.untilState(Waiting, "there is no secret "+member.namespace+"/hub-token", "in its key token")
	member.give("")
	agent.untilState(BadInput, "its key token is missing or empty")
	member.give("garbage")
	agent.untilState(Waiting, "refuses the token in secret "+member.namespace+"/hub-token, which belongs to no service account")
	token := hub.own()
	member.give(token)
	agent.untilState(Trying, "knows no member patient for this identity yet",
		"apply a MemberCluster named patient whose identity is system:serviceaccount:"+hub.workspace+":"+hub.account)
	hub.apply()
	agent.untilJoined()
	hub.reported(agent, "True", "InternalMemberClusterJoined")
	if holder := *hub.lease().HolderIdentity; !strings.Contains(holder, "_pod-1_") || len(holder) != len("01234567_pod-1_x7k2q") {
		t.Errorf("the holder is %q", holder)
	}
	if strings.Contains(agent.lines(), token) {
		t.Errorf("the log holds the token:\n%s", agent.lines())
	}
}

func TestRotatedTokenIsUsedAtOnceAndARefusedOneIsNamed(t *testing.T) {
	hub, member, agent := newJoinedMember(t, "rotating")
	other := "somebody-else"
	_, err := hub.kube.CoreV1().ServiceAccounts(hub.workspace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: other}}, metav1.CreateOptions{})
	check(t, err)
	revoked := hub.token(hub.workspace, other, time.Hour)
	member.give(revoked)
	agent.untilState(Trying, "whose identity is system:serviceaccount:"+hub.workspace+":"+other,
		"or store the token of the account in its spec.identity in secret "+member.namespace+"/hub-token")
	check(t, hub.kube.CoreV1().ServiceAccounts(hub.workspace).Delete(t.Context(), other, metav1.DeleteOptions{}))
	agent.untilState(Waiting, "refuses the token in secret "+member.namespace+"/hub-token, of system:serviceaccount:"+hub.workspace+":"+other)
	member.give(hub.own())
	agent.untilJoined()
}

func TestMemberTrustsTheCAOfTheSecretAndNeverNobody(t *testing.T) {
	config := startCluster(t)
	hub, member := newMemberHub(t, config, "trusting"), newGivenMember(t, config)
	hub.apply()
	member.give(hub.own())
	without := func(m *Membership) { m.CA = "" }
	agent := member.start(member.membership(hub, without))
	agent.untilState(Unreachable, "cannot be trusted: it showed the certificate CN=",
		"set config.hubCA to the CA of the hub, or put it as ca.crt into secret "+member.namespace+"/hub-token")
	member.put("hub-token", map[string][]byte{"token": []byte(hub.own()), "ca.crt": config.CAData})
	agent.untilJoined()
	agent.stop()

	member.give(hub.own())
	withChart := member.start(member.membership(hub, without, func(m *Membership) { m.FallbackCA = string(config.CAData) }))
	withChart.untilJoined()
	withChart.stop()

	member.give(hub.own())
	careless := member.start(member.membership(hub, without, func(m *Membership) { m.Insecure = true }))
	careless.untilJoined()
	if _, reason, _ := careless.Status(); !strings.Contains(reason, "NOT verified") || !strings.Contains(careless.lines(), "WARNING") {
		t.Errorf("it trusts everybody and says %q\n%s", reason, careless.lines())
	}
}

// otherMemberBeats returns when another member, with the same period, has beaten for so long.
func (h *memberHub) otherMemberBeats(d time.Duration) {
	h.t.Helper()
	other, member := newMemberHub(h.t, h.config, h.name+"-other"), newGivenMember(h.t, h.config)
	other.apply()
	member.give(other.own())
	agent := member.start(member.membership(other))
	agent.untilJoined()
	first := other.lease().RenewTime.Time
	agent.until("beats of another member", func() error {
		if last := other.lease().RenewTime.Time; last.Sub(first) < d {
			return fmt.Errorf("the last beat came %s after the first", last.Sub(first))
		}
		return nil
	})
	agent.stop()
}

func TestMemberLeavesAndJoinsAgain(t *testing.T) {
	hub, member, agent := newJoinedMember(t, "leaving")
	hub.ask(clusterv1beta1.ClusterStateLeave)
	hub.reported(agent, "False", "InternalMemberClusterLeft")
	agent.untilState(Left, "this cluster has left the fleet")
	beat := hub.lease().RenewTime.Time
	hub.otherMemberBeats(2500 * time.Millisecond)
	if again := hub.lease().RenewTime.Time; !again.Equal(beat) {
		t.Error("it beats after it left")
	}
	agent.stop()
	agent = member.start(member.membership(hub))
	agent.untilState(Left, "this cluster has left the fleet")
	hub.ask(clusterv1beta1.ClusterStateJoin)
	agent.untilJoined()
	hub.reported(agent, "True", "InternalMemberClusterJoined")

	hub.ask(clusterv1beta1.ClusterStateLeave)
	hub.reported(agent, "False", "InternalMemberClusterLeft")
	check(t, hub.kube.RbacV1().RoleBindings(hub.namespace).Delete(t.Context(), "binding", metav1.DeleteOptions{}))
	check(t, hub.kube.RbacV1().Roles(hub.namespace).Delete(t.Context(), "role", metav1.DeleteOptions{}))
	check(t, hub.kube.CoordinationV1().Leases(hub.namespace).Delete(t.Context(), "heartbeat", metav1.DeleteOptions{}))
	check(t, hub.reports().Delete(t.Context(), hub.name, metav1.DeleteOptions{}))
	agent.untilState(Left, "to join again, apply a MemberCluster of the same name on the hub")
	hub.apply()
	agent.untilJoined()
	hub.reported(agent, "True", "InternalMemberClusterJoined")
}

func TestReportMadeAnewAfterLeavingIsAJoin(t *testing.T) {
	hub, _, agent := newJoinedMember(t, "made-anew")
	hub.ask(clusterv1beta1.ClusterStateLeave)
	hub.reported(agent, "False", "InternalMemberClusterLeft")
	check(t, hub.reports().Delete(t.Context(), hub.name, metav1.DeleteOptions{}))
	hub.makeReport()
	agent.untilJoined()
	hub.reported(agent, "True", "InternalMemberClusterJoined")
}

func TestSecondAgentOfAMemberWaitsAndTakesOver(t *testing.T) {
	config := startCluster(t)
	hub, member, elsewhere := newMemberHub(t, config, "twice"), newGivenMember(t, config), newGivenMember(t, config)
	hub.apply()
	member.give(hub.own())
	elsewhere.give(hub.own())
	first := member.start(member.membership(hub))
	first.untilJoined()
	holder := *hub.lease().HolderIdentity
	second := elsewhere.start(elsewhere.membership(hub), func(o *Options) { o.clusterID = "another-cluster" })
	second.untilState(Standby, "another agent (holder "+holder+") sends heartbeats for this member, and this agent waits")
	if _, _, ready := second.Status(); ready {
		t.Error("the second agent is ready")
	}
	if _, reason, ready := first.Status(); !ready {
		t.Errorf("the first agent is no longer joined: %s", reason)
	}
	first.stop()
	second.untilJoined()
	// One that comes back in the second's cluster does not wait.
	second.stop()
	hub.patchReport(`{"spec":{"heartbeatPeriodSeconds":60}}`) // so that waiting would take three minutes
	started := time.Now()
	third := elsewhere.start(elsewhere.membership(hub), func(o *Options) { o.clusterID, o.Hostname = "another-cluster", "pod-2" })
	third.untilJoined()
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("the successor waited %s", took)
	}
}

func TestNewPodOfAMembersAgentBeatsWhileTheOldOneRuns(t *testing.T) {
	config := startCluster(t)
	hub, member := newMemberHub(t, config, "upgraded"), newGivenMember(t, config)
	hub.apply()
	member.give(hub.own())
	old := member.start(member.membership(hub))
	old.untilJoined()
	hub.patchReport(`{"spec":{"heartbeatPeriodSeconds":60}}`) // so that waiting would take three minutes
	started := time.Now()
	successor := member.start(member.membership(hub), func(o *Options) { o.Hostname = "pod-2" })
	successor.untilJoined() // and so its Pod is ready, which is what the old one's is kept for
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("the successor waited %s", took)
	}
	hub.patchReport(`{"spec":{"heartbeatPeriodSeconds":1}}`)
	old.untilState(Standby, "sends heartbeats for this member, and this agent waits")
	hub.reported(successor, "True", "InternalMemberClusterJoined")
	old.stop()
	hub.beatsAgain(successor)
}

func TestClusterLeavesByTheFirstDoorToo(t *testing.T) {
	hub, member, agent := newJoinedCluster(t)
	hub.patchReport(`{"spec":{"state":"Leave"}}`)
	agent.untilState(Left, "this cluster has left the fleet")
	hub.reported(agent, "False", "InternalMemberClusterLeft")
	hub.revoke()
	check(t, hub.reports().Delete(t.Context(), hub.name, metav1.DeleteOptions{}))
	agent.untilState(Left, "this cluster has left the fleet; to join again, give the cluster a new registration token")
	member.bootstrap(hub.values())
	agent.untilJoined()
}
