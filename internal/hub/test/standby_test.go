package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/backup"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// standbyToken makes the account of a standby, and a token of it, as muster hub standby-token does.
func (f fixture) standbyToken() string {
	f.t.Helper()
	account := standby.ServiceAccount(naming.SystemNamespace)
	f.check(f.Create(context.Background(), account))
	token, err := kube.RequestToken(context.Background(), f.SubResource("token"), account, standby.Life)
	f.check(err)
	return token
}

// putStandbyToken writes the Secret with the token of a standby.
func (f fixture) putStandbyToken(token string) *corev1.Secret {
	f.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: standby.Secret,
		Labels: map[string]string{fleet.LabelManaged: "true"}}, StringData: map[string]string{standby.Key: token}}
	f.check(f.Create(context.Background(), secret))
	f.t.Cleanup(func() { _ = f.Delete(context.Background(), secret) }) // the control plane may be gone
	return secret
}

// withStandby are the settings of a hub with a first address and a standby.
func withStandby(first, standbyAt front) string {
	text, err := json.Marshal(map[string]any{"apiServerURL": first.url, "apiServerCA": first.ca, "agentTLSMode": "strict",
		"apiServerFallbackAfter": "10s", "apiServerFallbacks": []any{map[string]any{
			"apiServerURL": standbyAt.url, "apiServerCA": standbyAt.ca, "tokenSecret": map[string]any{"name": standby.Secret}}}})
	if err != nil {
		panic(err) // plain data
	}
	return string(text)
}

// hubConfigured waits until HubConfigured of the Cluster has a reason and a text.
func (e *elsewhere) hubConfigured(reason, text string) {
	e.t.Helper()
	e.eventually(e.name+" says "+text, func() error {
		cluster := e.record()
		if err := e.get(cluster, e.workspace, e.name); err != nil {
			return err
		}
		found := kube.FindCondition(cluster.Status.Conditions, clusterv1beta1.ConditionHubConfigured)
		if found == nil || found.Reason != reason || !strings.Contains(found.Message, text) {
			return fmt.Errorf("it says %+v", found)
		}
		return nil
	})
}

// storedToken is nil once all agents have stored a token for a further address.
func (e *elsewhere) storedToken(token string, members ...*besides) error {
	secrets := map[string]string{e.agent.agentNamespace: naming.AgentSecret}
	for _, m := range members {
		secrets[m.options.Namespace] = naming.MemberAgentCredentialSecret
	}
	for namespace, name := range secrets {
		var secret corev1.Secret
		if err := e.on.get(&secret, namespace, name); err != nil {
			return err
		}
		if !strings.Contains(string(secret.Data["hubAddresses"]), token) {
			return fmt.Errorf("the Secret %s of the agent has no token of the standby", name)
		}
	}
	return nil
}

// published names the ConfigMap with the credential for the agent of a lost hub.
func (b *besides) published() types.NamespacedName {
	b.t.Helper()
	return standby.PublishedAt(naming.SystemNamespace, b.record().Annotations[fleet.AnnotationAgentKey])
}

// untilReturned waits until the agent of a lost hub is at this hub, which then publishes nothing
// for it.
func (b *besides) untilReturned() {
	b.t.Helper()
	b.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	b.until("CredentialExchanged", metav1.ConditionTrue, "Exchanged")
	at := b.published()
	b.eventually("nothing is published for the agent", func() error {
		mc := b.record()
		if _, awaited := mc.Annotations[fleet.AnnotationRestoredKey]; awaited {
			return errors.New("the MemberCluster has the restored key")
		}
		return gone(b.get(&corev1.ConfigMap{}, at.Namespace, at.Name))
	})
}

