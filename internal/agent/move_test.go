package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/trust"
)

func TestDecideMove(t *testing.T) {
	ca, other := otherCA(t), otherCA(t)
	used := address{server: "https://old", ca: ca, mode: trust.SystemStore}
	registered, careless := (&registration{}).mode, (&membership{Membership: Membership{Insecure: true}}).mode
	member := (&membership{}).mode
	for _, c := range []struct {
		name    string
		used    address
		asked   *clusterv1beta1.HubAddress
		mode    func(used, asked trust.Mode, ca []byte) trust.Mode
		want    address
		problem string
	}{
		{"a hub that asks for nothing", used, nil, registered, used, ""},
		{"nor in any field", used, &clusterv1beta1.HubAddress{}, registered, used, ""},
		{"what is used already", used, &clusterv1beta1.HubAddress{APIServerURL: "https://old/", APIServerCA: string(ca), AgentTLSMode: "system-store"}, registered, used, ""},
		{"another URL keeps the CA", used, &clusterv1beta1.HubAddress{APIServerURL: "https://new"}, registered, address{"https://new", ca, trust.SystemStore}, ""},
		{"another CA keeps the URL", used, &clusterv1beta1.HubAddress{APIServerCA: string(other)}, registered, address{"https://old", other, trust.SystemStore}, ""},
		{"old and new CA in one bundle", used, &clusterv1beta1.HubAddress{APIServerCA: string(ca) + string(other)}, registered,
			address{"https://old", append(append([]byte{}, ca...), other...), trust.SystemStore}, ""},
		{"another mode", used, &clusterv1beta1.HubAddress{AgentTLSMode: "strict"}, registered, address{"https://old", ca, trust.Strict}, ""},
		{"a member that was given a CA trusts it alone, whatever the mode", address{"https://old", ca, trust.Strict},
			&clusterv1beta1.HubAddress{APIServerCA: string(other), AgentTLSMode: "system-store"}, member, address{"https://old", other, trust.Strict}, ""},
		{"and one that was given none does from its first CA on", address{"https://old", nil, trust.SystemStore},
			&clusterv1beta1.HubAddress{APIServerCA: string(other)}, member, address{"https://old", other, trust.Strict}, ""},
		{"a member that verifies nobody does so everywhere", address{"https://old", nil, trust.Insecure},
			&clusterv1beta1.HubAddress{APIServerURL: "https://new", AgentTLSMode: "strict"}, careless, address{"https://new", nil, trust.Insecure}, ""},
		{"no hub can ask an agent to verify nobody", used, &clusterv1beta1.HubAddress{AgentTLSMode: "insecure"}, registered, used, `agentTLSMode is "insecure"`},
		{"a URL without TLS is no address", used, &clusterv1beta1.HubAddress{APIServerURL: "http://new"}, registered, used, `apiServerURL "http://new": want https://`},
		{"a CA that is none is not trusted", used, &clusterv1beta1.HubAddress{APIServerCA: "hello"}, registered, used, "apiServerCA that is unusable"},
	} {
		got, err := decideMove(c.used, c.asked, c.mode)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(address{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.problem)
		}
	}
}

func TestWhatTheHubToldCountsUntilTheUserConfiguresSomethingElse(t *testing.T) {
	configured := identity.Credential{Server: "https://configured", CA: otherCA(t), Token: "t", MemberNamespace: "m", Cluster: "c"}
	learned := configured
	learned.Server, learned.CA, learned.Mode = "https://new", otherCA(t), trust.Strict
	with := func(key, value string) *corev1.ConfigMap {
		kept := learnedAddress("ns", learned, configured)
		if key != "" {
			kept.Data[key] = value
		}
		return kept
	}
	changed := func(change func(*identity.Credential)) identity.Credential {
		c := configured
		change(&c)
		return c
	}
	for _, row := range []struct {
		name       string
		kept       *corev1.ConfigMap
		configured identity.Credential
		counts     bool
	}{
		{"after a restart", with("", ""), configured, true},
		{"also with another token", with("", ""), changed(func(c *identity.Credential) { c.Token = "another" }), true},
		{"before the hub told anything", nil, configured, false},
		{"with another URL configured", with("", ""), changed(func(c *identity.Credential) { c.Server = "https://other" }), false},
		{"with another CA configured", with("", ""), changed(func(c *identity.Credential) { c.CA = nil }), false},
		{"with a damaged URL", with(keyServer, "http://new"), configured, false},
		{"with a damaged CA", with(keyCA, "hello"), configured, false},
	} {
		got, counts := recall(row.kept, row.configured)
		if counts != row.counts {
			t.Errorf("%s: counts %t", row.name, counts)
		}
		want := learned
		want.Token = row.configured.Token
		if diff := cmp.Diff(want, got); counts && diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
}

func TestNoKeptModeMakesAnAgentVerifyNobody(t *testing.T) {
	door := &membership{}
	if got := door.trust(seen{}, identity.Credential{Mode: trust.Insecure}).Mode; got != trust.SystemStore {
		t.Errorf("an agent of a MemberCluster has mode %s", got)
	}
	kept, err := identity.Credential{Server: "https://hub", Token: "t", MemberNamespace: "m", Workspace: "w", Cluster: "c", Mode: trust.Insecure}.Secret("ns")
	check(t, err)
	read, err := identity.FromSecret(kept)
	check(t, err)
	if got := (&registration{}).trust(seen{}, read).Mode; got == trust.Insecure {
		t.Error("an agent of a Cluster verifies nobody")
	}
}

func TestModeOfTheHubCountsUntilThatOfTheChartChanges(t *testing.T) {
	door := &registration{}
	read := identity.Credential{Mode: trust.Strict, ChartMode: trust.SystemStore}
	var s seen
	for chart, want := range map[trust.Mode]trust.Mode{trust.SystemStore: trust.Strict, "other": "other"} {
		s.config.Mode = chart
		if got := door.trust(s, read).Mode; got != want {
			t.Errorf("with %s in the chart: %s, want %s", chart, got, want)
		}
	}
}
