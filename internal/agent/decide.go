package agent

import (
	"fmt"
	"time"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// The life of an agent of a Cluster; decide_membership.go has that of a MemberCluster. The state follows from the objects on the member, so that an
// agent goes on where it was after every restart:
//
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
// A credential that was refused because it has run out is renewed by Joining without a registration token, with the agent's key, if the hub has given
// the agent a token for that.
//
// BadInput stands for a Secret or ConfigMap that cannot be read, until it changes. While Joined, another agent may be at work
// (Standby), or the hub may ask the cluster to leave (Left).
//
// A registration token counts in every state, also beside a credential that works or whose hub is unreachable:
//
//	Secret appears ──► bought the credential in use? ──yes──► left over: deleted once the hub has confirmed the credential
//	                          │ no: another token, hub, workspace or clientID
//	                          ▼
//	                       Joining ◄──► Retrying, Denied     the membership so far goes on, with a note
//	                          │ granted, tried, stored
//	                          ▼
//	                     Joined by the new credential; the membership so far is left, unless it is the same one

// State is the stage that an agent is in.
type State string

// The states.
const (
	// Starting: the agent has not yet read its own namespace.
	Starting State = "Starting"
	// Trying: the stored credential is tried.
	Trying State = "Trying"
	// Unreachable: the hub cannot be asked about the stored credential; everything is kept.
	Unreachable State = "Unreachable"
	// Joined: the agent beats and reports.
	Joined State = "Joined"
	// Joining: the hub is asked for a credential.
	Joining State = "Joining"
	// Retrying: the hub could not be asked, or refused to be, and is asked again.
	Retrying State = "Retrying"
	// Denied: the hub gave its final answer to this registration token.
	Denied State = "Denied"
	// Waiting: there is no registration token.
	Waiting State = "Waiting"
	// Standby: another agent beats for this member.
	Standby State = "Standby"
	// Left: the hub asked this cluster to leave, and it did.
	Left State = "Left"
	// BadInput: a Secret or the ConfigMap is unusable.
	BadInput State = "BadInput"
)

// result is how an attempt ended.
type result string

const (
	accepted    result = "accepted"
	unreachable result = "unreachable"
	refused     result = "refused"
	// expired: refused, because the credential has run out.
	expired result = "expired"
	// absent: the hub has nothing yet for the account that asks; somebody may be about to change that.
	absent result = "absent"
	final  result = "final"
)

// attempt is the last try of a credential or of a registration token.
type attempt struct {
	// version is that of what was tried; what has another version is untried.
	version string
	result  result
	message string
	// retryAt is when the next try is due.
	retryAt time.Time
	// left says that the hub had asked this cluster to leave.
	left bool
}

// object is one of the three objects in the agent's namespace.
type object struct {
	// version is empty if there is none.
	version string
	// problem says why it cannot be used.
	problem string
}

// observed is all that a decision depends on.
type observed struct {
	namespace string
	// source names the Secret with the token of a MemberCluster's agent, which has neither bootstrap nor config.
	source string
	// synced is true once all three objects have been read; failure says why not.
	synced  bool
	failure string

	credential, bootstrap, config object
	// record names the Cluster of the stored credential.
	record string
	// exchanged says that the session uses a credential that the hub has issued to an agent that began with a token of the user's; unused says why one that
	// is stored is not used, empty if it is.
	exchanged bool
	unused    string
	// standby says that another agent beats for this member.
	standby bool
	// replaced says that another agent of this cluster has registered the cluster anew, so that the stored credential is not the one in use.
	replaced bool
	// foreign says that there is a registration token for the agent of another chart, which this agent leaves alone.
	foreign bool
	// reconnecting says that there is no registration token, and the agent asks to be the member again with which its credential has run out.
	reconnecting bool
	// displaced says that an agent of Rancher Fleet has registered this cluster while this agent ran.
	displaced bool
	// used says that the credential was bought with the registration token that is there.
	used bool
	// appeared is when the registration token was first observed; zero if the session was bought with this token and nobody waits for its Secret.
	appeared time.Time
	// unconfigured says that the ConfigMap that was installed with the registration token has not come yet.
	unconfigured bool
	// joining is the version of what the join under way was begun with.
	joining string
	// trial is the last try of a credential, join that of a registration token, to register with it or to delete it.
	trial, join attempt
}

// joinVersion is the version of what a join is made with.
func (o observed) joinVersion() string { return o.bootstrap.version + "/" + o.config.version }

// task is what an agent does in a state.
type task string

const (
	// idle waits for one of the three objects to change, or for the time to wake.
	idle task = ""
	// try asks the hub whether it accepts the stored credential.
	try task = "try"
	// register joins.
	register task = "register"
	// deleteToken deletes a registration token that is left over.
	deleteToken task = "deleteToken"
	// work beats and reports.
	work task = "work"
)

// decision is the state, why in a sentence, what to do, and when time alone may change it.
type decision struct {
	State  State
	Reason string
	// Do is what to do with the credential, Token what to do with the registration token.
	Do, Token task
	// Registering says of an agent that has joined how far its registration with another token is; empty if there is none.
	Registering string
	Wake        time.Time
}

const (
	// tokenRetention is how long a registration token that is left over is kept. The token may have been given because the credential was just
	// revoked, which an API server takes up to 10 s to notice; and Helm, which has just made the Secret, waits to see it.
	tokenRetention = 15 * time.Second
	// configDelay is how long the ConfigMap may come after the registration token: Helm makes the Secret first.
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

// decideJoined covers an agent whose credential works. A registration token beside that changes nothing until it has bought another credential.
func decideJoined(o observed, now time.Time) decision {
	d := decision{State: Joined, Do: work, Reason: "the hub accepts the credential of " + o.record + "; sending the first beat"}
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

// retainedUntil is until when a registration token that is left over is kept.
func (o observed) retainedUntil() time.Time {
	if o.appeared.IsZero() {
		return time.Time{}
	}
	return o.appeared.Add(tokenRetention)
}

func (o observed) awaitsConfig(now time.Time) bool {
	return o.unconfigured && now.Before(o.appeared.Add(configDelay))
}

// decideCredential covers a stored credential that is not known to be refused.
func decideCredential(o observed, now time.Time) (decision, bool) {
	tried := o.trial.version == o.credential.version && o.trial.result != ""
	switch {
	case o.displaced:
		return decision{State: Waiting, Reason: fmt.Sprintf("an agent of Rancher Fleet has registered this cluster as %s meanwhile: "+
			"this one waits to be replaced by it, and goes on with its credential if it is started again", o.record)}, true
	case o.credential.version == "" || o.credential.problem != "":
		return decision{}, false
	case !tried && o.joining != "" && o.joining == o.joinVersion():
		// A join under way is not disturbed by the credential that it stores itself.
		return decision{State: Joining, Token: register, Reason: asking}, true
	case !tried:
		return decision{State: Trying, Do: try, Reason: "trying the stored credential of " + o.record}, true
	case o.trial.result != unreachable:
		return decision{}, false
	}
	d := decision{State: Unreachable, Reason: o.trial.message}
	if o.bootstrap.version != "" && !o.used {
		// The hub may be gone for good, which is why there is another token.
		d = decideToken(o, now)
		d.Reason += "; meanwhile, of the hub so far: " + o.trial.message
	}
	return d.tryFrom(o.trial.retryAt, now), true
}

// tryFrom tries the credential when the time has come.
func (d decision) tryFrom(at, now time.Time) decision {
	if now.Before(at) {
		d.Wake = kube.Earlier(d.Wake, at)
	} else {
		d.Do = try
	}
	return d
}

// decideToken covers what becomes of a registration token that is to buy a credential.
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
	case o.awaitsConfig(now):
		return decision{State: Waiting, Wake: o.appeared.Add(configDelay),
			Reason: fmt.Sprintf("waiting for the configmap %s/%s that belongs to secret %s", o.namespace, naming.AgentConfigMap, token)}
	case tried && o.join.result == final:
		return decision{State: Denied, Reason: o.join.message}
	case tried && now.Before(o.join.retryAt):
		return decision{State: Retrying, Reason: o.join.message, Wake: o.join.retryAt}
	case tried:
		return decision{State: Retrying, Token: register, Reason: o.join.message}
	case o.reconnecting:
		return decision{State: Joining, Token: register, Reason: fmt.Sprintf("the credential of %s has run out; proving to the hub by the key of this cluster that it is the same", o.record)}
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
		d.State, d.Reason = Left, fmt.Sprintf("this cluster has left the fleet; to join again, %s, else remove the agent with helm uninstall (%s)",
			remedy, o.trial.message)
	} else {
		d.Reason = fmt.Sprintf("the hub refuses the credential of %s and there is no secret %s: %s (%s)",
			o.record, token, remedy, o.trial.message)
	}
	return d.tryFrom(o.trial.retryAt, now)
}
