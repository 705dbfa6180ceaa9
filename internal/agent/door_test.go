package agent

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
)

// memberHub plays a hub that has a MemberCluster, with exactly the rights that it grants.
type memberHub struct {
	*testHub
	name, namespace, account string
}

func newMemberHub(t *testing.T, config *rest.Config, name string) *memberHub {
	t.Helper()
	h := &memberHub{testHub: newTestHub(t, config), name: name, namespace: naming.MemberClusterNamespace(name), account: name + "-hub-cluster-access"}
	_, err := h.kube.CoreV1().ServiceAccounts(h.workspace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: h.account}}, metav1.CreateOptions{})
	check(t, err)
	return h
}

// apply does what a hub does for a MemberCluster.
func (h *memberHub) apply() {
	h.t.Helper()
	ctx := context.Background()
	_, err := h.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		check(h.t, err)
		h.t.Cleanup(func() { _ = h.kube.CoreV1().Namespaces().Delete(ctx, h.namespace, metav1.DeleteOptions{}) }) // the cluster goes with the test
	}
	_, err = h.kube.RbacV1().Roles(h.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "role"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"heartbeat"}, Verbs: []string{"get", "patch"}},
		{APIGroups: []string{"cluster.kubernetes-fleet.io"}, Resources: []string{"internalmemberclusters"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"cluster.kubernetes-fleet.io"}, Resources: []string{"internalmemberclusters/status"}, Verbs: []string{"patch", "update"}},
	}}, metav1.CreateOptions{})
	check(h.t, err)
	_, err = h.kube.RbacV1().RoleBindings(h.namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "binding"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "role"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: h.account, Namespace: h.workspace}},
	}, metav1.CreateOptions{})
	check(h.t, err)
	_, err = h.kube.CoordinationV1().Leases(h.namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "heartbeat"}}, metav1.CreateOptions{})
	check(h.t, err)
	h.report()
}

func (h *memberHub) report() {
	h.t.Helper()
	_, err := h.reports(h.namespace).Create(context.Background(), &clusterv1beta1.InternalMemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: h.name, Namespace: h.namespace},
		Spec:       clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin, HeartbeatPeriodSeconds: h.period},
	}, metav1.CreateOptions{})
	check(h.t, err)
}

