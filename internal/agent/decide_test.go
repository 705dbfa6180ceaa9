package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecide(t *testing.T) {
	now := time.Unix(1000, 0)
	later, earlier := now.Add(time.Second), now.Add(-time.Second)
	base := observed{namespace: "ns", synced: true, record: "clusters/c"}
	with := func(change func(*observed)) observed {
		o := base
		change(&o)
		return o
	}
	credential := func(o *observed) { o.credential.version = "7" }
	bootstrap := func(o *observed) { o.bootstrap.version = "3" }
	const (
		asking = "asking the hub to register this cluster"
		remedy = "give the cluster a new registration token: helm upgrade with the values.yaml of a ClusterRegistrationToken"
	)
	for name, row := range map[string]struct {
		observed observed
		want     decision
	}{
		"it begins by reading its namespace": {
			observed{namespace: "ns"},
			decision{State: Starting, Reason: "reading namespace ns of this cluster"},
		},
		"it says why it cannot read its namespace": {
			observed{namespace: "ns", failure: "secrets is forbidden"},
			decision{State: Starting, Reason: "reading namespace ns of this cluster: secrets is forbidden"},
		},
		"an accepted credential is put to work, whatever the inputs have become": {
			with(func(o *observed) { o.trial.result, o.config.problem = accepted, "garbage" }),
			decision{State: Joined, Do: work, Reason: "the hub accepts the credential of clusters/c; sending the first heartbeat"},
		},
		"an agent that another one of the cluster has displaced takes nothing of it": {
			with(func(o *observed) { credential(o); bootstrap(o); o.displaced = true }),
			decision{State: Waiting, Reason: "an agent of Rancher Fleet has registered this cluster as clusters/c meanwhile: this agent " +
				"waits for its replacement, and uses the other agent's credential after a restart"},
		},
		"a registration token of another chart is left to the agent of that": {
			with(func(o *observed) { o.foreign = true }),
			decision{State: Waiting, Reason: "this cluster is not registered and there is no secret ns/fleet-agent-bootstrap: " + remedy +
				"; the secret ns/fleet-agent-bootstrap belongs to another chart, and is left to the agent of that"},
		},
		"a garbage config map holds everything else": {
			with(func(o *observed) { credential(o); bootstrap(o); o.config.problem = "garbage" }),
			decision{State: BadInput, Reason: "configmap ns/fleet-agent: garbage"},
		},
		"a stored credential is tried even if there is a registration token": {
			with(func(o *observed) { credential(o); bootstrap(o) }),
			decision{State: Trying, Do: try, Reason: "trying the stored credential of clusters/c"},
		},
		"a credential that changed since its trial is untried": {
			with(func(o *observed) { credential(o); o.trial = attempt{version: "6", result: refused} }),
			decision{State: Trying, Do: try, Reason: "trying the stored credential of clusters/c"},
		},
		"an unreachable hub is no reason to register again with a token that is left over": {
			with(func(o *observed) {
				credential(o)
				bootstrap(o)
				o.used = true
				o.trial = attempt{version: "7", result: unreachable, message: "no route", retryAt: later}
			}),
			decision{State: Unreachable, Reason: "no route", Wake: later},
		},
		"an unreachable hub, which may be gone for good, is no reason not to register with another token": {
			with(func(o *observed) {
				credential(o)
				bootstrap(o)
				o.trial = attempt{version: "7", result: unreachable, message: "no route", retryAt: later}
			}),
			decision{State: Joining, Token: register, Wake: later, Reason: asking + "; meanwhile, of the hub so far: no route"},
		},
		"an unreachable hub is asked again meanwhile": {
			with(func(o *observed) {
				credential(o)
				bootstrap(o)
				o.trial = attempt{version: "7", result: unreachable, message: "no route", retryAt: earlier}
				o.join = attempt{version: "3/", result: final, message: "denied"}
			}),
			decision{State: Denied, Do: try, Reason: "denied; meanwhile, of the hub so far: no route"},
		},
		"an unreachable hub is asked again when the back-off ends": {
			with(func(o *observed) {
				credential(o)
				o.trial = attempt{version: "7", result: unreachable, message: "no route", retryAt: earlier}
			}),
			decision{State: Unreachable, Do: try, Reason: "no route"},
		},
		"a refused credential is replaced if there is a registration token": {
			with(func(o *observed) {
				credential(o)
				bootstrap(o)
				o.trial = attempt{version: "7", result: refused, message: "Unauthorized", retryAt: later}
			}),
			decision{State: Joining, Token: register, Reason: asking},
		},
		"a refused credential without a registration token waits for one": {
			with(func(o *observed) {
				credential(o)
				o.trial = attempt{version: "7", result: refused, message: "Unauthorized", retryAt: later}
			}),
			decision{State: Waiting, Wake: later,
				Reason: "the hub refuses the credential of clusters/c and there is no secret ns/fleet-agent-bootstrap: " + remedy + " (Unauthorized)"},
		},
		"a refused credential is tried again now and then": {
			with(func(o *observed) {
				credential(o)
				o.trial = attempt{version: "7", result: refused, message: "Unauthorized", retryAt: earlier}
			}),
			decision{State: Waiting, Do: try,
				Reason: "the hub refuses the credential of clusters/c and there is no secret ns/fleet-agent-bootstrap: " + remedy + " (Unauthorized)"},
		},
		"without credential and token it waits": {
			base,
			decision{State: Waiting, Reason: "this cluster is not registered and there is no secret ns/fleet-agent-bootstrap: " + remedy},
		},
		"a garbage credential without token waits for one": {
			with(func(o *observed) { o.credential = object{version: "7", problem: "it has no key kubeconfig"} }),
			decision{State: Waiting, Reason: "secret ns/fleet-agent cannot be used, because it has no key kubeconfig, and there is no secret " +
				"ns/fleet-agent-bootstrap: " + remedy},
		},
		"a garbage credential is replaced if there is a registration token": {
			with(func(o *observed) {
				o.credential = object{version: "7", problem: "it has no key kubeconfig"}
				bootstrap(o)
			}),
			decision{State: Joining, Token: register, Reason: asking},
		},
		"a garbage registration token is named": {
			with(func(o *observed) { o.bootstrap = object{version: "3", problem: "its key token is missing"} }),
			decision{State: BadInput, Reason: "secret ns/fleet-agent-bootstrap: its key token is missing"},
		},
		"a registration token is used": {
			with(bootstrap),
			decision{State: Joining, Token: register, Reason: asking},
		},
		"a join under way is not disturbed by the credential it stores": {
			with(func(o *observed) { credential(o); bootstrap(o); o.joining = "3/" }),
			decision{State: Joining, Token: register, Reason: asking},
		},
		"a join under way ends when its token changes": {
			with(func(o *observed) { o.bootstrap.problem = "garbage"; o.bootstrap.version = "4"; o.joining = "3/" }),
			decision{State: BadInput, Reason: "secret ns/fleet-agent-bootstrap: garbage"},
		},
		"a denied token is not used again": {
			with(func(o *observed) {
				bootstrap(o)
				o.join = attempt{version: "3/", result: final, message: "denied", retryAt: earlier}
			}),
			decision{State: Denied, Reason: "denied"},
		},
		"another config map makes a denied token worth another try": {
			with(func(o *observed) {
				bootstrap(o)
				o.config.version = "2"
				o.join = attempt{version: "3/1", result: final, message: "denied"}
			}),
			decision{State: Joining, Token: register, Reason: asking},
		},
		"a failed join waits": {
			with(func(o *observed) {
				bootstrap(o)
				o.join = attempt{version: "3/", result: unreachable, message: "no route", retryAt: later}
			}),
			decision{State: Retrying, Reason: "no route", Wake: later},
		},
		"a refused token is tried again, too": {
			with(func(o *observed) {
				bootstrap(o)
				o.join = attempt{version: "3/", result: refused, message: "expired", retryAt: now}
			}),
			decision{State: Retrying, Token: register, Reason: "expired"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, decide(row.observed, now)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
