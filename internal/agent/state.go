package agent

import (
	"fmt"
	"time"

	"github.com/muster-fleet/muster/internal/naming"
)

// The life of an agent of a Cluster; state_member.go has that of a MemberCluster. What is on the member decides, so that it goes on where it was after every restart:
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
// BadInput stands for a Secret or ConfigMap that cannot be read, until it changes. While Joined, another agent may be at work
// (Standby), or the hub may ask the cluster to leave (Left).
//
// A registration token is looked at in every state, also beside a credential that works or whose hub is unreachable:
//
//	Secret appears ──► bought the credential in use? ──yes──► left over: deleted once the hub has confirmed the credential
//	                          │ no: another token, hub, workspace or clientID
//	                          ▼
//	                       Joining ◄──► Retrying, Denied     the membership so far goes on and says so
//	                          │ granted, tried, stored
//	                          ▼
//	                     Joined by the new credential; the membership so far is left, unless it is the same one

// State is where an agent stands.
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

// verdict is how an attempt ended.
type verdict string

const (
	accepted    verdict = "accepted"
	unreachable verdict = "unreachable"
	refused     verdict = "refused"
	// absent: the hub has nothing yet for who asks; somebody may be about to change that.
	absent verdict = "absent"
	final  verdict = "final"
)

// attempt is what is remembered of the last try of something.
type attempt struct {
	// of is the version of what was tried; what has another version is untried.
	of      string
	verdict verdict
	message string
	// retryAt is when it is tried again.
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

// observed is everything that decides.
type observed struct {
	namespace string
	// source names the Secret with the token of a MemberCluster's agent, which has neither bootstrap nor config.
	source string
	// synced is true once all three objects have been looked up; failure says why not.
	synced  bool
	failure string

	credential, bootstrap, config object
	// record names the Cluster of the stored credential.
	record string
	// standby says that another agent beats for this member.
	standby bool
	// replaced says that another agent of this cluster has registered it anew, so that the stored credential is not the one in use.
	replaced bool
	// used says that the credential was bought with just the registration token that is there.
	used bool
	// appeared is when the registration token was first seen; zero if the session was bought with it and nobody waits for it to be there.
	appeared time.Time
	// unconfigured says that the ConfigMap that was installed with the registration token has not come yet.
	unconfigured bool
	// joining is the version of what a join under way was begun with.
	joining string
	// trial is the last try of a credential, join that of a registration token, to register with it or to delete it.
	trial, join attempt
}

// joinVersion is the version of what a join is made with.
func (o observed) joinVersion() string { return o.bootstrap.version + "/" + o.config.version }

// task is what the agent does in a state.
type task string

const (
	// idle waits for one of the three objects to change, or for its time.
	idle task = ""
	// try asks the hub whether it accepts the stored credential.
	try task = "try"
	// register joins.
	register task = "register"
	// forget deletes a registration token that is left over.
	forget task = "forget"
	// work beats and reports.
	work task = "work"
)

// decision is the state, why in a sentence, what to do, and when time alone may change it.
type decision struct {
	State  State
	Reason string
	// Do is what to do with the credential, Token what to do with the registration token.
	Do, Token task
	// Registering says of an agent that has joined where its registration with another token stands; empty if there is none.
	Registering string
	Wake        time.Time
}

const (
	// spare is how long a registration token that is left over is kept. It may have been given because the credential was just revoked, which
	// an API server takes up to 10 s to notice; and Helm, which has just made it, waits to see it.
	spare = 15 * time.Second
	// settle is how long the ConfigMap may come after the registration token: Helm makes the Secret first.
	settle = 15 * time.Second
)

// decide is total: it has an answer for everything that may be observed.
func decide(o observed, now time.Time) decision {
	switch {
	case o.trial.verdict == accepted && !o.replaced:
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

// decideJoined covers an agent whose credential works. A registration token beside it changes nothing until it has bought another one.
func decideJoined(o observed, now time.Time) decision {
	d := decision{State: Joined, Do: work, Reason: "the hub accepts the credential of " + o.record + "; sending the first beat"}
	token := o.namespace + "/" + naming.AgentBootstrapSecret
	tried := o.join.of == o.joinVersion() && o.join.verdict != ""
	switch {
	case !o.synced, o.standby, o.bootstrap.version == "":
	case o.config.problem != "":
		d.Registering = "secret " + token + " is not used: " + o.badConfig()
	case o.awaitsConfig(now):
		d.Wake = o.appeared.Add(settle)
	case o.used && tried && now.Before(o.join.retryAt):
		d.Wake, d.Registering = o.join.retryAt, o.join.message
	case o.used && now.Before(o.spared()):
		d.Wake = o.spared()
	case o.used:
		d.Token = forget
	default:
		beside := decideToken(o, now)
		d.Token, d.Wake, d.Registering = beside.Token, beside.Wake, "this cluster registers with another token: "+beside.Reason
	}
	return d
}

// spared is until when a registration token that is left over is kept.
func (o observed) spared() time.Time {
	if o.appeared.IsZero() {
		return time.Time{}
	}
	return o.appeared.Add(spare)
}

func (o observed) awaitsConfig(now time.Time) bool {
	return o.unconfigured && now.Before(o.appeared.Add(settle))
}

// decideCredential covers a stored credential that is not known to be refused.
func decideCredential(o observed, now time.Time) (decision, bool) {
	tried := o.trial.of == o.credential.version && o.trial.verdict != ""
	switch {
	case o.credential.version == "" || o.credential.problem != "":
		return decision{}, false
	case !tried && o.joining != "" && o.joining == o.joinVersion():
		// A join under way is not disturbed by the credential that it stores itself.
		return decision{State: Joining, Token: register, Reason: asking}, true
	case !tried:
		return decision{State: Trying, Do: try, Reason: "trying the stored credential of " + o.record}, true
	case o.trial.verdict != unreachable:
		return decision{}, false
	}
	d := decision{State: Unreachable, Reason: o.trial.message}
	if o.bootstrap.version != "" && !o.used {
		// The hub may be gone for good, which is why there is another token.
		d = decideToken(o, now)
		d.Reason += "; meanwhile, of the hub so far: " + o.trial.message
	}
	if now.Before(o.trial.retryAt) {
		d.Wake = earlier(d.Wake, o.trial.retryAt)
	} else {
		d.Do = try
	}
	return d, true
}

// earlier is the earlier of two times, of which the zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// decideToken covers what becomes of a registration token that is to buy a credential.
func decideToken(o observed, now time.Time) decision {
	token := o.namespace + "/" + naming.AgentBootstrapSecret
	tried := o.join.of == o.joinVersion() && o.join.verdict != ""
	switch {
	case o.bootstrap.version == "":
		return decideWaiting(o, now, token)
	case o.bootstrap.problem != "":
		return decision{State: BadInput, Reason: fmt.Sprintf("secret %s: %s", token, o.bootstrap.problem)}
	case o.awaitsConfig(now):
		return decision{State: Waiting, Wake: o.appeared.Add(settle),
			Reason: fmt.Sprintf("waiting for the configmap %s/%s that belongs to secret %s", o.namespace, naming.AgentConfigMap, token)}
	case tried && o.join.verdict == final:
		return decision{State: Denied, Reason: o.join.message}
	case tried && now.Before(o.join.retryAt):
		return decision{State: Retrying, Reason: o.join.message, Wake: o.join.retryAt}
	case tried:
		return decision{State: Retrying, Token: register, Reason: o.join.message}
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
	if now.Before(o.trial.retryAt) {
		d.Wake = o.trial.retryAt
	} else {
		d.Do = try
	}
	return d
}
