package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

// newKeyedMember is a member whose agent may keep a key and what the hub issues, as the chart
// allows.
func newKeyedMember(t *testing.T, hub *memberHub) *testMember {
	t.Helper()
	m := newGivenMember(t, hub.config)
	rights := testHub{t: t, config: hub.config, kube: m.kube}
	rights.bind(m.namespace, "hub-credential", "fleet-agent", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{naming.MemberAgentCredentialSecret},
		Verbs: []string{"list", "watch", "update"},
	}, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{naming.AgentKeySecret}, Verbs: []string{"get"},
	}, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}})
	return m
}

// exchange makes the account that a hub makes for an agent, with the rights of the identity,
// and returns its UID.
func (h *memberHub) exchange() string {
	h.t.Helper()
	account, err := h.kube.CoreV1().ServiceAccounts(h.namespace).Create(context.Background(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: naming.MemberServiceAccount}}, metav1.CreateOptions{})
	check(h.t, err)
	_, err = h.kube.RbacV1().RoleBindings(h.namespace).Create(context.Background(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "exchanged"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "role"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: naming.MemberServiceAccount, Namespace: h.namespace}},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		check(h.t, err)
	}
	return string(account.UID)
}

// issue seals a token to the key that the agent reports.
func (h *memberHub) issue(agent *running, uid string, sequence int64, token string) {
	h.t.Helper()
	h.issueTokens(agent, uid, sequence, credential.Tokens{Token: token})
}

func (h *memberHub) issueTokens(agent *running, uid string, sequence int64, tokens credential.Tokens) {
	h.t.Helper()
	var key []byte
	agent.until("its key is reported", func() error {
		report, err := h.reports().Get(context.Background(), h.name, metav1.GetOptions{})
		if err != nil || len(report.Status.AgentKey) == 0 {
			return fmt.Errorf("it reports none: %v", err)
		}
		key = report.Status.AgentKey
		return nil
	})
	sealed, err := credential.SealTokens(key, credential.Renewal{AccountUID: uid, Sequence: sequence}, tokens)
	check(h.t, err)
	h.patchReport(fmt.Sprintf(`{"spec":{"credential":{`+
		`"accountUID":%q,"sequence":%d,"issued":"2026-01-02T03:04:05Z","expires":"2026-01-09T03:04:05Z","sealed":%q}}}`,
		uid, sequence, base64.StdEncoding.EncodeToString(sealed)))
}

// untilUsed waits until the agent reports a credential of an account.
func (h *memberHub) untilUsed(agent *running, uid string, sequence int64) {
	h.t.Helper()
	agent.until(fmt.Sprintf("credential %d is in use", sequence), func() error {
		report, err := h.reports().Get(context.Background(), h.name, metav1.GetOptions{})
		if err != nil || report.Status.Credential == nil || report.Status.Credential.AccountUID != uid ||
			report.Status.Credential.Sequence != sequence {
			return fmt.Errorf("%v, it reports %+v, and the account is %s", err, report.Status.Credential, uid)
		}
		return nil
	})
}

// identityUID is the UID of the account whose token is the user's.
func (h *memberHub) identityUID() string {
	account, err := h.kube.CoreV1().ServiceAccounts(h.workspace).Get(context.Background(), h.account, metav1.GetOptions{})
	check(h.t, err)
	return string(account.UID)
}

