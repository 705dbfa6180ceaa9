package agent

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/hubclient"
)

func TestOnlyTheSuccessorOfItsHubGetsAMemberByATokenOfTheStandby(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	check(t, err)
	_, another, err := ed25519.GenerateKey(nil)
	check(t, err)
	two := term.Sign(key, 2, "lost")
	unsigned := term.Sign(key, 3, "standby")
	unsigned.Signature = two.Signature
	for name, c := range map[string]struct {
		obeyed, offered *clusterv1beta1.HubTerm
		refusal         string
	}{
		"the restored hub":                      {two, term.Sign(key, 3, "standby"), ""},
		"a second restore of an earlier backup": {two, term.Sign(key, 2, "standby"), "this cluster obeys term 2"},
		"a lower term":                          {two, term.Sign(key, 1, "standby"), "this cluster obeys term 2"},
		"a term that it cannot sign":            {two, unsigned, "no valid signature"},
		"a hub with another key":                {two, term.Sign(another, 9, "standby"), "does not have the key"},
		"a hub without a term":                  {two, nil, "does not have the key"},
		"a member that remembers no hub":        {nil, two, "remembers no term"},
	} {
		got := standbyRefusal(c.obeyed, c.offered)
		if (got == "") != (c.refusal == "") || !strings.Contains(got, c.refusal) {
			t.Errorf("%s: refused with %q, want %q", name, got, c.refusal)
		}
	}
}

func TestATokenOfTheStandbyIsForOneAgentAndOneAddress(t *testing.T) {
	key, err := credential.NewAgentKey()
	check(t, err)
	other, err := credential.NewAgentKey()
	check(t, err)
	sealed, err := credential.SealStandby(key.Public(), "https://two", "s3cret")
	check(t, err)
	given := &clusterv1beta1.StandbyToken{ID: "a", Sealed: sealed}
	for name, c := range map[string]struct {
		key    *credential.AgentKey
		server string
		given  *clusterv1beta1.StandbyToken
		want   string
	}{
		"its own":                   {&key, "https://two", given, "s3cret"},
		"for another address":       {&key, "https://three", given, ""},
		"for another agent":         {&other, "https://two", given, ""},
		"for an agent without keys": {nil, "https://two", given, ""},
		"none":                      {&key, "https://two", nil, ""},
		"a damaged one":             {&key, "https://two", &clusterv1beta1.StandbyToken{Sealed: []byte("x")}, ""},
	} {
		if got := standbyToken(c.key, c.server, c.given); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	address := hubclient.Address{Token: "s3cret"}
	shown := fmt.Sprintf("%v %+v %#v %v", address, address, address, []hubclient.Address{address})
	if strings.Contains(shown, "s3cret") {
		t.Errorf("an address shows its token: %s", shown)
	}
}

func TestAnAgentWithoutItsHubRegistersAtTheStandbyAndStillTriesItsHub(t *testing.T) {
	now := time.Now()
	o := observed{synced: true, credential: object{version: "1"}, record: "clusters/a",
		trial: attempt{version: "1", result: unreachable, message: "no answer", retryAt: now.Add(time.Second)}}
	if d := decide(o, now); d.State != Unreachable || d.Token != idle {
		t.Errorf("without a standby: %+v", d)
	}
	o.reconnecting, o.atStandby, o.bootstrap = true, true, object{version: standbyVersion + "https://two/1"}
	d := decide(o, now)
	if d.State != Joining || d.Token != register || !d.Wake.Equal(o.trial.retryAt) || !strings.Contains(d.Reason, "restored hub") {
		t.Errorf("with a standby: %+v", d)
	}
	if d = decide(o, now.Add(time.Minute)); d.Do != try || d.Token != register {
		t.Errorf("when the next try is due: %+v", d)
	}
	o.join = attempt{version: o.joinVersion(), result: refused, message: "no", retryAt: now.Add(time.Minute)}
	if d = decide(o, now); d.State != Retrying || d.Token != idle {
		t.Errorf("after a refusal: %+v", d)
	}
}

func TestOnlyAnAddressThatTheLostHubHasNamedSucceedsIt(t *testing.T) {
	former := hubclient.Credential{Server: "https://one", Workspace: "w", Cluster: "c",
		Addresses: hubclient.Addresses{List: []hubclient.Address{{Server: "https://one"}, {Server: "https://two"}}}}
	for name, c := range map[string]struct {
		now  hubclient.Credential
		want bool
	}{
		"the standby":                 {hubclient.Credential{Server: "https://two", Workspace: "w", Cluster: "c"}, true},
		"another Cluster there":       {hubclient.Credential{Server: "https://two", Workspace: "w", Cluster: "d"}, false},
		"the first address":           {hubclient.Credential{Server: "https://one", Workspace: "w", Cluster: "c"}, false},
		"an address of somebody else": {hubclient.Credential{Server: "https://three", Workspace: "w", Cluster: "c"}, false},
	} {
		if got := succeedsAt(former, c.now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !errors.As(error(unknownThere{errors.New("no")}), &unknownThere{}) {
		t.Error("a refusal is not recognized")
	}
}