func (h *memberHub) ask(state clusterv1beta1.ClusterState) {
	h.t.Helper()
	_, err := h.reports(h.namespace).Patch(context.Background(), h.name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"state":%q}}`, state), metav1.PatchOptions{})
	check(h.t, err)
}

// joined waits until the report says so, or that the member left.
func (h *memberHub) joined(agent *running, want metav1.ConditionStatus, reason string) {
	h.t.Helper()
	agent.until("the report says Joined="+string(want), func() error {
		report, err := h.reports(h.namespace).Get(context.Background(), h.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, a := range report.Status.AgentStatus {
			if c := a.Conditions[0]; a.Type == "MemberAgent" && c.Type == "Joined" && c.Status == want && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", report.Status.AgentStatus)
	})
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
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{naming.LearnedHubConfigMap}, Verbs: []string{"get", "list", "watch", "update"},
	}, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}})
	return m
}

// membership is what the chart tells the agent.
func (m *testMember) membership(h *memberHub, change ...func(*Membership)) func(*Options) {
	given := Membership{
		Server: h.config.Host, Name: h.name, CA: base64.StdEncoding.EncodeToString(h.config.CAData), SecretNamespace: m.namespace, SecretName: "hub-token",
	}
	for _, f := range change {
		f(&given)
	}
	return func(o *Options) { o.Membership = &given }
}

func (m *testMember) give(token string) {
	m.put("hub-token", map[string][]byte{"token": []byte(token)})
}

func TestMemberWaitsForEverythingSayingSoAndJoins(t *testing.T) {
	config := startCluster(t)
	hub, member := newMemberHub(t, config, "patient"), newGivenMember(t, config)
	agent := member.start(member.membership(hub))
	agent.untilState(Waiting, "there is no secret "+member.namespace+"/hub-token", "in its key token")
	member.give("")
	agent.untilState(BadInput, "its key token is missing or empty")
	member.give("garbage")
	agent.untilState(Waiting, "refuses the token in secret "+member.namespace+"/hub-token, which is not that of a service account")
	token := hub.own()
	member.give(token)
	agent.untilState(Trying, "knows no member patient for this identity yet",
		"apply a MemberCluster named patient whose identity is system:serviceaccount:"+hub.workspace+":"+hub.account)
	hub.apply()
	agent.untilJoined()
	hub.joined(agent, "True", "InternalMemberClusterJoined")
	if holder := *hub.lease().HolderIdentity; !strings.HasSuffix(holder, "_pod-1") || len(holder) != len("01234567_pod-1") {
		t.Errorf("the holder is %q", holder)
	}
	if strings.Contains(agent.lines(), token) {
		t.Errorf("the log holds the token:\n%s", agent.lines())
	}
}

func TestRotatedTokenIsUsedAtOnceAndARefusedOneIsNamed(t *testing.T) {
	config := startCluster(t)
	hub, member := newMemberHub(t, config, "rotating"), newGivenMember(t, config)
	hub.apply()
	member.give(hub.own())
	agent := member.start(member.membership(hub))
	agent.untilJoined()
	other := "somebody-else"
	_, err := hub.kube.CoreV1().ServiceAccounts(hub.workspace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: other}}, metav1.CreateOptions{})
	check(t, err)
	revoked := hub.token(hub.workspace, other, time.Hour)
	member.give(revoked)
	agent.untilState(Trying, "whose identity is system:serviceaccount:"+hub.workspace+":"+other, "or put the token of the account that it names into secret "+member.namespace+"/hub-token")
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
	agent.untilState(Unreachable, "cannot be trusted: it showed the certificate CN=", "set config.hubCA to the CA of the hub, or put it as ca.crt into secret "+member.namespace+"/hub-token")
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
	if _, reason, _ := careless.Standing(); !strings.Contains(reason, "NOT verified") || !strings.Contains(careless.lines(), "WARNING") {
		t.Errorf("it trusts everybody and says %q\n%s", reason, careless.lines())
	}
}

func TestMemberLeavesAndJoinsAgain(t *testing.T) {
	config := startCluster(t)
	hub, member := newMemberHub(t, config, "leaving"), newGivenMember(t, config)
	hub.apply()
	member.give(hub.own())
	agent := member.start(member.membership(hub))
	agent.untilJoined()
	hub.ask(clusterv1beta1.ClusterStateLeave)
	hub.joined(agent, "False", "InternalMemberClusterLeft")
	agent.untilState(Left, "this cluster has left the fleet")
	beat := hub.lease().RenewTime.Time
	time.Sleep(2500 * time.Millisecond) // two periods
	if again := hub.lease().RenewTime.Time; !again.Equal(beat) {
		t.Error("it beats after it left")
	}
	agent.stop()
	agent = member.start(member.membership(hub))
	agent.untilState(Left, "this cluster has left the fleet")
	hub.ask(clusterv1beta1.ClusterStateJoin)
	agent.untilJoined()
	hub.joined(agent, "True", "InternalMemberClusterJoined")

	hub.ask(clusterv1beta1.ClusterStateLeave)
	hub.joined(agent, "False", "InternalMemberClusterLeft")
	check(t, hub.kube.RbacV1().RoleBindings(hub.namespace).Delete(t.Context(), "binding", metav1.DeleteOptions{}))
	check(t, hub.kube.RbacV1().Roles(hub.namespace).Delete(t.Context(), "role", metav1.DeleteOptions{}))
	check(t, hub.kube.CoordinationV1().Leases(hub.namespace).Delete(t.Context(), "heartbeat", metav1.DeleteOptions{}))
	check(t, hub.reports(hub.namespace).Delete(t.Context(), hub.name, metav1.DeleteOptions{}))
	agent.untilState(Left, "to join again, apply a MemberCluster of the same name on the hub")
	hub.apply()
	agent.untilJoined()
	hub.joined(agent, "True", "InternalMemberClusterJoined")
}

func TestReportMadeAnewAfterLeavingIsAJoin(t *testing.T) {
	config := startCluster(t)
	hub, member := newMemberHub(t, config, "returning"), newGivenMember(t, config)
	hub.apply()
	member.give(hub.own())
	agent := member.start(member.membership(hub))
	agent.untilJoined()
	hub.ask(clusterv1beta1.ClusterStateLeave)
	hub.joined(agent, "False", "InternalMemberClusterLeft")
	check(t, hub.reports(hub.namespace).Delete(t.Context(), hub.name, metav1.DeleteOptions{}))
	hub.report()
	agent.untilJoined()
	hub.joined(agent, "True", "InternalMemberClusterJoined")
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
	second.untilState(Standby, "another agent (holder "+holder+") beats for this member; this one waits")
	if _, _, ready := second.Standing(); ready {
		t.Error("the second agent is ready")
	}
	if _, reason, ready := first.Standing(); !ready {
		t.Errorf("the first agent is no longer joined: %s", reason)
	}
	first.stop()
	second.untilJoined()
	// One that comes back in the second's cluster does not wait.
	second.stop()
	started := time.Now()
	third := elsewhere.start(elsewhere.membership(hub), func(o *Options) { o.clusterID, o.Hostname = "another-cluster", "pod-2" })
	third.untilJoined()
	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("the successor waited %s", took)
	}
}

func TestClusterLeavesByTheFirstDoorToo(t *testing.T) {
	config := startCluster(t)
	hub, member := newTestHub(t, config), newTestMember(t, config)
	hub.serve(hub.grant)
	member.bootstrap(hub.values())
	agent := member.start()
	agent.untilJoined()
	hub.patchReport(`{"spec":{"state":"Leave"}}`)
	agent.untilState(Left, "this cluster has left the fleet")
	agent.until("the report says so", func() error {
		report, err := hub.reports(hub.memberNamespace()).Get(context.Background(), "my-cluster", metav1.GetOptions{})
		if err != nil || len(report.Status.AgentStatus) == 0 || report.Status.AgentStatus[0].Conditions[0].Status != "False" {
			return errors.New("it does not")
		}
		return nil
	})
	hub.revoke()
	check(t, hub.reports(hub.memberNamespace()).Delete(t.Context(), "my-cluster", metav1.DeleteOptions{}))
	agent.untilState(Left, "this cluster has left the fleet; to join again, give the cluster a new registration token")
	member.bootstrap(hub.values())
	agent.untilJoined()
}
