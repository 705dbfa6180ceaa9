package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecideMember(t *testing.T) {
	now := time.Unix(1000, 0)
	later, earlier := now.Add(time.Second), now.Add(-time.Second)
	with := func(version, problem string, trial attempt) observed {
		return observed{
			source: "default/token", record: "member web", synced: true, credential: object{version: version, problem: problem}, trial: trial,
		}
	}
	joined := decision{State: Joined, Do: work, Reason: "the hub accepts the token of member web; sending the first heartbeat"}
	trying := decision{State: Trying, Do: try, Reason: "trying the token in secret default/token for member web"}
	for name, row := range map[string]struct {
		observed observed
		want     decision
	}{
		"it begins by reading the Secret": {
			observed{source: "default/token"}, decision{State: Starting, Reason: "reading secret default/token of this cluster"},
		},
		"it says why it cannot read the Secret": {
			observed{source: "default/token", failure: "forbidden"}, decision{
				State: Starting, Reason: "reading secret default/token of this cluster: forbidden",
			},
		},
		"without a Secret it waits and says what to put there": {
			with("", "", attempt{}), decision{State: Waiting,
				Reason: "there is no secret default/token on this cluster: create it with the hub's token for " +
					"member web in its key token; it is used at once"},
		},
		"a Secret that cannot be used is named": {
			with("1", "its key token is missing", attempt{}), decision{State: BadInput, Reason: "secret default/token: its key token is missing"},
		},
		"a token is tried":                            {with("1", "", attempt{}), trying},
		"another token is tried at once":              {with("2", "", attempt{version: "1", result: refused, retryAt: later}), trying},
		"another token is tried even while one works": {with("2", "", attempt{version: "1", result: accepted}), trying},
		"a token that works is put to work":           {with("1", "", attempt{version: "1", result: accepted}), joined},
		"a token that works outlives its Secret":      {with("", "", attempt{version: "1", result: accepted}), joined},
		"a token that works outlives garbage":         {with("2", "garbage", attempt{version: "1", result: accepted}), joined},
		"an unreachable hub is waited for": {
			with("1", "", attempt{version: "1", result: unreachable, message: "no route", retryAt: later}), decision{
				State: Unreachable, Reason: "no route", Wake: later,
			},
		},
		"and asked again": {
			with("1", "", attempt{version: "1", result: unreachable, message: "no route", retryAt: earlier}), decision{
				State: Unreachable, Reason: "no route", Do: try,
			},
		},
		"a member that the hub does not know yet is waited for": {
			with("1", "", attempt{version: "1", result: absent, message: "no member web", retryAt: later}), decision{
				State: Waiting, Reason: "no member web", Wake: later,
			},
		},
		"a refused token is tried again now and then": {
			with("1", "", attempt{version: "1", result: refused, message: "revoked", retryAt: now}), decision{
				State: Waiting, Reason: "revoked", Do: try,
			},
		},
		"after leaving, that is what it says": {
			with("1", "", attempt{version: "1", result: absent, message: "no member web", retryAt: later, left: true}),
			decision{State: Left, Wake: later,
				Reason: "this cluster has left the fleet; to join again, apply a MemberCluster of the same name on the hub, " +
					"else remove the agent with helm uninstall member-agent"},
		},
		"after leaving it joins again when the hub knows it again": {
			with("1", "", attempt{version: "1", result: refused, message: "revoked", left: true}),
			decision{State: Left, Do: try,
				Reason: "this cluster has left the fleet; to join again, apply a MemberCluster of the same name on the hub, " +
					"else remove the agent with helm uninstall member-agent (revoked)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, decideMembership(row.observed, now)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestClusterThatLeftSaysSo(t *testing.T) {
	o := observed{namespace: "ns", synced: true, record: "clusters/c", credential: object{version: "7"}}
	o.trial = attempt{version: "7", result: refused, message: "Unauthorized", left: true}
	if d := decide(o, time.Unix(1000, 0)); d.State != Left || d.Do != try ||
		!strings.HasPrefix(d.Reason, "this cluster has left the fleet; to join again, give the cluster a new registration token") {
		t.Errorf("got %+v", d)
	}
}

func TestMembershipIsCheckedAtTheStart(t *testing.T) {
	good := Membership{Server: " https://hub:6443/ ", Name: "web", SecretNamespace: "default", SecretName: "token"}
	with := func(change func(*Membership)) Membership {
		m := good
		change(&m)
		return m
	}
	for name, row := range map[string]struct {
		given Membership
		want  string
	}{
		"what is right": {good, ""},
		"no URL": {with(func(m *Membership) { m.Server = "" }),
			"config.hubURL (HUB_SERVER_URL, --hub-server-url) is required"},
		"a URL without scheme": {with(func(m *Membership) { m.Server = "hub:6443" }), `is "hub:6443": want https://host`},
		"no name": {with(func(m *Membership) { m.Name = "" }),
			"config.memberClusterName (MEMBER_CLUSTER_NAME, --member-cluster-name) is required"},
		"a name with dots": {with(func(m *Membership) { m.Name = "web.example" }),
			`is "web.example": a MemberCluster's name has at most 50`},
		"a name that is long": {with(func(m *Membership) { m.Name = strings.Repeat("x", 51) }), "at most 50"},
		"the longest name":    {with(func(m *Membership) { m.Name = strings.Repeat("x", 50) }), ""},
		"a CA that is no CA": {with(func(m *Membership) { m.CA = "..." }),
			"config.hubCA (HUB_CERTIFICATE_AUTHORITY, --hub-certificate-authority) is unusable"},
		"a chart's CA that is none": {with(func(m *Membership) { m.FallbackCA = "..." }),
			"hub-ca.crt of the chart (HUB_CERTIFICATE_AUTHORITY_FALLBACK) is unusable"},
		"a namespace of before": {with(func(m *Membership) { m.Namespace = "fleet-member-web-1a2b3c4d5e6f" }), ""},
		"a namespace of another": {with(func(m *Membership) { m.Namespace = "kube-system" }),
			"config.memberNamespace (MEMBER_NAMESPACE, --member-namespace) is \"kube-system\""},
		"a Secret without name": {with(func(m *Membership) { m.SecretName = "" }), "must be NAMESPACE/NAME"},
	} {
		checked, err := row.given.Validate()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
		if err == nil && checked.Server != "https://hub:6443" {
			t.Errorf("%s: the URL became %q", name, checked.Server)
		}
	}
}
