package hub_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// stored is the Secret with the credential of an agent.
func (m *member) stored() *corev1.Secret {
	m.t.Helper()
	var secret corev1.Secret
	m.check(m.get(&secret, m.agentNamespace, naming.AgentSecret))
	return &secret
}

// TestTheHubRenewsACredentialAndNoticesACopyOfTheOlderOne waits for a renewal of a credential that
// lives as short as Kubernetes allows.
func TestTheHubRenewsACredentialAndNoticesACopyOfTheOlderOne(t *testing.T) {
	f := newAlone(t, `{"importLoopback":true,"agentTokenLifetime":"10m"}`)
	_, values := f.token("new-token", "")
	m := f.install(values, map[string]any{"clientID": "renewed"})
	m.start()
	name := naming.Cluster("renewed")
	f.untilReady(name, "Ready")
	copied := m.stored()
	bearer, namespace := m.credential()
	f.refused("an agent whose credential the hub renews requests a token", issue(f.as(bearer), namespace, naming.MemberServiceAccount))

	var cluster fleet.Cluster
	f.eventually("another credential is in use", func() error {
		if err := f.get(&cluster, f.workspace, name); err != nil {
			return err
		}
		if c := cluster.Status.Credential; c == nil || c.Sequence != 1 || c.Kind != "native" || c.Expires.IsZero() ||
			c.Key != cluster.Annotations[fleet.AnnotationAgentKey][:12] {
			return fmt.Errorf("the status says %+v", c)
		}
		return nil
	})
	renewed := m.stored()
	if string(renewed.Data["sequence"]) != "1" || bytes.Equal(renewed.Data["token"], copied.Data["token"]) {
		t.Errorf("the agent has stored credential %q", renewed.Data["sequence"])
	}
	f.eventually("the sealed token is withdrawn", func() error {
		var report clusterv1beta1.InternalMemberCluster
		if err := f.get(&report, namespace, name); err != nil {
			return err
		}
		if c := report.Spec.Credential; c == nil || c.Sequence != 1 || len(c.Sealed) > 0 {
			return fmt.Errorf("the report has %+v", c)
		}
		return nil
	})

	m.stop()
	before := renewed.DeepCopy()
	before.Data = copied.Data
	f.check(f.Update(context.Background(), before))
	m.start()
	f.eventually("the copy is noticed", func() error { return f.cloned(name, true) })
	f.eventually("the agent says so", func() error {
		if _, reason, _ := m.agent.Status(); !bytes.Contains([]byte(reason), []byte("restored from a backup")) {
			return fmt.Errorf("it says %q", reason)
		}
		return nil
	})
	f.check(f.get(&cluster, f.workspace, name))
	accepted := cluster.DeepCopy()
	accepted.Annotations[fleet.AnnotationAcceptCredential] = strconv.FormatInt(*cluster.Status.Credential.Superseded, 10)
	f.check(f.Patch(context.Background(), accepted, client.MergeFrom(&cluster)))
	f.eventually("an admin has decided", func() error { return f.cloned(name, false) })
	f.untilReady(name, "Ready")
}

// cloned returns an error if a Cluster has the condition Cloned but should not, or the reverse.
func (f fixture) cloned(name string, want bool) error {
	var cluster fleet.Cluster
	if err := f.get(&cluster, f.workspace, name); err != nil {
		return err
	}
	if found := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionCloned); (found != nil) != want {
		return fmt.Errorf("condition %+v, credential %+v", found, cluster.Status.Credential)
	}
	return nil
}

