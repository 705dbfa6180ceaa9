package agent

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// successor plays the hub of a MemberCluster that was restored on a standby.
type successor struct {
	*memberHub
	key    credential.AgentKey
	system string
	// uid is the UID of the account for the agent.
	uid string
}

// publish seals a credential to a key, under the name of the agent's key.
func (h *successor) publish(key credential.AgentKey) {
	h.t.Helper()
	issued := &clusterv1beta1.IssuedCredential{AccountUID: h.uid, Sequence: 1}
	var err error
	issued.Sealed, err = credential.SealTokens(key.Public(), credential.Renewal{AccountUID: h.uid, Sequence: 1},
		credential.Tokens{Token: h.token(h.namespace, naming.MemberServiceAccount, time.Hour)})
	check(h.t, err)
	published, err := standby.Published(standby.PublishedAt(h.system, credential.Fingerprint(h.key.Public())),
		metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: h.namespace, UID: "x"}, issued)
	check(h.t, err)
	published.OwnerReferences = nil
	objects := h.kube.CoreV1().ConfigMaps(published.Namespace)
	if _, err = objects.Create(context.Background(), published, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		_, err = objects.Update(context.Background(), published, metav1.UpdateOptions{})
	}
	check(h.t, err)
}

// allowStandby gives the account of the standby the right to read what is published.
func (h *successor) allowStandby() {
	h.t.Helper()
	role, binding := standby.ReadingPublished(h.system)
	_, err := h.kube.RbacV1().Roles(role.Namespace).Create(context.Background(), role, metav1.CreateOptions{})
	check(h.t, err)
	_, err = h.kube.RbacV1().RoleBindings(role.Namespace).Create(context.Background(), binding, metav1.CreateOptions{})
	check(h.t, err)
}

// standbyToken makes the account of the standby and a token of it.
func (h *successor) standbyToken() string {
	h.t.Helper()
	_, err := h.kube.CoreV1().ServiceAccounts(h.system).Create(context.Background(), standby.ServiceAccount(h.system), metav1.CreateOptions{})
	check(h.t, err)
	_, err = h.kube.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: standby.PublishedAt(h.system, "").Namespace},
	}, metav1.CreateOptions{})
	check(h.t, err)
	return h.token(h.system, standby.Account, time.Hour)
}

// lostToken is a token that no API server accepts any more.
func (h *successor) lostToken() string {
	h.t.Helper()
	const account = "of-the-lost-hub"
	h.allow(h.workspace, account)
	token := h.token(h.workspace, account, time.Hour)
	check(h.t, h.kube.CoreV1().ServiceAccounts(h.workspace).Delete(context.Background(), account, metav1.DeleteOptions{}))
	return token
}

// TestOnlyTheSuccessorOfItsHubGetsAMemberCluster has the API server at the further address refuse
// the credential of a lost hub.
func TestOnlyTheSuccessorOfItsHubGetsAMemberCluster(t *testing.T) {
	config := startCluster(t)
	terms, others := hubTerms(t), hubTerms(t)
	hub := &successor{memberHub: newMemberHub(t, config, "succeeded")}
	hub.period, hub.system = 1, makeNamespace(t, hub.kube, "system-")
	hub.apply()
	hub.uid = hub.exchange()
	member := newKeyedMember(t, hub.memberHub)
	cluster, err := local.New(member.config, member.namespace)
	check(t, err)
	key, err := cluster.AgentKey(t.Context())
	check(t, err)
	hub.key = *key
	other, err := credential.NewAgentKey()
	check(t, err)

	lost := httptest.NewServer(http.NotFoundHandler())
	lost.Close()
	server := "https://" + lost.Listener.Addr().String()
	membership := member.membership(hub.memberHub, func(m *Membership) { m.Server = server })
	options := Options{}
	membership(&options)
	given, err := options.Membership.Validate()
	check(t, err)
	store := newMembership(given, cluster, HubKubeconfig{}, nil)
	check(t, store.storeCredential(t.Context(), hubclient.Credential{
		Server: server, CA: config.CAData, Token: hub.lostToken(), Sequence: 7, Cluster: hub.name, MemberNamespace: hub.namespace,
		Addresses: hubclient.Addresses{AfterSeconds: 1, Report: "of-the-lost-hub", List: []hubclient.Address{
			{Server: server, CA: config.CAData}, {Server: config.Host, CA: config.CAData, Token: hub.standbyToken()},
		}},
	}))
	check(t, cluster.StoreConfigMap(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: member.namespace, Name: naming.ObeyedTermConfigMap},
		Data:       map[string]string{term.ConfigMapKey: term.Encode(terms(2))},
	}))
	before := member.secret(naming.MemberAgentCredentialSecret)

	for _, c := range []struct {
		what   string
		change func()
		says   string
	}{
		{"no hub was restored", func() {}, "no hub with MemberClusters was restored there"},
		{"the hub has not published yet", hub.allowStandby, "issued no credential to the key of this cluster"},
		{"it is sealed to another key", func() { hub.publish(other) }, "credential 1 of account " + hub.uid},
		{"the hub has no term", func() { hub.publish(*key) }, "does not have the key"},
		{"the hub has another key", func() { hub.offers(others(9), "") }, "does not have the key"},
		{"the hub has a lower term", func() { hub.offers(terms(1), "") }, "this cluster obeys term 2"},
	} {
		c.change()
		agent := member.start(membership)
		agent.untilState(Unreachable, c.says)
		agent.stop()
		if diff := cmp.Diff(before.Data, member.secret(naming.MemberAgentCredentialSecret).Data); diff != "" {
			t.Errorf("%s: the credential has changed", c.what)
		}
		member.untilRemembered(agent, 2)
	}

	hub.offers(terms(3), "")
	for range 2 { // the second time, the agent has stored it
		agent := member.start(membership)
		agent.untilJoined()
		hub.untilUsed(agent, hub.uid, 1)
		member.untilRemembered(agent, 3)
		agent.stop()
	}
	stored := lostHub{}
	check(t, json.Unmarshal(member.secret(naming.MemberAgentCredentialSecret).Data[keyFormer], &stored))
	if stored.Server != server || stored.Token != string(before.Data[corev1.ServiceAccountTokenKey]) {
		t.Errorf("the agent cannot tell the lost hub of its successor: %s", stored.Server)
	}
}
