package agent

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// hubTerms returns the terms of hubs with one key, by number.
func hubTerms(t *testing.T) func(number int64) *clusterv1beta1.HubTerm {
	t.Helper()
	identity, err := term.NewIdentity()
	check(t, err)
	return func(number int64) *clusterv1beta1.HubTerm {
		i := identity
		i.Term = number
		return i.On(fmt.Sprint("cluster-", number))
	}
}

// offers writes a term and further fields into the spec of the report.
func (h *testHub) offers(t *clusterv1beta1.HubTerm, more string) {
	h.t.Helper()
	text, err := json.Marshal(t)
	check(h.t, err)
	h.patchReport(fmt.Sprintf(`{"spec":{"hubTerm":%s%s}}`, text, more))
}

// untilTold waits until the report has the term that the member obeys.
func (h *testHub) untilTold(agent *running, number int64) {
	h.t.Helper()
	agent.until("the report has the term that the member obeys", func() error {
		report, err := h.report()
		if err != nil {
			return err
		}
		if told := report.Status.HubTerm; told == nil || told.Term != number || term.Verify(told) != nil {
			return fmt.Errorf("it has %+v", told)
		}
		return nil
	})
}

// untilRemembered waits until the member has stored a term.
func (m *testMember) untilRemembered(agent *running, number int64) {
	m.t.Helper()
	agent.until(fmt.Sprint("term ", number, " is remembered"), func() error {
		stored, err := m.kube.CoreV1().ConfigMaps(m.namespace).Get(m.t.Context(), naming.ObeyedTermConfigMap, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got, err := term.Decode(stored.Data[term.ConfigMapKey]); err != nil || got.Term != number {
			return fmt.Errorf("it is %v, %v", got, err)
		}
		return nil
	})
}

// deliversOn lets the agent start the deployer.
func (m *testMember) deliversOn() func(*Options) {
	m.t.Helper()
	m.mayDeliver()
	kubeconfig := filepath.Join(testkube.Start(m.t, "agent").Dir, "kubeconfig")
	return func(o *Options) {
		o.Delivery = Delivery{Path: testkube.Build(m.t, "muster-deployer"), Arguments: []string{
			"--kubeconfig=" + kubeconfig, "--namespace=" + m.namespace, "--holder=" + m.namespace,
		}}
	}
}

// TestAMemberRefusesTheOrdersOfALowerTerm has an older hub answer at the address of the hub, as
// after a restore of its etcd. Its orders would remove everything.
func TestAMemberRefusesTheOrdersOfALowerTerm(t *testing.T) {
	hub, member := newCluster(t)
	terms, withDeployer := hubTerms(t), member.deliversOn()
	hub.serve(hub.grant)
	hub.mayBeDelivered()
	hub.offers(terms(2), "")
	member.bootstrap(hub.values())
	target := makeNamespace(t, hub.kube, "target-")
	agent := member.start(withDeployer)
	agent.untilJoined()
	member.untilRemembered(agent, 2)
	hub.place(target, "web")
	member.untilApplied(agent, target, "web")

	hub.offers(terms(1), `,"state":"Leave","leavePolicy":"Delete","uninstallAgent":true`)
	agent.untilState(Fenced, "has term 1, and this cluster obeys term 2", "nothing on this cluster is changed", "muster hub promote")
	hub.untilTold(agent, 2)
	hub.place(target, "during")
	check(t, hub.deployments().Delete(t.Context(), "web", metav1.DeleteOptions{}))
	hub.beatsAgain(agent)
	agent.stop()
	again := member.start(withDeployer)
	again.untilState(Fenced, "has term 1, and this cluster obeys term 2")
	hub.beatsAgain(again)
	hub.untilTold(again, 2)
	member.has(target, "web", true)
	member.has(target, "during", false)
	if report, err := hub.report(); err != nil || strings.Contains(fmt.Sprint(report.Status.AgentStatus), "Left") {
		t.Errorf("the member has left: %v, %v", report.Status.AgentStatus, err)
	}

	forged := terms(2)
	forged.Term = 9
	hub.offers(forged, `,"state":"Join","leavePolicy":"Orphan","uninstallAgent":false`)
	again.untilState(Fenced, "has no valid signature")
	hub.offers(terms(3), "")
	again.untilJoined()
	member.untilApplied(again, target, "during")
	member.untilRemembered(again, 3)
	again.until("the report has no refused term", func() error {
		if report, err := hub.report(); err != nil || report.Status.HubTerm != nil {
			return fmt.Errorf("it has %+v, %w", report.Status.HubTerm, err)
		}
		return nil
	})
}

// TestAMemberLeavesNoHubThatItsHubSucceeds moves a member to a restored hub while the old one still
// answers, and back.
func TestAMemberLeavesNoHubThatItsHubSucceeds(t *testing.T) {
	config := startCluster(t)
	old, restored, member := newTestHub(t, config), newTestHub(t, config), newTestMember(t, config)
	terms, withDeployer := hubTerms(t), member.deliversOn()
	for number, hub := range map[int64]*testHub{1: old, 2: restored} {
		hub.serve(hub.grant)
		hub.mayBeDelivered()
		hub.offers(terms(number), `,"leavePolicy":"Delete"`)
	}
	target := makeNamespace(t, old.kube, "target-")
	old.place(target, "web")
	member.bootstrap(old.values())
	agent := member.start(withDeployer)
	agent.untilJoined()
	member.untilApplied(agent, target, "web")

	member.bootstrap(restored.values())
	restored.joinedAt(agent, member)
	old.untilTold(agent, 2)
	restored.place(target, "new")
	member.untilApplied(agent, target, "new")
	member.untilRemembered(agent, 2)

	asked := old.count()
	member.bootstrap(old.values())
	agent.until("the old hub is refused", func() error {
		_, reason, _ := agent.Status()
		return containsAll(reason, "joined as "+restored.workspace, "registers with another token", "has term 1, and this cluster obeys term 2")
	})
	if old.count() != asked+1 {
		t.Errorf("%d requests went to the old hub", old.count()-asked)
	}
	restored.beatsAgain(agent)
	member.has(target, "web", true)
	if lines := agent.lines(); strings.Contains(lines, "Leaving the previous membership") {
		t.Errorf("the agent has left a hub:\n%s", lines)
	}
}

// TestAnAgentOfAMemberClusterRefusesTheOldHub has the user set the address of the old hub again.
func TestAnAgentOfAMemberClusterRefusesTheOldHub(t *testing.T) {
	hub, member, agent := newJoinedMember(t, "fenced")
	terms := hubTerms(t)
	hub.offers(terms(2), "")
	member.untilRemembered(agent, 2)
	agent.stop()
	hub.offers(terms(1), "")
	again := member.start(member.membership(hub))
	again.untilState(Fenced, "has term 1, and this cluster obeys term 2")
	hub.untilTold(again, 2)
	hub.beatsAgain(again)
}

// TestOnlyASignedTermIsRemembered has a user of the member write into the ConfigMap, and take the
// right to it from the agent.
func TestOnlyASignedTermIsRemembered(t *testing.T) {
	hub, member := newCluster(t)
	terms := hubTerms(t)
	forged := terms(2)
	forged.Term = 9
	_, err := member.kube.CoreV1().ConfigMaps(member.namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: naming.ObeyedTermConfigMap}, Data: map[string]string{term.ConfigMapKey: term.Encode(forged)},
	}, metav1.CreateOptions{})
	check(t, err)
	hub.serve(hub.grant)
	hub.prepare(3600e9)
	hub.offers(terms(2), "")
	member.bootstrap(hub.values())
	agent := member.start()
	agent.untilJoined()
	member.untilRemembered(agent, 2)
	if err := containsAll(agent.lines(), "The remembered term of the hub is not used"); err != nil {
		t.Error(err)
	}

	check(t, member.kube.RbacV1().Roles(member.namespace).Delete(t.Context(), "hub-term", metav1.DeleteOptions{}))
	agent.stop()
	again := member.start()
	again.untilJoined()
	hub.offers(terms(3), "")
	again.until("the agent obeys term 3", func() error { return containsAll(again.lines(), `"from"=2 "to"=3`) })
	hub.offers(terms(2), "") // what it remembers is in its memory only
	again.untilState(Fenced, "has term 2, and this cluster obeys term 3")
	if err := containsAll(again.lines(), "upgrade the chart of the agent to grant the right"); err != nil {
		t.Error(err)
	}
}