// TestAnAgentWithoutAKeyRenewsItsCredentialItself is how agents of earlier versions live with this
// hub, until they report a key.
func TestAnAgentWithoutAKeyRenewsItsCredentialItself(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	opener := answerKey(t)
	request := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "older", AnswerKey: opener.Public()})
	f.untilState(&request, fleet.RegistrationGranted, "Granted")
	namespace := naming.MemberNamespace(f.workspace, naming.Cluster("older"))
	answer, err := opener.Open(string(request.UID), request.Status.Answer)
	f.check(err)
	own := f.as(answer.Token)
	f.eventually("it requests a token", func() error { return issue(own, namespace, naming.MemberServiceAccount) })

	var report clusterv1beta1.InternalMemberCluster
	f.check(f.get(&report, namespace, naming.Cluster("older")))
	key := f.keyOf("older")
	patch := fmt.Appendf(nil, `{"status":{"agentVersion":"v1","agentKey":%q}}`, base64.StdEncoding.EncodeToString(key.Public()))
	f.check(own.Status().Patch(context.Background(), &report, client.RawPatch("application/merge-patch+json", patch)))
	f.eventually("the right ends", func() error {
		if issue(own, namespace, naming.MemberServiceAccount) == nil {
			return fmt.Errorf("it still requests tokens")
		}
		return nil
	})
}

