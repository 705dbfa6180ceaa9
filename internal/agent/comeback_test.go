package agent

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

// reconnect makes the account with which an agent comes back, and returns a token of it.
func (h *memberHub) reconnect() string {
	h.t.Helper()
	ctx, meta := context.Background(), metav1.ObjectMeta{Name: naming.MemberReconnectAccount}
	_, err := h.kube.CoreV1().ServiceAccounts(h.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	check(h.t, err)
	_, err = h.kube.RbacV1().Roles(h.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{
			APIGroups: []string{"cluster.kubernetes-fleet.io"}, Resources: []string{"internalmemberclusters"},
			ResourceNames: []string{h.name}, Verbs: []string{"get"},
		},
	}}, metav1.CreateOptions{})
	check(h.t, err)
	_, err = h.kube.RbacV1().RoleBindings(h.namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: naming.MemberReconnectAccount},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: naming.MemberReconnectAccount, Namespace: h.namespace}},
	}, metav1.CreateOptions{})
	check(h.t, err)
	return h.token(h.namespace, naming.MemberReconnectAccount, time.Hour)
}

// expire makes the credential that the hub has issued one that ran out on 1 January 1970.
func (m *testMember) expire() {
	m.t.Helper()
	secret := m.secret(naming.MemberAgentCredentialSecret)
	claims := credential.ClaimsOf(string(secret.Data["token"]))
	payload := fmt.Sprintf(`{"sub":%q,"iat":1,"exp":601,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, claims.Subject, claims.AccountUID)
	secret.Data["token"] = []byte("e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln")
	_, err := m.kube.CoreV1().Secrets(m.namespace).Update(context.Background(), secret, metav1.UpdateOptions{})
	check(m.t, err)
}

// TestAnAgentOfAMemberClusterWhoseCredentialHasRunOutComesBackByItsKey takes most of a minute: an
// agent that the hub refuses asks again after 15 s.
func TestAnAgentOfAMemberClusterWhoseCredentialHasRunOutComesBackByItsKey(t *testing.T) {
	hub := newMemberHub(t, startCluster(t), "returning")
	hub.period = 1
	member := newKeyedMember(t, hub)
	hub.apply()
	member.give(hub.own())
	agent := member.start(member.membership(hub))
	agent.untilJoined()
	uid, back := hub.exchange(), hub.reconnect()
	valid := func() string { return hub.token(hub.namespace, naming.MemberServiceAccount, time.Hour) }
	hub.issueTokens(agent, uid, 1, credential.Tokens{Token: valid(), Reconnect: back})
	hub.untilUsed(agent, uid, 1)
	agent.stop()
	member.remove("hub-token")
	member.expire()

	// The hub did not run meanwhile, and has issued nothing yet.
	agent = member.start(member.membership(hub))
	agent.untilState(Waiting,
		"refuses the credential that it issued to member returning: it expired at 1970-01-01T00:10:01Z; put a token of the identity",
		"this cluster cannot rejoin with its key: the hub has issued no credential after 1 yet; the agent retries")
	hub.issue(agent, uid, 2, valid())
	agent.untilJoined()
	hub.untilUsed(agent, uid, 2)
	check(t, containsAll(agent.lines(), "Returned with the key of this cluster"))
	stored := member.secret(naming.MemberAgentCredentialSecret)
	if string(stored.Data["reconnectToken"]) != back || string(stored.Data["sequence"]) != "2" {
		t.Errorf("it has stored credential %s, and the token to come back with was kept: %t",
			stored.Data["sequence"], string(stored.Data["reconnectToken"]) == back)
	}

	// The next token to come back with comes with what the hub issues to an agent that is there.
	agent.stop()
	member.expire()
	hub.issue(agent, uid, 3, valid())
	agent = member.start(member.membership(hub))
	hub.untilUsed(agent, uid, 3)
	hub.issueTokens(agent, uid, 4, credential.Tokens{
		Token: valid(), Reconnect: hub.token(hub.namespace, naming.MemberReconnectAccount, 2*time.Hour),
	})
	hub.untilUsed(agent, uid, 4)
	if string(member.secret(naming.MemberAgentCredentialSecret).Data["reconnectToken"]) == back {
		t.Error("the agent keeps a token to come back with that the hub has replaced")
	}
	agent.stop()

	// What was opened by another key, or was issued to another account, is not used.
	member.expire()
	hub.issue(agent, "another", 5, valid())
	agent = member.start(member.membership(hub))
	agent.untilState(Waiting, "this cluster cannot rejoin with its key: the hub has issued no credential to it yet")
	agent.stop()
	hub.issue(agent, uid, 6, valid())
	member.remove(naming.AgentKeySecret)
	agent = member.start(member.membership(hub))
	agent.untilState(Waiting, "this cluster cannot rejoin with its key: ", "it is sealed to another key")
	for _, line := range strings.Split(agent.lines(), "\n") {
		if strings.Contains(line, back) || strings.Contains(line, "eyJ") {
			t.Errorf("the log holds a token: %s", line)
		}
	}
}

// TestAnAgentOfAMemberClusterWithoutATokenToComeBackWith is one whose hub is of an earlier version.
func TestAnAgentOfAMemberClusterWithoutATokenToComeBackWith(t *testing.T) {
	hub := newMemberHub(t, startCluster(t), "older")
	hub.period = 1
	member := newKeyedMember(t, hub)
	hub.apply()
	member.give(hub.own())
	agent := member.start(member.membership(hub))
	agent.untilJoined()
	uid := hub.exchange()
	hub.issue(agent, uid, 1, hub.token(hub.namespace, naming.MemberServiceAccount, time.Hour))
	hub.untilUsed(agent, uid, 1)
	agent.stop()
	member.remove("hub-token")
	member.expire()
	hub.issue(agent, uid, 2, hub.token(hub.namespace, naming.MemberServiceAccount, time.Hour))
	agent = member.start(member.membership(hub))
	want := fmt.Sprintf("the hub at %s refuses the credential that it issued to member older: it expired at 1970-01-01T00:10:01Z; "+
		"put a token of the identity of the MemberCluster into secret %s/hub-token, which is used at once", hub.config.Host, member.namespace)
	agent.until("it says what it needs", func() error {
		if state, reason, _ := agent.Status(); state != Waiting || reason != want {
			return fmt.Errorf("it is %s: %s", state, reason)
		}
		return nil
	})
	member.give(hub.own())
	agent.untilJoined()
}