func TestWhatTheHubIssuesTakesThePlaceOfTheUsersTokenAsLongAsItWorks(t *testing.T) {
	config := startCluster(t)
	hub := newMemberHub(t, config, "exchanging")
	hub.period = 1
	member := newKeyedMember(t, hub)
	hub.apply()
	static := hub.own()
	// The CA is in the user's Secret only.
	member.put("hub-token", map[string][]byte{"token": []byte(static), "ca.crt": config.CAData})
	start := func() *running {
		agent := member.start(member.membership(hub, func(m *Membership) { m.CA = "" }))
		agent.untilJoined()
		return agent
	}
	agent := start()
	uid := hub.exchange()
	hub.issue(agent, uid, 1, hub.token(hub.namespace, naming.MemberServiceAccount, time.Hour))
	hub.untilUsed(agent, uid, 1)
	hub.issue(agent, uid, 2, hub.token(hub.namespace, naming.MemberServiceAccount, time.Hour))
	hub.untilUsed(agent, uid, 2)
	member.give("garbage") // the agent ignores the garbage while a credential of the hub's works
	hub.issue(agent, uid, 3, hub.token(hub.namespace, naming.MemberServiceAccount, time.Hour))
	hub.untilUsed(agent, uid, 3)
	if sessions := strings.Count(agent.lines(), `"to"="Trying"`); sessions != 1 {
		t.Errorf("another credential began another session:\n%s", agent.lines())
	}
	agent.stop()

	member.remove("hub-token")
	agent = start()
	hub.untilUsed(agent, uid, 3)
	member.remove(naming.MemberAgentCredentialSecret)
	agent.until("what was deleted by mistake is stored again", func() error {
		if member.secret(naming.MemberAgentCredentialSecret) == nil {
			return fmt.Errorf("it is not there")
		}
		return nil
	})

	member.put("hub-token", map[string][]byte{"token": []byte(static), "ca.crt": config.CAData})
	hub.revoke()
	hub.untilUsed(agent, hub.identityUID(), 0)
	agent.untilJoined()
	check(t, containsAll(agent.lines(), "Returned to the token from the user's Secret",
		"the hub at "+config.Host+" refuses the credential that it issued to member exchanging"))
	uid = hub.exchange()
	hub.issue(agent, uid, 1, hub.token(hub.namespace, naming.MemberServiceAccount, time.Hour))
	hub.untilUsed(agent, uid, 1)

	// Without either it says what it needs.
	member.remove("hub-token")
	hub.revoke()
	agent.untilState(Waiting, "refuses the credential that it issued to member exchanging",
		"put a token of the identity of the MemberCluster into secret "+member.namespace+"/hub-token")
	for _, line := range strings.Split(agent.lines(), "\n") {
		if strings.Contains(line, static) || strings.Contains(line, "eyJ") {
			t.Errorf("the log holds a token: %s", line)
		}
	}
}

func TestOnlyWhatTheHubIssuedToThisMemberTakesThePlaceOfTheUsersToken(t *testing.T) {
	config := startCluster(t)
	hub := newMemberHub(t, config, "careful")
	hub.period = 1
	member := newKeyedMember(t, hub)
	hub.apply()
	member.give(hub.own())
	agent := member.start(member.membership(hub))
	agent.untilJoined()
	hub.issue(agent, hub.identityUID(), 1, hub.own())
	agent.until("a token of another account is not used", func() error {
		return containsAll(agent.lines(), "The issued credential is not used",
			", not to a member's account of the hub")
	})

	// A Secret of the user's stays as it is.
	member.put(naming.MemberAgentCredentialSecret, map[string][]byte{"token": []byte("mine")})
	uid := hub.exchange()
	hub.issue(agent, uid, 1, hub.token(hub.namespace, naming.MemberServiceAccount, time.Hour))
	agent.until("it cannot be stored", func() error {
		return containsAll(agent.lines(), "storing secret "+member.namespace+"/"+naming.MemberAgentCredentialSecret, "field is immutable")
	})
	if token := member.secret(naming.MemberAgentCredentialSecret).Data["token"]; !bytes.Equal(token, []byte("mine")) {
		t.Error("the Secret of the user was overwritten")
	}
	member.remove(naming.MemberAgentCredentialSecret)
	hub.untilUsed(agent, uid, 1)
	agent.stop()

	// The same Secret is worth nothing to the agent of another member, or of another hub.
	member.remove("hub-token")
	agent = member.start(member.membership(hub, func(m *Membership) { m.Name = "other" }))
	agent.untilState(Waiting, "there is no secret "+member.namespace+"/hub-token", "it is for member careful in namespace "+hub.namespace)
	agent.stop()
	agent = member.start(member.membership(hub, func(m *Membership) { m.Server = "https://127.0.0.1:1" }))
	agent.untilState(Waiting, "there is no secret "+member.namespace+"/hub-token", "of the hub at "+config.Host)
	agent.stop()
	agent = member.start(member.membership(hub))
	agent.untilJoined()
}
