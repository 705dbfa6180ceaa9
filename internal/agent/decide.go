package agent

import (
	"fmt"
	"time"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// The life cycle of an agent of a Cluster; decide_membership.go has the life cycle of an agent of a
// MemberCluster. The state follows from the objects on the member, so an agent continues after
// every restart:
//	                     Starting
//	      credential? yes │    │ no
//	                      ▼    ▼
//	 Unreachable ◄──► Trying   registration token? ──no──► Waiting ◄─┐ until the Secret appears;
//	 (keep all)        │   │    │ yes         ▲                      │ a refused credential is also tried again
//	          accepted │   └────┼─ refused ───┴──────────────────────┘
//	                   │        ▼
//	                   │     Joining ──denied──────────► Denied    until Secret or ConfigMap change
//	                   │        │ └───refused, silence─► Retrying  the same, or the back-off ends
//	                   ▼        ▼ granted
//	                  Joined ◄──┘
//	                   └── refused while running ──► as above
//
// A credential may be refused because it has expired. If the hub has given the agent a reconnect
// token, Joining renews the credential with the agent's key, without a registration token.
//
// BadInput means an unreadable Secret or ConfigMap, until it changes. While Joined, another agent
// may be active (Standby), the hub may request the cluster to leave (Left), or it may be an old hub
// (Fenced).
//
// A registration token counts in every state, also with a working credential or an unreachable hub:

// State is the stage of an agent.
type State string

// The states.
const (
	// Starting: the agent has not yet read its own namespace.
	Starting State = "Starting"
	// Trying: the agent tries the stored credential.
	Trying State = "Trying"
	// Unreachable: the hub cannot verify the stored credential; everything is kept.
	Unreachable State = "Unreachable"
	// Joined: the agent sends heartbeats and reports.
	Joined State = "Joined"
	// Joining: the agent requests a credential from the hub.
	Joining State = "Joining"
	// Retrying: the request failed or was refused, and the agent retries.
	Retrying State = "Retrying"
	// Denied: the hub has finally denied this registration token.
	Denied State = "Denied"
	// Waiting: there is no registration token.
	Waiting State = "Waiting"
	// Standby: another agent sends heartbeats for this member.
	Standby State = "Standby"
	// Left: the hub requested this cluster to leave, and it left.
	Left State = "Left"
	// Fenced: the hub has a lower term than the one that this cluster obeys. The agent refuses its
	// orders.
	Fenced State = "Fenced"
	// BadInput: a Secret or the ConfigMap cannot be used.
	BadInput State = "BadInput"
)

// result is the result of an attempt.
type result string

const (
	accepted    result = "accepted"
	unreachable result = "unreachable"
	refused     result = "refused"
	// expired: refused, because the credential has expired.
	expired result = "expired"
	// absent: the hub has nothing yet for the account; an administrator may be about to change this.
	absent result = "absent"
	final  result = "final"
)

// object is one of the three objects in the agent's namespace.
type object struct {
	// version is empty if the object does not exist.
	version string
	// problem is the reason if the object cannot be used.
	problem string
}

// observed is the complete input of a decision.
type observed struct {
	namespace string
	// source names the Secret with the token of a MemberCluster's agent. Such an agent has neither
	// bootstrap nor config.
	source string
	// kubeconfig is set if the user's Secret holds a kubeconfig, in place of a token. loginVersion is
	// its digest, and loginProblem the reason if it cannot be used, for a registration.
	kubeconfig                 bool
	loginVersion, loginProblem string
	// synced is true once all three objects have been read; failure is the reason if not.
	synced  bool
	failure string

	credential, bootstrap, config object
	// record names the Cluster of the stored credential.
	record string
	// exchanged is set if the session uses a credential from the hub, in exchange for a user's token.
	// unused is the reason not to use a stored one; empty if it is used.
	exchanged bool
	unused    string
	// standby is set if another agent sends heartbeats for this member.
	standby bool
	// replaced is set if another agent of this cluster has registered it again, with another
	// credential.
	replaced bool
	// foreign is set if the registration token belongs to the agent of another chart, and this agent
	// leaves it alone.
	foreign bool
	// reconnecting is set if the agent rejoins with its key after its credential has expired, without
	// a registration token.
	reconnecting bool
	// atStandby is set if the agent joins a restored hub at a further address, because its own hub
	// does not answer.
	atStandby bool
	// displaced is set if an agent of Rancher Fleet has registered this cluster while this agent ran.
	displaced bool
	// used is set if the present registration token bought the credential.
	used bool
	// appeared is the time of the first observation of the registration token. It is zero if this
	// token bought the session and no user waits for its Secret.
	appeared time.Time
	// unconfigured is set if the ConfigMap of the registration token has not been created yet.
	unconfigured bool
	// joining is the version of the running join.
	joining string
	// trial is the last try of a credential; join is the last registration with a registration token,
	// or its deletion.
	trial, join attempt
}

// joinVersion returns the version of the input of a join.
func (o observed) joinVersion() string {
	return o.bootstrap.version + "/" + o.config.version + o.loginVersion
}

// task is the action of an agent in a state.
type task string

const (
	// idle waits for a change of one of the three objects, or for the time to wake.
	idle task = ""
	// try verifies the stored credential with the hub.
	try task = "try"
	// register joins.
	register task = "register"
	// deleteToken deletes an unneeded registration token.
	deleteToken task = "deleteToken"
	// work sends heartbeats and reports.
	work task = "work"
)

// decision is a state, its reason in a sentence, the tasks, and the time of the next decision
// without an event.
type decision struct {
	State  State
	Reason string
	// Do is the task for the credential, Token the task for the registration token.
	Do, Token task
	// Registering describes the registration of a joined agent with another token; empty if there is
	// none.
	Registering string
	Wake        time.Time
}

const (
	// tokenRetention is the time to keep an unneeded registration token. A user may have created the
	// token because of a revocation, and an API server takes up to 10 s to notice one. Helm also waits
	// to see its new Secret.
	tokenRetention = 15 * time.Second
	// configDelay is the time to wait for the ConfigMap after the registration token, because Helm
	// creates the Secret first.
	configDelay = 15 * time.Second
)

// decide is total: every observation has an answer.
func decide(o observed, now time.Time) decision {
	switch {
	case o.trial.result == accepted && !o.replaced:
		return decideJoined(o, now)
	case !o.synced && o.failure != "":
		return decision{State: Starting, Reason: fmt.Sprintf("reading namespace %s of this cluster: %s", o.namespace, o.failure)}
	case !o.synced:
		return decision{State: Starting, Reason: fmt.Sprintf("reading namespace %s of this cluster", o.namespace)}
	case o.config.problem != "":
		return decision{State: BadInput, Reason: o.badConfig()}
	}
	if d, decided := decideCredential(o, now); decided {
		return d
	}
	return decideToken(o, now)
}

const asking = "asking the hub to register this cluster"

func (o observed) badConfig() string {
	return fmt.Sprintf("configmap %s/%s: %s", o.namespace, naming.AgentConfigMap, o.config.problem)
}

// decideJoined covers an agent with a working credential. A registration token changes nothing
// until it has bought another credential.
func decideJoined(o observed, now time.Time) decision {
	d := decision{State: Joined, Do: work, Reason: "the hub accepts the credential of " + o.record + "; sending the first heartbeat"}
	token := o.namespace + "/" + naming.AgentBootstrapSecret
	tried := o.join.version == o.joinVersion() && o.join.result != ""
	switch {
	case !o.synced, o.standby, o.bootstrap.version == "":
	case o.config.problem != "":
		d.Registering = "secret " + token + " is not used: " + o.badConfig()
	case o.awaitsConfig(now):
		d.Wake = o.appeared.Add(configDelay)
	case o.used && tried && now.Before(o.join.retryAt):
		d.Wake, d.Registering = o.join.retryAt, o.join.message
	case o.used && now.Before(o.retainedUntil()):
		d.Wake = o.retainedUntil()
	case o.used:
		d.Token = deleteToken
	default:
		beside := decideToken(o, now)
		d.Token, d.Wake, d.Registering = beside.Token, beside.Wake, "this cluster registers with another token: "+beside.Reason
	}
	return d
}

// retainedUntil returns the time to drop an unneeded registration token.
func (o observed) retainedUntil() time.Time {
	if o.appeared.IsZero() {
		return time.Time{}
	}
	return o.appeared.Add(tokenRetention)
}

func (o observed) awaitsConfig(now time.Time) bool {
	return o.unconfigured && now.Before(o.appeared.Add(configDelay))
}

// decideCredential covers a stored credential without a known refusal.
func decideCredential(o observed, now time.Time) (decision, bool) {
	tried := o.trial.version == o.credential.version && o.trial.result != ""
	switch {
	case o.displaced:
		return decision{State: Waiting, Reason: fmt.Sprintf("an agent of Rancher Fleet has registered this cluster as %s meanwhile: this "+
			"agent waits for its replacement, and uses the other agent's credential after a restart", o.record)}, true
	case o.credential.version == "" || o.credential.problem != "":
		return decision{}, false
	case !tried && o.joining != "" && o.joining == o.joinVersion():
		// A running join continues although it stores a credential itself.
		return decision{State: Joining, Token: register, Reason: asking}, true
	case !tried:
		return decision{State: Trying, Do: try, Reason: "trying the stored credential of " + o.record}, true
	case o.trial.result != unreachable:
		return decision{}, false
	}
	d := decision{State: Unreachable, Reason: o.trial.message}
	if o.bootstrap.version != "" && !o.used {
		// The hub may be gone for good, so a user may have created another token.
		d = decideToken(o, now)
		d.Reason += "; meanwhile, of the hub so far: " + o.trial.message
	}
	return d.tryFrom(o.trial.retryAt, now), true
}

// tryFrom tries the credential from a time on.
func (d decision) tryFrom(at, now time.Time) decision {
	if now.Before(at) {
		d.Wake = kube.Earlier(d.Wake, at)
	} else {
		d.Do = try
	}
	return d
}

// decideToken covers a registration token that has not yielded a credential yet.
func decideToken(o observed, now time.Time) decision {
	token := o.namespace + "/" + naming.AgentBootstrapSecret
	tried := o.join.version == o.joinVersion() && o.join.result != ""
	switch {
	case o.bootstrap.version == "":
		d := decideWaiting(o, now, token)
		if o.foreign {
			d.Reason += "; the secret " + token + " belongs to another chart, and is left to the agent of that"
		}
		return d
	case o.bootstrap.problem != "":
		return decision{State: BadInput, Reason: fmt.Sprintf("secret %s: %s", token, o.bootstrap.problem)}
	case o.loginProblem != "" && !o.reconnecting:
		return decision{State: BadInput, Reason: o.loginProblem}
	case o.awaitsConfig(now):
		return decision{State: Waiting, Wake: o.appeared.Add(configDelay),
			Reason: fmt.Sprintf("waiting for the configmap %s/%s that belongs to secret %s", o.namespace, naming.AgentConfigMap, token)}
	case tried && o.join.result == final:
		return decision{State: Denied, Reason: o.join.message}
	case tried && now.Before(o.join.retryAt):
		return decision{State: Retrying, Reason: o.join.message, Wake: o.join.retryAt}
	case tried:
		return decision{State: Retrying, Token: register, Reason: o.join.message}
	case o.atStandby:
		return decision{
			State: Joining, Token: register,
			Reason: fmt.Sprintf("the hub of %s does not answer; registering at the restored hub with the key of this cluster", o.record),
		}
	case o.reconnecting:
		return decision{
			State: Joining, Token: register,
			Reason: fmt.Sprintf("the credential of %s has expired; registering again with the key of this cluster", o.record),
		}
	default:
		return decision{State: Joining, Token: register, Reason: asking}
	}
}

func decideWaiting(o observed, now time.Time, token string) decision {
	const remedy = "give the cluster a new registration token: helm upgrade with the values.yaml of a ClusterRegistrationToken"
	own := o.namespace + "/" + naming.AgentSecret
	switch {
	case o.credential.version == "":
		return decision{State: Waiting, Reason: fmt.Sprintf("this cluster is not registered and there is no secret %s: %s", token, remedy)}
	case o.credential.problem != "":
		return decision{State: Waiting, Reason: fmt.Sprintf("secret %s cannot be used, because %s, and there is no secret %s: %s",
			own, o.credential.problem, token, remedy)}
	}
	d := decision{State: Waiting}
	if o.trial.left {
		d.State, d.Reason = Left,
			fmt.Sprintf("this cluster has left the fleet; to join again, %s, else remove the agent with helm uninstall (%s)",
				remedy, o.trial.message)
	} else {
		d.Reason = fmt.Sprintf("the hub refuses the credential of %s and there is no secret %s: %s (%s)",
			o.record, token, remedy, o.trial.message)
	}
	return d.tryFrom(o.trial.retryAt, now)
}
