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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/backup"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// restoredHub is a hub on another cluster, restored from a backup of f. The old hub has stopped,
// and its API server still answers.
func (f fixture) restoredHub(name string, withoutKey bool, prepare func(restored fixture)) (fixture, backup.Restored) {
	f.t.Helper()
	f.hub.Kill()
	if withoutKey {
		f.check(f.Delete(context.Background(), f.identitySecret()))
	}
	key, err := age.GenerateX25519Identity()
	f.check(err)
	var file bytes.Buffer
	_, err = backup.Take(context.Background(), f.cluster.Config, backup.Options{Recipients: []age.Recipient{key.Recipient()}}, &file)
	f.check(err)
	f.t.Cleanup(f.forgetIdentity)
	target := turnApart(f.t, name)
	target.InstallHub(f.t)
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil }
	restored, err := backup.Restore(context.Background(), target.Config, open, backup.RestoreOptions{Identities: []age.Identity{key}})
	if err != nil {
		f.t.Fatalf("%v: %v", err, restored.Failed)
	}
	onto := fixture{t: f.t}.on(target)
	onto.workspace = f.workspace
	prepare(onto)
	hub := newProcess(f.t, target, "", "--leader-elect=false")
	hub.workspace = f.workspace
	return hub, restored
}

// forgetIdentity gives the control plane a new hub, which cleans up after the test.
func (f fixture) forgetIdentity() {
	f.hub.Kill()
	f.check(client.IgnoreNotFound(f.Delete(context.Background(), f.identitySecret())))
	f.hub.Start()
}

func (f fixture) identitySecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubIdentitySecret}}
}

// identity reads the identity of the hub, and the UID of its cluster.
func (f fixture) identity() (term.Identity, string, error) {
	var secret corev1.Secret
	var system corev1.Namespace
	f.check(f.get(&system, "", metav1.NamespaceSystem))
	if err := f.get(&secret, naming.SystemNamespace, naming.HubIdentitySecret); err != nil {
		return term.Identity{}, "", err
	}
	i, err := term.FromSecret(&secret)
	return i, string(system.UID), err
}

// untilFenced waits until the hub stands still because of another term.
func (f fixture) untilFenced(number int64) {
	f.t.Helper()
	f.eventually("the hub is fenced", func() error {
		i, cluster, err := f.identity()
		if err != nil || i.FencedBy == nil || i.FencedBy.Term != number || i.Stopped(cluster) == "" {
			return fmt.Errorf("it has term %d, fenced by %+v, %w", i.Term, i.FencedBy, err)
		}
		if !strings.Contains(f.hub.Log(), "The hub stands still") {
			return errors.New("it does not say so")
		}
		return nil
	})
}

// obeyed is the term that the agent in a namespace obeys; 0 if it knows none.
func obeyed(c client.Client, namespace string) (int64, error) {
	var found corev1.ConfigMap
	err := c.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: naming.ObeyedTermConfigMap}, &found)
	if err != nil {
		return 0, err
	}
	t, err := term.Decode(found.Data[term.ConfigMapKey])
	if err != nil {
		return 0, err
	}
	return t.Term, nil
}

