package hub_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	muster "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/naming"
)

// approve annotates a request as an admin does.
func (f fixture) approve(r *fleet.ClusterRegistration) {
	f.t.Helper()
	f.check(f.decide(f, r, "true"))
}

// keyOf is the key of the agent with a client ID, the same each time.
func (f fixture) keyOf(clientID string) credential.AgentKey {
	f.t.Helper()
	seed := sha256.Sum256([]byte(f.workspace + "/" + clientID))
	key, err := credential.ParseAgentKey(seed[:])
	f.check(err)
	return key
}

// signed is what an agent with a key asks.
func (f fixture) signed(by credential.AgentKey, values map[string]string, clientID string,
	answer credential.AnswerKey) fleet.ClusterRegistrationSpec {
	return fleet.ClusterRegistrationSpec{
		ClientID: clientID, ClientRandom: "r4nd0m", AnswerKey: answer.Public(), AgentKey: by.Public(),
		Signature: by.Sign(credential.Claim{
			Workspace: f.workspace, ClientID: clientID, Nonce: "r4nd0m", Token: values["tokenName"], AnswerKey: answer.Public(),
		}),
	}
}

// keySecret is the Secret with the key of a real agent.
func (f fixture) keySecret(namespace string) *corev1.Secret {
	f.t.Helper()
	secret := &corev1.Secret{}
	f.check(f.get(secret, namespace, naming.AgentKeySecret))
	return secret
}

// TestAHolderThatIsAliveIsNotDisplaced plays the holder of a token who knows the client ID
// of a Cluster, natively and as an agent of Rancher Fleet, and who has seen the public half
// of the holder's key.
func TestAHolderThatIsAliveIsNotDisplaced(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	holder := f.join(values, map[string]any{"clientID": "web"})
	cluster := f.untilReady(naming.Cluster("web"), "Ready")
	seed := f.keySecret(holder.agentNamespace).Data["key"]
	own, err := credential.ParseAgentKey(seed)
	f.check(err)
	if pinned := cluster.Annotations[fleet.AnnotationAgentKey]; pinned != credential.Fingerprint(own.Public()) {
		t.Errorf("the Cluster has key %q pinned", pinned)
	}

	stolen := answerKey(t)
	forged := f.mustAsk(values, fleet.ClusterRegistrationSpec{
		ClientID: "web", AnswerKey: stolen.Public(), AgentKey: own.Public(), Signature: make([]byte, 64),
	})
	f.untilState(&forged, fleet.RegistrationDenied, "InvalidSignature")
	thief := f.mustAsk(values, f.signed(f.keyOf("thief"), values, "web", stolen))
	f.untilState(&thief, fleet.RegistrationPending, "HolderAlive")
	f.eventually("an event says so to the owner of the Cluster", func() error { return f.event("HolderAlive", cluster.Name, thief.Name) })
	legacy := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "web", ClientRandom: "r4nd0m"})
	f.untilState(&legacy, fleet.RegistrationPending, "HolderAlive")
	if is := f.untilReady(naming.Cluster("web"), "Ready"); is.Status.Namespace != cluster.Status.Namespace {
		t.Errorf("the Cluster is in namespace %s", is.Status.Namespace)
	}

	f.approve(&legacy)
	f.untilState(&legacy, fleet.RegistrationGranted, "Granted")
	f.eventually("nothing is pinned any more", func() error {
		if err := f.get(&cluster, f.workspace, cluster.Name); err != nil {
			return err
		}
		if pinned := cluster.Annotations[fleet.AnnotationAgentKey]; pinned != "" {
			return fmt.Errorf("key %s is", pinned)
		}
		return nil
	})
}

// TestAClusterWhoseIdentityIsGoneIsStillItsAgents plays thieves who wait until a Cluster has no
// account. The account is missing while an agent registers anew and the hub replaces it, or after a
// user deletes it.
func TestAClusterWhoseIdentityIsGoneIsStillItsAgents(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	holder := f.join(values, map[string]any{"clientID": "web"})
	cluster := f.untilReady(naming.Cluster("web"), "Ready")
	denied := f.mustAsk(values, f.signed(f.keyOf("denied"), values, "web", answerKey(t)))
	f.untilState(&denied, fleet.RegistrationPending, "HolderAlive")
	f.check(f.decide(f, &denied, "false"))
	f.untilState(&denied, fleet.RegistrationDenied, "NotApproved")
	thief := f.mustAsk(values, f.signed(f.keyOf("thief"), values, "web", answerKey(t)))
	f.untilState(&thief, fleet.RegistrationPending, "HolderAlive")
	legacy := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "web", ClientRandom: "r4nd0m"})
	f.untilState(&legacy, fleet.RegistrationPending, "HolderAlive")

	holder.stop()
	f.check(f.Delete(context.Background(), membernamespace.OfCluster(&cluster).Account()))
	f.untilReady(cluster.Name, "IdentityMissing")
	f.untilState(&thief, fleet.RegistrationPending, "HolderLost")
	f.untilState(&legacy, fleet.RegistrationPending, "HolderLost")
	holder.bootstrap(values)
	holder.start()
	is := f.untilReady(cluster.Name, "Ready")
	if own := cluster.Annotations[fleet.AnnotationAgentKey]; is.Annotations[fleet.AnnotationAgentKey] != own {
		t.Errorf("the key of the Cluster is %s, and was %s", is.Annotations[fleet.AnnotationAgentKey], own)
	}
	f.untilState(&thief, fleet.RegistrationPending, "HolderAlive")
	f.untilState(&legacy, fleet.RegistrationPending, "HolderAlive")
	f.untilState(&denied, fleet.RegistrationDenied, "NotApproved")
}

