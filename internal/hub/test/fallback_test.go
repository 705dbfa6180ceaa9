package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// addresses are the settings of a hub with a first address and its fallbacks, and the shortest
// wait.
func addresses(first front, fallbacks ...front) string {
	further := make([]map[string]string, 0, len(fallbacks))
	for _, at := range fallbacks {
		further = append(further, map[string]string{"apiServerURL": at.url, "apiServerCA": at.ca})
	}
	text, err := json.Marshal(map[string]any{"apiServerURL": first.url, "apiServerCA": first.ca, "agentTLSMode": "strict",
		"apiServerFallbacks": further, "apiServerFallbackAfter": "10s"})
	if err != nil {
		panic(err) // plain data
	}
	return string(text)
}

var anyTerm = regexp.MustCompile(`"hubTerm":\{[^}]*\}`)

// TestMembersUseTheNextAddressOfTheirHub closes the first address of a hub, under agents of both
// kinds that start and that run. Three fallbacks before the right one lead to nothing, to another
// hub, and to a hub without the key. It takes minutes, because an agent tries the first address
// again after five waits.
func TestMembersUseTheNextAddressOfTheirHub(t *testing.T) {
	f := newAlone(t, "{}")
	first, dead, good := f.newFront(nil), f.newFront(nil), f.newFront(nil)
	another := f.newFront(func(body []byte) []byte { return anyUID.ReplaceAll(body, []byte(`"uid":"another"`)) })
	keyless := f.newFront(func(body []byte) []byte { return anyTerm.ReplaceAll(body, []byte(`"hubTerm":null`)) })
	_, values := f.token("new-token", "")
	members := []*traveller{f.byRegistration(values, "a"), f.byMembershipAt(dead.url, dead.ca)}
	all := func(reason string, parts ...string) {
		t.Helper()
		for _, m := range members {
			m.until(reason, parts...)
		}
	}
	for _, m := range members {
		t.Cleanup(func() { m.stop() })
	}
	f.configure(addresses(first, dead, another, keyless, good))
	all("InUse", first.url)
	for _, m := range members {
		m.eventually(m.name+" has stored the addresses", m.hasStored)
		m.stop()
	}
	lost := time.Now()
	dead.close()
	first.close()
	for _, m := range members {
		m.start()
	}
	all("FallbackInUse", good.url, "fallback 4 of 4; it returns once "+first.url+" answers", "cannot move")
	t.Logf("members that started were at the fallback %s after the loss", time.Since(lost).Round(time.Second))
	for _, m := range members {
		m.stop()
		m.start()
		if used := m.uses().APIServerURL; used != good.url {
			t.Errorf("after a restart %s uses %s", m.name, used)
		}
	}
	back := time.Now()
	first.open()
	all("InUse", first.url)
	t.Logf("members were at the first address %s after it was back", time.Since(back).Round(time.Second))
	for _, m := range members {
		m.watch()
	}
	lost = time.Now()
	first.close()
	all("FallbackInUse", good.url)
	t.Logf("members that ran were at the fallback %s after the loss", time.Since(lost).Round(time.Second))
	for _, m := range members {
		if silence := m.longestSilence(); silence > shortestBudget {
			t.Errorf("%s was silent for %s", m.name, silence)
		}
	}
	var requests fleet.ClusterRegistrationList
	f.check(f.List(context.Background(), &requests, client.InNamespace(f.workspace)))
	if len(requests.Items) != 1 {
		t.Errorf("there are %d registrations of one cluster", len(requests.Items))
	}
}

// hasStored is nil once the addresses of the hub are stored with the credential.
func (t *traveller) hasStored() error {
	for _, name := range []string{naming.AgentSecret, naming.MemberAgentCredentialSecret} {
		var secret corev1.Secret
		if err := t.get(&secret, t.options.Namespace, name); err == nil && len(secret.Data["hubAddresses"]) > 0 {
			return nil
		}
	}
	return fmt.Errorf("no Secret of its namespace has hubAddresses")
}

