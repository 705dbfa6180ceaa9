package hub_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
)

// shortestBudget is the silence after which no member is lost yet.
const shortestBudget = 30 * time.Second

func TestMembersOfBothDoorsMoveToAnotherAddressAndNoneIsLost(t *testing.T) {
	f := newAlone(t, "{}")
	settings := f.configured()
	before, after := f.newFront(nil), f.newFront(nil)
	_, values := f.token("new-token", "")
	members := []*traveller{f.byRegistration(values, "a"), f.byRegistration(values, "b"), f.byMembership()}
	for _, m := range members {
		t.Cleanup(func() { m.stop() })
		m.watch()
	}
	all := func(reason string, parts ...string) {
		t.Helper()
		for _, m := range members {
			m.until(reason, parts...)
		}
	}
	f.moveTo(settings, before.url, before.ca, "strict")
	all("InUse", before.url)

	both := before.ca + after.ca
	f.moveTo(settings, before.url, both, "strict")
	all("InUse", before.url, credential.CAHash([]byte(both))[:12])
	f.moveTo(settings, after.url, both, "strict")
	all("InUse", after.url)
	f.eventually("the values of the token lead to the new address, with both CAs", func() error {
		if values := f.values("new-token"); values["apiServerURL"] != after.url || values["apiServerCA"] != both {
			return fmt.Errorf("they lead to %s", values["apiServerURL"])
		}
		return nil
	})
	before.close()
	f.moveTo(settings, after.url, after.ca, "strict")
	all("InUse", after.url, credential.CAHash([]byte(after.ca))[:12])
	f.show(members, after)
	arrived := time.Now()
	for _, m := range members {
		m.eventually(m.name+" beats on", func() error {
			if last := m.lastBeat(); !last.After(arrived) {
				return fmt.Errorf("its last beat was at %s", last)
			}
			return nil
		})
		if silence := m.longestSilence(); silence > shortestBudget/2 {
			t.Errorf("%s was silent for %s", m.name, silence)
		}
		m.stop()
		m.start()
		if got := m.uses().APIServerURL; got != after.url {
			t.Errorf("after a restart %s uses %s", m.name, got)
		}
	}
	var requests fleet.ClusterRegistrationList
	f.check(f.List(context.Background(), &requests, client.InNamespace(f.workspace)))
	if len(requests.Items) != 2 {
		t.Errorf("there are %d registrations of two clusters", len(requests.Items))
	}
}

// show checks what members and Clusters say of where they are.
func (f fixture) show(members []*traveller, at front) {
	f.t.Helper()
	want := clusterv1beta1.HubInUse{APIServerURL: at.url, APIServerCAHash: credential.CAHash([]byte(at.ca)), AgentTLSMode: "strict"}
	for _, m := range members {
		if got := m.uses(); got != want {
			f.t.Errorf("%s uses %+v, want %+v", m.name, got, want)
		}
	}
	for _, c := range f.clusters() {
		got := clusterv1beta1.HubInUse{
			APIServerURL: c.Status.APIServerURL, APIServerCAHash: c.Status.APIServerCAHash, AgentTLSMode: c.Status.AgentTLSMode,
		}
		if got != want {
			f.t.Errorf("%s shows %+v, want %+v", c.Name, got, want)
		}
	}
}

var anyUID = regexp.MustCompile(`"uid":"[^"]*"`)

func TestAddressThatIsNotTheHubsIsReportedAndTheOldOneKept(t *testing.T) {
	f := newAlone(t, "{}")
	settings := f.configured()
	good, bad := f.newFront(nil), f.newFront(nil)
	_, values := f.token("new-token", "")
	members := []*traveller{f.byRegistration(values, "a"), f.byMembership()}
	// another is a hub that knows the credential and whose report is a different one.
	another := f.newFront(func(body []byte) []byte { return anyUID.ReplaceAll(body, []byte(`"uid":"another"`)) })
	f.moveTo(settings, good.url, good.ca, "strict")
	for _, m := range members {
		t.Cleanup(func() { m.stop() })
		m.until("InUse", good.url)
		m.watch()
	}
	dead := f.newFront(nil)
	dead.close()
	for _, c := range []struct {
		name, url, ca string
		says          string
	}{
		{"nobody answers", dead.url, dead.ca, "cannot be reached"},
		{"the CA is another's", bad.url, good.ca, "cannot be trusted: it showed the certificate CN=hub"},
		{"the CA of the address in use is a mistake", good.url, bad.ca, "cannot be trusted"},
		{"another hub answers", another.url, another.ca, "another hub answers at " + another.url},
	} {
		f.moveTo(settings, c.url, c.ca, "strict")
		for _, m := range members {
			m.until("AddressUnreachable", "from "+good.url+" to "+c.url, c.says, "the agent stays with "+good.url)
		}
	}
	for _, m := range members {
		m.stop()
		m.start()
		if used := m.uses(); used.APIServerURL != good.url || used.APIServerCAHash != credential.CAHash([]byte(good.ca)) {
			t.Errorf("after a restart %s uses %+v", m.name, used)
		}
	}
	f.moveTo(settings, good.url, good.ca, "strict")
	for _, m := range members {
		m.until("InUse", good.url)
	}
	f.moveTo(settings, bad.url, bad.ca, "strict")
	for _, m := range members {
		m.until("InUse", bad.url)
		if silence := m.longestSilence(); silence > shortestBudget/2 {
			t.Errorf("%s was silent for %s", m.name, silence)
		}
	}
}

func TestMemberFallsBackToTheConfiguredAddress(t *testing.T) {
	f := newAlone(t, "{}")
	settings := f.configured()
	desired := f.newFront(nil)
	m := f.byMembership()
	t.Cleanup(func() { m.stop() })
	f.moveTo(settings, desired.url, desired.ca, "strict")
	m.until("InUse", desired.url)
	m.stop()
	desired.close()
	m.start()
	m.until("AddressUnreachable", "from "+f.cluster.Config.Host+" to "+desired.url)

	// What the user configures anew counts again.
	next := f.newFront(nil)
	f.moveTo(settings, "", f.ca(), "")
	m.until("InUse", f.cluster.Config.Host)
	m.stop()
	m.options.Membership.Server, m.options.Membership.CA = next.url, next.ca
	f.moveTo(settings, "", "", "")
	m.start()
	f.eventually("the configured address is in use", func() error {
		if used := m.uses(); used.APIServerURL != next.url {
			return fmt.Errorf("%s is", used.APIServerURL)
		}
		return nil
	})
}