// TestAnOldHubThatComesBackIsFencedAndChangesNothing restores a hub while the API server of the old
// one still answers, and starts the old hub again. Members of both kinds have deliveries, and the
// leave policy Delete. It takes more than a minute, because it waits longer than a removal needs.
func TestAnOldHubThatComesBackIsFencedAndChangesNothing(t *testing.T) {
	f := newRestorable(t, "{}")
	ctx := context.Background()
	e := f.elsewhere("fenced")
	m := e.asMemberCluster("returns")
	e.release()
	shop, later := e.placed(), e.placedOn(m)
	e.annotate("Delete")
	f.eventually("the agent may know the leave policy", func() error {
		var report clusterv1beta1.InternalMemberCluster
		if err := f.get(&report, naming.MemberNamespace(e.workspace, e.name), e.name); err != nil {
			return err
		}
		if report.Spec.LeavePolicy != "Delete" || report.Spec.HubTerm == nil || report.Spec.HubTerm.Term != 1 {
			return fmt.Errorf("it is %q, and the term is %+v", report.Spec.LeavePolicy, report.Spec.HubTerm)
		}
		return nil
	})
	before := e.footprint(shop, later)
	deleted := e.on.deletions(e.target, shop, later)

	hub, restored := f.restoredHub("fencing", false, func(fixture) {})
	if restored.Term != 2 {
		t.Errorf("the restored hub has term %d", restored.Term)
	}
	e.comesBackTo(hub)
	m.stop()
	m.given(hub, e.on)
	m.start()
	hub.untilReady(e.name, "Ready")
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	for _, namespace := range []string{e.agent.agentNamespace, m.options.Namespace} {
		if number, err := obeyed(e.on, namespace); err != nil || number != 2 {
			t.Errorf("the agent in %s obeys term %d, %v", namespace, number, err)
		}
	}

	f.hub.Start()
	f.untilFenced(2)
	began := time.Now()
	f.check(f.Delete(ctx, e.record()))
	f.check(f.Delete(ctx, &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: e.workspace, Name: "app"}}))
	m.stop()
	m.given(f, e.on) // its administrator leads it back to the old hub
	stop := m.run()
	f.eventually("the agent of the MemberCluster refuses the old hub", func() error {
		if state, reason, _ := m.running.Status(); state != agent.Fenced || !strings.Contains(reason, "this cluster obeys term 2") {
			return fmt.Errorf("it is %s: %s", state, reason)
		}
		return nil
	})
	stop()
	f.restartHub()
	f.eventually("the old hub stands still after a restart", func() error {
		if count := strings.Count(f.hub.Log(), "The hub stands still"); count < 2 {
			return fmt.Errorf("it has said so %d times", count)
		}
		return nil
	})
	time.Sleep(20*time.Second - time.Since(began)) // longer than a removal waits for its second confirmation
	if after := e.footprint(shop, later); after != before {
		t.Errorf("the cluster has\n%s\nand had\n%s", after, before)
	}
	if gone := deleted(); len(gone) > 0 {
		t.Errorf("deleted on the member: %v", gone)
	}
	var still fleet.Cluster
	if f.check(f.get(&still, e.workspace, e.name)); len(still.Finalizers) == 0 {
		t.Error("the fenced hub has finished the deletion of a Cluster")
	}
	m.given(hub, e.on)
	m.start()
	hub.untilReady(e.name, "Ready")
	if stopped := strings.Contains(hub.hub.Log(), "The hub stands still"); stopped {
		t.Error("the restored hub stands still")
	}
}

// placedOn places a namespace on a MemberCluster, and returns its name.
func (e *elsewhere) placedOn(m *besides) string {
	e.t.Helper()
	later := e.neighbour().shop()
	crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp-" + m.name}}
	crp.Spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: later}}
	crp.Spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickFixed, ClusterNames: []string{m.name}}
	e.check(e.Create(context.Background(), crp))
	e.t.Cleanup(func() { e.dispose(crp) })
	e.eventually("the MemberCluster has what is placed", func() error { return e.on.get(&corev1.ConfigMap{}, later, "settings") })
	return later
}

// importedByBoth imports a cluster, restores the hub, and lets the restored hub import it too.
func (i importing) importedByBoth(name string, withoutKey bool) (restored fixture) {
	i.t.Helper()
	i.begin(func(c *fleet.Cluster) { c.Spec.HeartbeatPeriodSeconds = new(int32(1)) })
	i.imported("my-cluster", "Imported")
	stop := i.runAgent()
	i.untilReady("my-cluster", "Ready")
	restored, _ = i.restoredHub(name, withoutKey, func(onto fixture) {
		var secret corev1.Secret
		i.check(onto.get(&secret, i.workspace, "my-cluster-kubeconfig"))
		onto.change(&secret, func() {
			secret.Data["apiServerURL"], secret.Data["apiServerCA"] = []byte(onto.cluster.Config.Host), onto.cluster.Config.CAData
		})
	})
	there := i
	there.fixture = restored
	there.imported("my-cluster", "Imported")
	stop()
	i.runAgent()
	restored.untilReady("my-cluster", "Ready")
	return restored
}