// TestMembersGoToAHubThatWasRestoredElsewhere loses a hub whose etcd was restored on another
// control plane, at another address, and promoted. Members of both kinds go over by themselves.
// Then the old hub comes back. It takes minutes, because the agents look at the old address after
// five waits only.
func TestMembersGoToAHubThatWasRestoredElsewhere(t *testing.T) {
	f := newRestorable(t, "{}")
	e := f.elsewhere("goes-over")
	m := e.asMemberCluster("returns")
	e.release()
	shop, later := e.placed(), e.placedOn(m)
	e.annotate("Delete")
	t.Cleanup(f.forgetIdentity)
	e.until("the credential of the MemberCluster is the hub's", func() error {
		return e.on.get(&corev1.Secret{}, m.options.Namespace, naming.MemberAgentCredentialSecret)
	})
	before := e.footprint(shop, later)
	deleted := e.on.deletions(e.target, shop, later)

	target := testkube.Restore(t, f.cluster.Name(), turnApart(t, "goes-over").Name())
	elsewhere := front{url: target.Config.Host, ca: string(target.Config.CAData)}
	first := f.newFront(nil)
	settings := addresses(first, elsewhere)
	f.configure(settings)
	e.until("both agents use the address that is lost later", func() error { return e.at(first.url, m) })
	e.until("both have stored the other address", func() error { return e.bothHaveStored(elsewhere.url, m) })

	f.hub.Kill()
	first.close()
	lost := time.Now()
	onto := fixture{t: t}.on(target)
	onto.promote()
	hub := newProcess(t, target, settings, "--leader-elect=false")
	hub.workspace = e.workspace
	over := *e
	over.fixture = hub
	over.until("both agents use the other hub", func() error { return over.at(elsewhere.url, m) })
	t.Logf("both members are at the restored hub %s after the loss, with a wait of 10 to 15 s", time.Since(lost).Round(time.Second))
	hub.untilReady(e.name, "Ready")
	over.bundle("new", "defaultNamespace: "+e.target+strings.ReplaceAll(configMap, "WORKSPACE", "new")+everywhere)
	over.until("the restored hub delivers", func() error { return e.on.get(&corev1.ConfigMap{}, e.target, "new") })
	var requests fleet.ClusterRegistrationList
	if hub.check(hub.List(context.Background(), &requests, client.InNamespace(e.workspace))); len(requests.Items) != 1 {
		t.Errorf("there are %d registrations of one cluster", len(requests.Items))
	}

	f.hub.Start()
	first.open()
	back := time.Now()
	f.untilFenced(2)
	t.Logf("the old hub stands still %s after it was back", time.Since(back).Round(time.Second))
	f.check(f.Delete(context.Background(), e.record()))
	e.agent.stop()
	e.agent.start()
	m.stop()
	m.start()
	time.Sleep(20 * time.Second) // longer than a removal waits for its second confirmation
	hub.check(over.at(elsewhere.url, m))
	if after := e.footprint(shop, later); after != before {
		t.Errorf("the cluster has\n%s\nand had\n%s", after, before)
	}
	if gone := deleted(); len(gone) > 0 {
		t.Errorf("deleted on the member: %v", gone)
	}
	for _, namespace := range []string{e.agent.agentNamespace, m.options.Namespace} {
		if number, err := obeyed(e.on, namespace); err != nil || number != 2 {
			t.Errorf("the agent in %s obeys term %d, %v", namespace, number, err)
		}
	}
}

// until is eventually with the fixture of the hub.
func (e *elsewhere) until(what string, done func() error) {
	e.t.Helper()
	e.eventually(what, done)
}

// promote is muster hub promote for a hub that has not started yet.
func (f fixture) promote() {
	f.t.Helper()
	var secret corev1.Secret
	f.check(f.get(&secret, naming.SystemNamespace, naming.HubIdentitySecret))
	i, err := term.FromSecret(&secret)
	f.check(err)
	f.change(&secret, func() { secret.Data = i.Promote(0).Secret(naming.SystemNamespace).Data })
}

// bothHaveStored is nil once both agents have stored an address of the hub.
func (e *elsewhere) bothHaveStored(url string, m *besides) error {
	for namespace, name := range map[string]string{
		e.agent.agentNamespace: naming.AgentSecret, m.options.Namespace: naming.MemberAgentCredentialSecret,
	} {
		var secret corev1.Secret
		e.check(e.on.get(&secret, namespace, name))
		if !strings.Contains(string(secret.Data["hubAddresses"]), url) {
			return fmt.Errorf("secret %s has %s", name, secret.Data["hubAddresses"])
		}
	}
	return nil
}

// TestOnlyTheSettingsOfTheHubNameItsAddresses has others try to give a member an address.
func TestOnlyTheSettingsOfTheHubNameItsAddresses(t *testing.T) {
	f := newFixture(t)
	m := f.joined("addressed")
	ctx := context.Background()
	report := &clusterv1beta1.InternalMemberCluster{}
	f.check(f.get(report, m.namespaceName(), m.name))
	_, values := f.token("holder", "")
	for who, as := range map[string]client.Client{
		"the member": m.agent, "the holder of a token": f.as(values["token"]), "a tenant": f.tenant(),
	} {
		changed := report.DeepCopy()
		changed.Spec.Hub = &clusterv1beta1.HubAddress{APIServerURL: "https://one",
			Fallbacks: []clusterv1beta1.HubFallback{{APIServerURL: "https://evil"}}}
		f.refused(who+" writes the request of the hub", as.Update(ctx, changed))
		f.refused(who+" patches it", as.Patch(ctx, report.DeepCopy(),
			client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hub":{"fallbacks":[{"apiServerURL":"https://evil"}]}}}`))))
		settings := &corev1.ConfigMap{}
		settings.Namespace, settings.Name = naming.SystemNamespace, naming.HubConfigMap
		settings.Data = map[string]string{"config": `{"apiServerURL":"https://one","apiServerFallbacks":[{"apiServerURL":"https://evil"}]}`}
		f.refused(who+" writes the settings of the hub", as.Update(ctx, settings))
	}
	status := report.DeepCopy()
	status.Spec.Hub = &clusterv1beta1.HubAddress{APIServerURL: "https://one"}
	f.check(m.agent.Status().Update(ctx, status))
	var after clusterv1beta1.InternalMemberCluster
	if f.check(f.get(&after, m.namespaceName(), m.name)); after.Spec.Hub != nil {
		t.Errorf("the report requests %+v", after.Spec.Hub)
	}
}