// stolen has a thief use the token of a standby while the agent of a MemberCluster is awaited. The
// thief reads only a sealed text.
func (b *besides) stolen(token string) {
	b.t.Helper()
	ctx, thief, at, published := context.Background(), b.as(token), b.published(), &corev1.ConfigMap{}
	b.eventually("a credential is published", func() error { return b.get(published, at.Namespace, at.Name) })
	b.check(thief.Get(ctx, at, published))
	issued, err := standby.ReadPublished(published)
	b.check(err)
	other, err := credential.NewAgentKey()
	b.check(err)
	if _, err = other.OpenTokens(credential.Renewal{AccountUID: issued.AccountUID, Sequence: issued.Sequence}, issued.Sealed); err == nil {
		b.t.Error("another key opens the credential")
	}
	report := &clusterv1beta1.InternalMemberCluster{}
	for what, err := range map[string]error{
		"lists what is published":    thief.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(at.Namespace)),
		"reads Secrets beside it":    thief.Get(ctx, client.ObjectKey{Namespace: at.Namespace, Name: "x"}, &corev1.Secret{}),
		"reads the settings":         thief.Get(ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: naming.HubConfigMap}, published),
		"deletes what is published":  thief.Delete(ctx, published),
		"replaces what is published": thief.Update(ctx, published),
		"reads the report":           thief.Get(ctx, client.ObjectKey{Namespace: b.namespaceName(), Name: b.name}, report),
		"reads the MemberCluster":    thief.Get(ctx, client.ObjectKey{Name: b.name}, &clusterv1beta1.MemberCluster{}),
		"issues a token of it":       issue(thief, b.namespaceName(), naming.MemberServiceAccount),
	} {
		b.refused("the thief "+what, err)
	}
}

// stolen has a thief use the token of a standby without the key of a member.
func (e *elsewhere) stolen(hub fixture, token string) {
	e.t.Helper()
	ctx, thief := context.Background(), hub.as(token)
	for what, err := range map[string]error{
		"reads a Secret":             thief.Get(ctx, client.ObjectKey{Namespace: e.workspace, Name: "new-token"}, &corev1.Secret{}),
		"lists Secrets":              thief.List(ctx, &corev1.SecretList{}, client.InNamespace(e.workspace)),
		"reads a Cluster":            thief.Get(ctx, client.ObjectKeyFromObject(e.record()), e.record()),
		"lists requests":             thief.List(ctx, &fleet.ClusterRegistrationList{}, client.InNamespace(e.workspace)),
		"creates a Cluster":          thief.Create(ctx, e.record()),
		"binds a Role":               thief.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: e.workspace, Name: "x"}}),
		"requests in another":        thief.Create(ctx, e.request(naming.SystemNamespace, "thief", "standby")),
		"issues a token of the hub":  issue(thief, naming.SystemNamespace, naming.HubServiceAccount),
		"issues a token of the lost": issue(thief, naming.SystemNamespace, standby.Account),
	} {
		hub.refused("the thief "+what, err)
	}
	err := thief.Create(ctx, e.request(e.workspace, "thief", "new-token"))
	if err == nil || !strings.Contains(err.Error(), "is not the one that asks") {
		e.t.Errorf("the thief names another token: %v", err)
	}
	for name, clientID := range map[string]string{"takes a Cluster over": "standby", "makes a Cluster": "thief"} {
		request := e.request(e.workspace, clientID, "")
		hub.check(thief.Create(ctx, request))
		hub.eventually("a thief who "+name+" is denied", func() error {
			if err := hub.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
				return err
			}
			if request.Status.State != fleet.RegistrationDenied || len(request.Status.Answer) > 0 {
				return fmt.Errorf("the status is %+v", request.Status)
			}
			return nil
		})
	}
}

// request is a request with a key that no member has.
func (e *elsewhere) request(namespace, clientID, token string) *fleet.ClusterRegistration {
	e.t.Helper()
	key, err := credential.NewAgentKey()
	e.check(err)
	answer, err := credential.NewAnswerKey()
	e.check(err)
	r := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "stolen-"},
		Spec: fleet.ClusterRegistrationSpec{ClientID: clientID, ClientRandom: credential.TimedNonce("x", time.Now()),
			AnswerKey: answer.Public(), AgentKey: key.Public()}}
	if token != "" {
		r.Labels = map[string]string{fleet.LabelRegistrationToken: token}
	}
	r.Spec.Signature = key.Sign(credential.Claim{Workspace: namespace, ClientID: clientID, Nonce: r.Spec.ClientRandom, Token: token,
		AnswerKey: r.Spec.AnswerKey})
	return r
}