// credentialVersion returns the version of the credential of an imported agent.
func (i importing) credentialVersion() string {
	i.t.Helper()
	var secret corev1.Secret
	i.check(i.remoteGet(&secret, naming.AgentSecret))
	return secret.ResourceVersion
}

// TestAnOldHubIsFencedByTheClustersThatItImports has an administrator of the old hub ask for
// another installation of the agent.
func TestAnOldHubIsFencedByTheClustersThatItImports(t *testing.T) {
	i := newRestorable(t, "").importing(nil)
	restored := i.importedByBoth("imports-fenced", false)
	if number, err := obeyed(i.remote, i.agentNamespace); err != nil || number != 2 {
		t.Errorf("the agent obeys term %d, %v", number, err)
	}
	before := i.credentialVersion()
	var cluster fleet.Cluster
	i.check(i.get(&cluster, i.workspace, "my-cluster"))
	i.change(&cluster, func() { cluster.Spec.RedeployAgentGeneration = 7 })
	i.hub.Start()
	i.untilFenced(2)
	if now := i.credentialVersion(); now != before {
		t.Error("the old hub has changed the credential of the agent")
	}
	i.restartHub()
	restored.untilReady("my-cluster", "Ready")
}

// TestAnOldHubWithAnotherKeyLeavesAnImportedClusterAlone restores a hub from a backup without its
// key, so the old hub sees no higher term. The agent works for another account.
func TestAnOldHubWithAnotherKeyLeavesAnImportedClusterAlone(t *testing.T) {
	i := newRestorable(t, "").importing(nil)
	restored := i.importedByBoth("imports-other", true)
	before := i.credentialVersion()
	i.hub.Start()
	i.untilReady("my-cluster", "AgentLost")
	other := i.down.Kubeconfig(t, testkube.Start(t, "downstream").Account(t, "importer-two", "cluster-admin"))
	var secret corev1.Secret
	i.check(i.get(&secret, i.workspace, "my-cluster-kubeconfig"))
	i.change(&secret, func() { secret.Data["value"] = other })
	i.imported("my-cluster", "AgentOfOtherHub")
	if now := i.credentialVersion(); now != before {
		t.Error("the old hub has changed the credential of the agent")
	}
	restored.untilReady("my-cluster", "Ready")
}

// TestNoMemberCanFenceItsHub has a member report a higher term of its hub, which it cannot sign,
// and try to write what the hub writes.
func TestNoMemberCanFenceItsHub(t *testing.T) {
	f := newFixture(t)
	m := f.joined("fencer")
	ctx := context.Background()
	report := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: m.name}}
	f.eventually("the member knows the term of the hub", func() error {
		if err := m.agent.Get(ctx, client.ObjectKeyFromObject(report), report); err != nil || report.Spec.HubTerm == nil {
			return fmt.Errorf("the term is %+v, %w", report.Spec.HubTerm, err)
		}
		return nil
	})
	own := report.Spec.HubTerm
	claims := func(change func(*clusterv1beta1.HubTerm)) {
		t.Helper()
		claimed := own.DeepCopy()
		change(claimed)
		text, err := json.Marshal(map[string]any{"status": map[string]any{"hubTerm": claimed}})
		f.check(err)
		f.check(m.agent.Status().Patch(ctx, report.DeepCopy(), client.RawPatch("application/merge-patch+json", text)))
	}
	for name, change := range map[string]func(*clusterv1beta1.HubTerm){
		"a higher number":             func(c *clusterv1beta1.HubTerm) { c.Term = 99 },
		"another cluster":             func(c *clusterv1beta1.HubTerm) { c.Cluster = "another" },
		"its own key":                 func(c *clusterv1beta1.HubTerm) { *c = *signedByAnother(t) },
		"the key of the hub, no more": func(c *clusterv1beta1.HubTerm) { c.Term, c.Signature = 99, []byte("x") },
		"what the hub has signed":     func(*clusterv1beta1.HubTerm) {},
	} {
		claims(change)
		p := f.place("after-"+strings.ReplaceAll(strings.ReplaceAll(name, ",", ""), " ", "-"), nil) // the hub works
		t.Logf("%s: the hub has prepared %s", name, p.namespace)
	}
	i, cluster, err := f.identity()
	if err != nil || i.FencedBy != nil || i.Stopped(cluster) != "" {
		t.Errorf("the hub is fenced by %+v, %v", i.FencedBy, err)
	}
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")

	raised := report.DeepCopy()
	raised.Spec.HubTerm.Term = 99
	f.refused("a member writes the term of the hub", m.agent.Update(ctx, raised))
	_, values := f.token("holder", "")
	for who, as := range map[string]client.Client{
		"a member": m.agent, "the holder of a token": f.as(values["token"]), "a tenant": f.tenant(),
	} {
		f.refused(who+" reads the key of the hub", as.Get(ctx, client.ObjectKeyFromObject(f.identitySecret()), f.identitySecret()))
		f.refused(who+" deletes the key of the hub", as.Delete(ctx, f.identitySecret()))
		f.refused(who+" writes a key of the hub", as.Create(ctx, f.identitySecret()))
	}
}

