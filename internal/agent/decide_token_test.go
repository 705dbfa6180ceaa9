package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
)

func TestDecideAboutATokenBesideACredentialThatWorks(t *testing.T) {
	now := time.Unix(1000, 0)
	later, earlier := now.Add(time.Second), now.Add(-time.Second)
	const another = "this cluster registers with another token: "
	type tokenDecision struct {
		Token       task
		Registering string
		Wake        time.Time
	}
	for name, row := range map[string]struct {
		change func(*observed)
		want   tokenDecision
	}{
		"no token is nothing to do": {func(o *observed) { o.bootstrap.version = "" }, tokenDecision{}},
		"another token registers":   {func(*observed) {}, tokenDecision{Token: register, Registering: another + asking}},
		"a registration that failed is tried again later": {
			func(o *observed) {
				o.join = attempt{version: "3/5", result: refused, message: "expired", retryAt: later}
			},
			tokenDecision{Registering: another + "expired", Wake: later},
		},
		"and again when its time has come": {
			func(o *observed) {
				o.join = attempt{version: "3/5", result: unreachable, message: "no route", retryAt: earlier}
			},
			tokenDecision{Token: register, Registering: another + "no route"},
		},
		"a token that was denied is not used again": {
			func(o *observed) { o.join = attempt{version: "3/5", result: final, message: "denied"} },
			tokenDecision{Registering: another + "denied"},
		},
		"a denied token is used again with another config map": {
			func(o *observed) { o.join = attempt{version: "3/4", result: final, message: "denied"} },
			tokenDecision{Token: register, Registering: another + asking},
		},
		"a token that cannot be read is named": {
			func(o *observed) { o.bootstrap.problem = "garbage" },
			tokenDecision{Registering: another + "secret ns/fleet-agent-bootstrap: garbage"},
		},
		"a config map that cannot be read keeps every token": {
			func(o *observed) { o.used, o.config.problem = true, "garbage" },
			tokenDecision{Registering: "secret ns/fleet-agent-bootstrap is not used: configmap ns/fleet-agent: garbage"},
		},
		"the config map that comes with a token is waited for": {
			func(o *observed) { o.unconfigured, o.appeared = true, now },
			tokenDecision{Wake: now.Add(configDelay)},
		},
		"but not for ever": {
			func(o *observed) { o.unconfigured, o.appeared = true, now.Add(-configDelay) },
			tokenDecision{Token: register, Registering: another + asking},
		},
		"the agent that does not beat leaves it to the one that does": {func(o *observed) { o.standby = true }, tokenDecision{}},
		"the token that has just bought the credential goes at once":  {func(o *observed) { o.used = true }, tokenDecision{Token: deleteToken}},
		"one that is left over goes when nobody waits for it": {
			func(o *observed) { o.used, o.appeared = true, now },
			tokenDecision{Wake: now.Add(tokenRetention)},
		},
		"and then it goes": {func(o *observed) { o.used, o.appeared = true, now.Add(-tokenRetention) }, tokenDecision{Token: deleteToken}},
		"one that could not be deleted is deleted later": {
			func(o *observed) {
				o.used, o.join = true, attempt{version: "3/5", result: unreachable, message: "no route", retryAt: later}
			},
			tokenDecision{Registering: "no route", Wake: later},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed{namespace: "ns", synced: true, record: "clusters/c", trial: attempt{result: accepted},
				credential: object{version: "7"}, bootstrap: object{version: "3"}, config: object{version: "5"}}
			row.change(&o)
			d := decide(o, now)
			if d.State != Joined || d.Do != work {
				t.Errorf("the membership does not go on: %+v", d)
			}
			if diff := cmp.Diff(row.want, tokenDecision{d.Token, d.Registering, d.Wake}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	replaced := decide(observed{namespace: "ns", synced: true, record: "clusters/d", replaced: true,
		trial: attempt{version: "6", result: accepted}, credential: object{version: "7"}}, now)
	if diff := cmp.Diff(decision{State: Trying, Do: try, Reason: "trying the stored credential of clusters/d"}, replaced); diff != "" {
		t.Errorf("the credential that another agent has stored (-want +got):\n%s", diff)
	}
}

func TestATokenIsLeftOverIfItBoughtTheCredential(t *testing.T) {
	stored := time.Unix(1000, 0)
	b := join.Bootstrap{Server: "https://hub", Workspace: "clusters", Token: "t", Claims: credential.Claims{Issued: stored.Add(-time.Second)}}
	remembers := hubclient.Credential{Server: "https://moved", Workspace: "clusters", JoinedWith: b.Digest("id")}
	old := hubclient.Credential{Server: "https://hub", Workspace: "clusters"}
	theirs := hubclient.Credential{Server: "https://hub", Workspace: "clusters", Upstream: true}
	for name, row := range map[string]struct {
		credential hubclient.Credential
		change     func(*join.Bootstrap)
		clientID   string
		want       bool
	}{
		"the same":          {remembers, func(*join.Bootstrap) {}, "id", true},
		"another token":     {remembers, func(b *join.Bootstrap) { b.Token = "u" }, "id", false},
		"another hub":       {remembers, func(b *join.Bootstrap) { b.Server = "https://other" }, "id", false},
		"another workspace": {remembers, func(b *join.Bootstrap) { b.Workspace = "other" }, "id", false},
		"another clientID":  {remembers, func(*join.Bootstrap) {}, "other", false},
		"another CA":        {remembers, func(b *join.Bootstrap) { b.CA = []byte("x") }, "id", true},
		"an agent that does not remember, and a token from before it joined": {old, func(*join.Bootstrap) {}, "id", true},
		"and a token from after that": {
			old, func(b *join.Bootstrap) { b.Claims.Issued = stored.Add(time.Second) }, "id", false,
		},
		"and a token that does not say": {old,
			func(b *join.Bootstrap) { b.Claims = credential.Claims{} }, "id", false},
		"and one of the second in which it was stored": {old,
			func(b *join.Bootstrap) { b.Claims.Issued = stored }, "id", true},
		"the agent of Rancher Fleet before it, and a token without an end": {theirs,
			func(b *join.Bootstrap) { b.Claims = credential.Claims{} }, "id", true},
		"and a newer token with one": {
			theirs, func(b *join.Bootstrap) { b.Claims.Issued = stored.Add(time.Second) }, "id", false,
		},
		"and a token without an end for another workspace": {
			theirs, func(b *join.Bootstrap) { b.Claims, b.Workspace = credential.Claims{}, "other" }, "id", false,
		},
		"and a token for another workspace": {old,
			func(b *join.Bootstrap) { b.Workspace = "other" }, "id", false},
		"and a token for another hub": {old,
			func(b *join.Bootstrap) { b.Server = "https://other" }, "id", false},
	} {
		given := b
		row.change(&given)
		if got := boughtWith(row.credential, stored, given, row.clientID); got != row.want {
			t.Errorf("%s: left over is %t", name, got)
		}
	}
}

// TestATokenThatBoughtTheSessionIsNotUsedAgain has the watch of the agent's Secrets show none that
// was just stored. Another request with the token would replace the identity that the session has.
func TestATokenThatBoughtTheSessionIsNotUsedAgain(t *testing.T) {
	o := observation{bootstrap: join.Bootstrap{Server: "https://hub", Workspace: "clusters", Token: "t"}}
	o.observed = observed{namespace: "ns", synced: true, bootstrap: object{version: "3"}, trial: attempt{version: "3/", result: accepted}}
	o.inUse = &hubclient.Credential{JoinedWith: o.bootstrap.Digest("")}
	if o.used = o.spent(nil); decide(o.observed, time.Now()).Token != deleteToken {
		t.Errorf("the token is for: %q", decide(o.observed, time.Now()).Token)
	}
	if o.inUse = nil; o.spent(nil) {
		t.Error("the token is taken for used without a credential")
	}
}