// TestAnAgentThatLostItsCredentialIsKnownByItsKey deletes what an agent has but its key, and
// gives it a token again.
func TestAnAgentThatLostItsCredentialIsKnownByItsKey(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, values := f.token("new-token", "")
	a := f.join(values, map[string]any{"clientID": "web"})
	before := f.untilReady(naming.Cluster("web"), "Ready")
	a.stop()
	f.check(f.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.agentNamespace, Name: naming.AgentSecret}}))
	a.bootstrap(values)
	a.start()
	f.eventually("it has a credential again", func() error { return f.get(&corev1.Secret{}, a.agentNamespace, naming.AgentSecret) })
	f.eventually("it beats", func() error {
		is := f.untilReady(naming.Cluster("web"), "Ready")
		if is.UID != before.UID || !is.Status.Agent.LastSeen.After(time.Now().Add(-time.Minute)) {
			return fmt.Errorf("it is %+v", is.Status.Agent)
		}
		return nil
	})

	// Without its key it is another agent.
	a.stop()
	f.check(f.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.agentNamespace, Name: naming.AgentSecret}}))
	f.check(f.Delete(ctx, f.keySecret(a.agentNamespace)))
	a.bootstrap(values)
	a.start()
	var waits fleet.ClusterRegistration
	f.eventually("its request waits", func() error {
		var list fleet.ClusterRegistrationList
		if err := f.List(ctx, &list, client.InNamespace(f.workspace)); err != nil {
			return err
		}
		for _, r := range list.Items {
			if r.Status.State == fleet.RegistrationPending && strings.HasPrefix(r.Status.Reason, "Holder") {
				waits = r
				return nil
			}
		}
		return fmt.Errorf("there are %d requests", len(list.Items))
	})
	f.approve(&waits)
	f.untilState(&waits, fleet.RegistrationGranted, "Granted")
	if err := f.get(&corev1.Secret{}, a.agentNamespace, naming.AgentKeySecret); apierrors.IsNotFound(err) {
		t.Error("it has no key")
	}
}

func TestATokenForAClusterDisplacesItsAgent(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	f.join(values, map[string]any{"clientID": "web"})
	cluster := f.untilReady(naming.Cluster("web"), "Ready")
	bound := f.stampingToken("for-web", fleet.ClusterRegistrationTokenSpec{ClusterName: cluster.Name})
	r := f.granted(bound, "web", nil)
	displaced := f.auditedAs(&r, muster.AuditDisplaced)
	if displaced.Token != "for-web" || displaced.Object.UID != cluster.UID || displaced.Displaced == nil ||
		displaced.Who == "" || displaced.Who != r.Annotations[fleet.AnnotationRequester] {
		t.Errorf("the audit has %+v", displaced)
	}
}

// TestARequestForAnotherHubRegistersNothing plays an attacker between an agent and another hub. The
// attacker forwards the agent's signed request for the other hub to this hub.
func TestARequestForAnotherHubRegistersNothing(t *testing.T) {
	f := newAlone(t, "")
	ca, err := credential.ParseCA(string(f.cluster.Config.CAData))
	f.check(err)
	settings, err := json.Marshal(map[string]string{"apiServerCA": string(ca)})
	f.check(err)
	f.configure(string(settings))
	_, values := f.token("new-token", "")
	f.eventually("the hub tells its CA", func() error {
		if values = f.values("new-token"); values["apiServerCA"] == "" {
			return errors.New("it does not")
		}
		return nil
	})
	own, other := credential.CADigests(ca), []string{strings.Repeat("0f", 32)}
	ask := func(clientID string, signedFor, sent []string) fleet.ClusterRegistration {
		key, answer := f.keyOf(clientID), answerKey(t)
		spec := f.signed(key, values, clientID, answer)
		spec.HubCAs = sent
		spec.Signature = key.Sign(credential.Claim{
			Workspace: f.workspace, ClientID: clientID, Nonce: spec.ClientRandom, Token: values["tokenName"],
			AnswerKey: answer.Public(), HubCAs: signedFor,
		})
		return f.mustAsk(values, spec)
	}
	r := ask("relayed", other, other)
	f.untilState(&r, fleet.RegistrationDenied, "OtherHub")
	for _, says := range []string{other[0][:12] + "...", own[0][:12] + "...", "values.yaml of a token of this hub"} {
		if !strings.Contains(r.Status.Message, says) {
			t.Errorf("%q is missing in %q", says, r.Status.Message)
		}
	}
	for name, sent := range map[string][]string{"rewritten": own, "stripped": nil} {
		r = ask(name, other, sent)
		f.untilState(&r, fleet.RegistrationDenied, "InvalidSignature")
	}
	if n := len(f.clusters()); n != 0 {
		t.Errorf("there are %d Clusters", n)
	}
	for name, sent := range map[string][]string{"direct": own, "by-a-proxy": nil} {
		r = ask(name, sent, sent)
		f.untilState(&r, fleet.RegistrationGranted, "Granted")
	}
	f.join(values, map[string]any{"clientID": "strict", "agentTLSMode": "strict"})
	f.untilReady(naming.Cluster("strict"), "Ready")
}