// signedByAnother returns a term of another hub.
func signedByAnother(t *testing.T) *clusterv1beta1.HubTerm {
	t.Helper()
	other, err := term.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	other.Term = 99
	return other.On("another")
}

// TestACarelessAdministratorLosesNoTermOfARunningHub deletes the identity of a running hub, damages
// it, and demotes and promotes the hub.
func TestACarelessAdministratorLosesNoTermOfARunningHub(t *testing.T) {
	f := newAlone(t, "")
	t.Cleanup(f.forgetIdentity)
	m := f.joined("demoted")
	first, _, err := f.identity()
	f.check(err)
	reported := func(number int64) {
		t.Helper()
		f.eventually(fmt.Sprint("the report has term ", number), func() error {
			var report clusterv1beta1.InternalMemberCluster
			if err := f.get(&report, m.namespaceName(), m.name); err != nil {
				return err
			}
			if got := report.Spec.HubTerm; got == nil || got.Term != number || term.Verify(got) != nil {
				return fmt.Errorf("it is %+v", got)
			}
			return nil
		})
	}
	reported(1)
	f.check(f.Delete(context.Background(), f.identitySecret()))
	f.eventually("the hub has written its identity again", func() error {
		again, _, err := f.identity()
		if err == nil && !again.SameKey(first) {
			err = errors.New("it has another key")
		}
		return err
	})
	write := func(edit func(*term.Identity), damage string) {
		t.Helper()
		secret := f.identitySecret()
		f.check(f.get(secret, secret.Namespace, secret.Name))
		i, err := term.FromSecret(secret)
		f.check(err)
		f.change(secret, func() {
			edit(&i)
			i.Fill(secret)
			if damage != "" {
				secret.Data["key"] = []byte(damage)
			}
		})
	}
	write(func(i *term.Identity) { i.Demoted = true }, "")
	f.eventually("the hub stands still", func() error {
		if !strings.Contains(f.hub.Log(), "The hub stands still") {
			return errors.New("it does not say so")
		}
		return nil
	})
	f.check(f.Create(context.Background(), &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "b"},
		Spec: fleet.ClusterSpec{ClientID: "b"}}))
	time.Sleep(3 * time.Second)
	var ignored fleet.Cluster
	if f.check(f.get(&ignored, f.workspace, "b")); len(ignored.Finalizers) > 0 || ignored.Status.Namespace != "" {
		t.Errorf("the demoted hub has prepared a Cluster: %+v", ignored)
	}
	write(func(i *term.Identity) { *i = i.Promote(0) }, "")
	f.eventually("the promoted hub prepares the Cluster", func() error {
		if err := f.get(&ignored, f.workspace, "b"); err != nil {
			return err
		}
		if ignored.Status.Namespace == "" {
			return fmt.Errorf("its status is %+v", ignored.Status)
		}
		return nil
	})
	reported(2)
	f.eventually("the hub has stored that it works with the term", func() error {
		i, _, err := f.identity()
		if err == nil && i.InForce != 2 {
			err = fmt.Errorf("term %d is in force", i.InForce)
		}
		return err
	})
	write(func(*term.Identity) {}, "damaged")
	f.eventually("the hub keeps its identity", func() error {
		if !strings.Contains(f.hub.Log(), "The identity in force stays") {
			return errors.New("it does not say so")
		}
		return nil
	})
	f.place("c", nil)
}