// TestMembersGoToAHubThatWasRestoredOnAStandby loses a hub with its cluster. It restores the hub
// on another cluster, with other keys for tokens. The agents of a Cluster and of two MemberClusters
// go there by themselves. One of these runs, and the other one starts after the restore. The test
// takes minutes, because it starts three control planes and waits longer than a removal.
func TestMembersGoToAHubThatWasRestoredOnAStandby(t *testing.T) {
	f := newRestorable(t, "{}")
	ctx := context.Background()
	e := f.elsewhere("standby")
	first := f.newFront(nil)
	atFirst := func(given *agent.Membership) { given.Server, given.CA = first.url, first.ca }
	m, off := e.asMemberCluster("runs", atFirst), e.asMemberCluster("off", atFirst)
	e.release()
	shop := e.placedOn(m)
	e.annotate("Delete")
	t.Cleanup(f.forgetIdentity)
	before, deleted := e.uidOf(e.workspace), e.on.deletions(e.target, shop)

	target := turnApart(t, "standby")
	target.InstallHub(t)
	onto := fixture{t: t}.on(target)
	onto.workspace = e.workspace
	token := onto.standbyToken()
	at := front{url: target.Config.Host, ca: string(target.Config.CAData)}
	settings := withStandby(first, at)
	f.configure(settings)
	e.hubConfigured("InUse", "the hub has no Secret "+standby.Secret)
	f.putStandbyToken(token)
	e.eventually("all agents have stored the token of the standby", func() error { return e.storedToken(token, m, off) })
	off.stop()
	var report clusterv1beta1.InternalMemberCluster
	f.check(f.get(&report, naming.MemberNamespace(e.workspace, e.name), e.name))
	if text, err := json.Marshal(report); err != nil || bytes.Contains(text, []byte(token)) {
		t.Errorf("the report has the token, or %v", err)
	}
	there := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: standby.Secret}}
	tenant := f.tenant()
	f.refused("a tenant reads the token", tenant.Get(ctx, client.ObjectKeyFromObject(there), there))
	f.refused("a tenant deletes the token", tenant.Delete(ctx, there))
	f.refused("a tenant reads the report", tenant.Get(ctx, client.ObjectKeyFromObject(&report), &report))

	key, err := age.GenerateX25519Identity()
	f.check(err)
	var file bytes.Buffer
	_, err = backup.Take(ctx, f.cluster.Config, backup.Options{Recipients: []age.Recipient{key.Recipient()}}, &file)
	f.check(err)
	f.hub.Kill()
	first.close()
	lost := time.Now()
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil }
	restored, err := backup.Restore(ctx, target.Config, open, backup.RestoreOptions{Identities: []age.Identity{key}})
	if err != nil {
		t.Fatalf("%v: %v", err, restored.Failed)
	}
	hub := newProcess(t, target, settings, "--leader-elect=false")
	hub.workspace = e.workspace
	over := *e
	over.fixture = hub
	hub.untilReady(e.name, "Ready")
	t.Logf("the Cluster is at the restored hub %s after the loss, with a wait of 10 to 15 s", time.Since(lost).Round(time.Second))
	over.hubConfigured("FallbackInUse", at.url)
	m.registered.fixture, off.registered.fixture = hub, hub
	m.untilReturned()
	t.Logf("the MemberCluster is there %s after the loss", time.Since(lost).Round(time.Second))
	off.stolen(token)
	off.start()
	off.untilReturned()
	over.bundle("new", "defaultNamespace: "+e.target+strings.ReplaceAll(configMap, "WORKSPACE", "new")+everywhere)
	over.until("the restored hub delivers", func() error { return e.on.get(&corev1.ConfigMap{}, e.target, "new") })
	over.stolen(hub, token)

	hub.resume("crp-"+m.name, shop)

	e.agent.stop() // the agents of MemberClusters show the term of the successor, too
	f.hub.Start()
	first.open()
	back := time.Now()
	f.untilFenced(2)
	t.Logf("the lost hub stands still %s after it was back", time.Since(back).Round(time.Second))
	f.check(f.Delete(ctx, e.record()))
	e.agent.start()
	m.stop()
	m.start()
	time.Sleep(20 * time.Second) // longer than a removal waits for its second confirmation
	over.hubConfigured("FallbackInUse", at.url)
	if after := e.uidOf(e.workspace); after != before {
		t.Errorf("the release has the UID %s, and had %s", after, before)
	}
	if gone := deleted(); len(gone) > 0 {
		t.Errorf("deleted on the member: %v", gone)
	}
	for _, namespace := range []string{e.agent.agentNamespace, m.options.Namespace, off.options.Namespace} {
		if number, err := obeyed(e.on, namespace); err != nil || number != 2 {
			t.Errorf("the agent in %s obeys term %d, %v", namespace, number, err)
		}
	}
	var clusters fleet.ClusterList
	if hub.check(hub.List(ctx, &clusters, client.InNamespace(e.workspace))); len(clusters.Items) != 1 {
		t.Errorf("the workspace has %d Clusters", len(clusters.Items))
	}
}