// expire puts a token into the Secret of an agent that says of itself that it has run out, and
// that the hub refuses.
func (m *member) expire() {
	m.t.Helper()
	secret := m.stored()
	claims := credential.ClaimsOf(string(secret.Data["token"]))
	payload := fmt.Sprintf(`{"sub":%q,"iat":1,"exp":601,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, claims.Subject, claims.AccountUID)
	secret.Data["token"] = []byte("e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln")
	m.check(m.Update(context.Background(), secret))
}

// reconnectToken is what the hub has given an agent for the case that its credential runs out.
func (m *member) reconnectToken() string {
	m.t.Helper()
	token := string(m.stored().Data["reconnectToken"])
	if token == "" {
		m.t.Fatal("the agent has no token to come back with")
	}
	return token
}

func TestAnAgentWhoseCredentialHasRunOutComesBackByItsKey(t *testing.T) {
	f := newFixture(t)
	values := f.stampingToken("stamping", fleet.ClusterRegistrationTokenSpec{Labels: map[string]string{"stamped.muster/env": "prod"}})
	m := f.join(values, map[string]any{"clientID": "away"})
	cluster := f.untilReady(naming.Cluster("away"), "Ready")
	namespace := naming.MemberNamespace(f.workspace, cluster.Name)
	before := kube.CoreMetadata("ServiceAccount")
	f.check(f.get(before, namespace, naming.MemberServiceAccount))
	f.check(f.Delete(context.Background(), &fleet.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "stamping"},
	}))

	m.stop()
	m.expire()
	m.start()
	f.eventually("the agent has another identity", func() error {
		account := kube.CoreMetadata("ServiceAccount")
		if err := f.get(account, namespace, naming.MemberServiceAccount); err != nil || account.UID == before.UID {
			return fmt.Errorf("%v, or it is the one before", err)
		}
		return nil
	})
	f.eventually("the agent sends heartbeats again", func() error {
		if state, reason, joined := m.agent.Status(); !joined {
			return fmt.Errorf("%s: %s", state, reason)
		}
		return nil
	})
	after := f.untilReady(cluster.Name, "Ready")
	if len(f.clusters()) != 1 || after.UID != cluster.UID || after.Labels["stamped.muster/env"] != cluster.Labels["stamped.muster/env"] {
		t.Errorf("there are %d Clusters, and its labels are %v, which were %v", len(f.clusters()), after.Labels, cluster.Labels)
	}

	// The record says no.
	closed := after.DeepCopy()
	closed.Spec.Reconnect = new(false)
	f.check(f.Patch(context.Background(), closed, client.MergeFrom(&after)))
	m.stop()
	m.expire()
	m.start()
	f.eventually("the agent says that it may not come back", func() error {
		if _, reason, _ := m.agent.Status(); !strings.Contains(reason, "spec.reconnect") {
			return fmt.Errorf("it says %q", reason)
		}
		return nil
	})
	// And then it does not object any more.
	f.check(f.get(closed, f.workspace, cluster.Name))
	open := closed.DeepCopy()
	open.Spec.Reconnect = nil
	f.check(f.Patch(context.Background(), open, client.MergeFrom(closed)))
	f.untilReady(cluster.Name, "Ready")
}

// TestATokenToComeBackWithIsWorthNothingWithoutTheKey is what a member can do with the token that
// all members of its workspace have.
func TestATokenToComeBackWithIsWorthNothingWithoutTheKey(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "thief"})
	victim := f.join(values, map[string]any{"clientID": "victim"})
	f.untilReady(naming.Cluster("thief"), "Ready")
	f.untilReady(naming.Cluster("victim"), "Ready")
	account := kube.CoreMetadata("ServiceAccount")
	f.check(f.get(account, naming.MemberNamespace(f.workspace, naming.Cluster("victim")), naming.MemberServiceAccount))
	asking := map[string]string{"token": m.reconnectToken()}
	own := f.keyOf("thief")

	for name, spec := range map[string]fleet.ClusterRegistrationSpec{
		"a new cluster without a key":         {ClientID: "new", AnswerKey: answerKey(t).Public()},
		"a new cluster with a key":            f.signed(f.keyOf("new"), asking, "new", answerKey(t)),
		"the victim with another key":         f.signed(own, asking, "victim", answerKey(t)),
		"the victim without a key":            {ClientID: "victim", AnswerKey: answerKey(t).Public()},
		"the victim as an agent of before":    {ClientID: "victim", ClientRandom: "r4nd0m"},
		"a new cluster as an agent of before": {ClientID: "new", ClientRandom: "r4nd0m"},
	} {
		r := f.mustAsk(asking, spec)
		f.eventually(name+" is denied", func() error {
			if err := f.get(&r, f.workspace, r.Name); err != nil || r.Status.State != fleet.RegistrationDenied || r.Status.Reason == "Superseded" {
				return fmt.Errorf("%v, it is %+v", err, r.Status)
			}
			return nil
		})
		f.check(f.Delete(context.Background(), &r))
	}
	named := map[string]string{"token": asking["token"], "tokenName": "new-token"}
	if _, err := f.ask(named, fleet.ClusterRegistrationSpec{ClientID: "new", ClientRandom: "r"}); err == nil ||
		!strings.Contains(err.Error(), "not the one that asks") {
		t.Errorf("it names a token of the workspace: %v", err)
	}
	thief := f.as(asking["token"])
	f.refused("it lists requests", thief.List(context.Background(), &fleet.ClusterRegistrationList{}, client.InNamespace(f.workspace)))
	f.refused("it lists Clusters", thief.List(context.Background(), &fleet.ClusterList{}, client.InNamespace(f.workspace)))
	after := kube.CoreMetadata("ServiceAccount")
	f.check(f.get(after, account.Namespace, account.Name))
	if after.UID != account.UID || len(f.clusters()) != 2 {
		t.Errorf("the victim's account is replaced: %t; there are %d Clusters", after.UID != account.UID, len(f.clusters()))
	}
	if _, _, joined := victim.agent.Status(); !joined {
		t.Error("the victim is not joined any more")
	}
}

// TestAnIdentityThatAnAdminDeletedDoesNotComeBackByItself deletes the account. The membership ends
// until a user gives the cluster a token.
func TestAnIdentityThatAnAdminDeletedDoesNotComeBackByItself(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "deleted"})
	f.untilReady(naming.Cluster("deleted"), "Ready")
	m.stop()
	m.expire()
	f.check(f.Delete(context.Background(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: naming.MemberNamespace(f.workspace, naming.Cluster("deleted")), Name: naming.MemberServiceAccount,
	}}))
	m.start()
	f.eventually("the agent says that it needs a token", func() error {
		if _, reason, _ := m.agent.Status(); !strings.Contains(reason, "give the cluster a registration token") {
			return fmt.Errorf("it says %q", reason)
		}
		return nil
	})
	f.untilReady(naming.Cluster("deleted"), "IdentityMissing")
}
