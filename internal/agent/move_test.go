package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hubclient"
)

func TestDecideMove(t *testing.T) {
	ca, other := otherCA(t), otherCA(t)
	used := address{server: "https://old", ca: ca, mode: hubclient.TLSSystemStore}
	registered, careless := (&registration{}).tlsMode, (&membership{Membership: Membership{Insecure: true}}).tlsMode
	member := (&membership{}).tlsMode
	for _, c := range []struct {
		name    string
		used    address
		asked   *clusterv1beta1.HubAddress
		mode    func(asked hubclient.TLSMode, ca []byte) hubclient.TLSMode
		want    address
		problem string
	}{
		{"a hub that asks for nothing", used, nil, registered, used, ""},
		{"nor in any field", used, &clusterv1beta1.HubAddress{}, registered, used, ""},
		{
			"what is used already", used,
			&clusterv1beta1.HubAddress{APIServerURL: "https://old/", APIServerCA: string(ca), AgentTLSMode: "system-store"}, registered, used, "",
		},
		{
			"another URL keeps the CA", used, &clusterv1beta1.HubAddress{APIServerURL: "https://new"}, registered,
			address{"https://new", ca, hubclient.TLSSystemStore}, "",
		},
		{
			"another CA keeps the URL", used, &clusterv1beta1.HubAddress{APIServerCA: string(other)}, registered,
			address{"https://old", other, hubclient.TLSSystemStore}, "",
		},
		{"old and new CA in one bundle", used, &clusterv1beta1.HubAddress{APIServerCA: string(ca) + string(other)}, registered,
			address{"https://old", append(append([]byte{}, ca...), other...), hubclient.TLSSystemStore}, ""},
		{
			"another mode", used, &clusterv1beta1.HubAddress{AgentTLSMode: "strict"}, registered,
			address{"https://old", ca, hubclient.TLSStrict}, "",
		},
		{"a member that was given a CA trusts it alone, whatever the mode", address{"https://old", ca, hubclient.TLSStrict},
			&clusterv1beta1.HubAddress{APIServerCA: string(other), AgentTLSMode: "system-store"}, member,
			address{"https://old", other, hubclient.TLSStrict}, ""},
		{"and one that was given none does from its first CA on", address{"https://old", nil, hubclient.TLSSystemStore},
			&clusterv1beta1.HubAddress{APIServerCA: string(other)}, member, address{"https://old", other, hubclient.TLSStrict}, ""},
		{"a member that verifies nobody does so everywhere", address{"https://old", nil, hubclient.TLSInsecure},
			&clusterv1beta1.HubAddress{APIServerURL: "https://new", AgentTLSMode: "strict"}, careless,
			address{"https://new", nil, hubclient.TLSInsecure}, ""},
		{
			"no hub can ask an agent to verify nobody", used, &clusterv1beta1.HubAddress{AgentTLSMode: "insecure"}, registered, used,
			`agentTLSMode is "insecure"`,
		},
		{
			"a URL without TLS is no address", used, &clusterv1beta1.HubAddress{APIServerURL: "http://new"}, registered, used,
			`apiServerURL "http://new": want https://`,
		},
		{
			"a CA that is none is not trusted", used, &clusterv1beta1.HubAddress{APIServerCA: "hello"}, registered, used,
			"unusable apiServerCA",
		},
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

func TestAnAdoptedAddressCountsUntilTheUserConfiguresSomethingElse(t *testing.T) {
	configured := hubclient.Credential{Server: "https://configured", CA: otherCA(t), Token: "t", MemberNamespace: "m", Cluster: "c"}
	adopted := configured
	adopted.Server, adopted.CA, adopted.Mode = "https://new", otherCA(t), hubclient.TLSStrict
	with := func(key, value string) *corev1.ConfigMap {
		kept := addressConfigMap("ns", adopted, configured)
		if key != "" {
			kept.Data[key] = value
		}
		return kept
	}
	changed := func(change func(*hubclient.Credential)) hubclient.Credential {
		c := configured
		change(&c)
		return c
	}
	for _, row := range []struct {
		name       string
		kept       *corev1.ConfigMap
		configured hubclient.Credential
		counts     bool
	}{
		{"after a restart", with("", ""), configured, true},
		{"also with another token", with("", ""), changed(func(c *hubclient.Credential) { c.Token = "another" }), true},
		{"before the hub asked for anything", nil, configured, false},
		{"with another URL configured", with("", ""), changed(func(c *hubclient.Credential) { c.Server = "https://other" }), false},
		{"with another CA configured", with("", ""), changed(func(c *hubclient.Credential) { c.CA = nil }), false},
		{"with a damaged URL", with(keyServer, "http://new"), configured, false},
		{"with a damaged CA", with(keyCA, "hello"), configured, false},
	} {
		got, counts := adoptedAddress(row.kept, row.configured)
		if counts != row.counts {
			t.Errorf("%s: counts %t", row.name, counts)
		}
		want := adopted
		want.Token = row.configured.Token
		if diff := cmp.Diff(want, got); counts && diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
}

func TestNoKeptModeMakesAnAgentVerifyNobody(t *testing.T) {
	mode := &membership{}
	if got := mode.trust(observation{}, hubclient.Credential{Mode: hubclient.TLSInsecure}).Mode; got != hubclient.TLSSystemStore {
		t.Errorf("an agent of a MemberCluster has mode %s", got)
	}
	kept, err := hubclient.Credential{Server: "https://hub", Token: "t", MemberNamespace: "m", Workspace: "w", Cluster: "c",
		Mode: hubclient.TLSInsecure}.Secret("ns")
	check(t, err)
	read, err := hubclient.CredentialFromSecret(kept)
	check(t, err)
	if got := (&registration{}).trust(observation{}, read).Mode; got == hubclient.TLSInsecure {
		t.Error("an agent of a Cluster verifies nobody")
	}
}

func TestModeOfTheHubCountsUntilThatOfTheChartChanges(t *testing.T) {
	mode := &registration{}
	read := hubclient.Credential{Mode: hubclient.TLSStrict, ChartMode: hubclient.TLSSystemStore}
	var s observation
	for chart, want := range map[hubclient.TLSMode]hubclient.TLSMode{hubclient.TLSSystemStore: hubclient.TLSStrict, "other": "other"} {
		s.config.Mode = chart
		if got := mode.trust(s, read).Mode; got != want {
			t.Errorf("with %s in the chart: %s, want %s", chart, got, want)
		}
	}
}
