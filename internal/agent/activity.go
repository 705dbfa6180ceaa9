package agent

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/report"
	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/naming"
)

// activity is a task under way.
type activity struct {
	do task
	// of is the version of what it was begun with.
	of     string
	cancel context.CancelFunc
	ended  chan outcome
}

// is says whether just this is under way.
func (y *activity) is(do task, of string) bool { return y != nil && y.do == do && y.of == of }

// end tells the outcome; never if nothing is under way.
func (y *activity) end() <-chan outcome {
	if y == nil {
		return nil
	}
	return y.ended
}

// outcome is what an activity found out.
type outcome struct {
	activity *activity
	verdict  verdict
	message  string
	// left says that the hub had asked this cluster to leave, asked is the report as last seen.
	left  bool
	asked *clusterv1beta1.InternalMemberCluster
	// session is the one that was accepted, bought the version of the registration token that bought it, if it is new.
	session *remote.Session
	bought  string
}

// version is that of what a task is done with.
func (s seen) version(do task) string {
	switch do {
	case try:
		return s.credential.version
	case register, forget:
		return s.joinVersion()
	case work, idle:
	}
	return ""
}

// act makes what was decided about the credential and about the registration token the only things that go on.
func (a *Agent) act(ctx context.Context, d decision, s seen) {
	if d.Do == work {
		a.door.tidy()
	}
	// What goes on has told more than the decision knows.
	goesOn, registers := a.current.is(d.Do, s.version(d.Do)), a.registering.is(d.Token, s.version(d.Token))
	if !goesOn {
		a.stop(&a.current)
	}
	if !registers {
		a.stop(&a.registering)
	}
	speaks := registers
	if d.Do == work || d.Token == idle {
		speaks = goesOn
	}
	if !speaks {
		a.standing.enter(d.State, d.Reason)
	}
	switch {
	case d.Do == work && !registers:
		a.standing.note(d.Registering)
	case d.Do != work:
		a.standing.note("")
	}
	if !goesOn {
		a.begin(ctx, &a.current, d.Do, d.State, s)
	}
	if !registers {
		a.begin(ctx, &a.registering, d.Token, d.State, s)
	}
}

// begin starts a task, if there is one.
func (a *Agent) begin(ctx context.Context, slot **activity, do task, in State, s seen) {
	if do == idle {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	begun := &activity{do: do, of: s.version(do), cancel: cancel, ended: make(chan outcome, 1)}
	*slot = begun
	session, departed := a.session, a.departed
	go func() {
		var result outcome
		switch do {
		case try:
			result = a.try(ctx, s, in)
		case register:
			result = a.register(ctx, s)
		case forget:
			result = a.forget(ctx, session, s)
		case work, idle:
			result = a.work(ctx, session, departed)
		}
		result.activity = begun
		begun.ended <- result
	}()
}

// stop ends an activity and waits for it; what it found out no longer matters, but for the report that it saw.
func (a *Agent) stop(slot **activity) {
	if *slot == nil {
		return
	}
	(*slot).cancel()
	result := <-(*slot).ended
	if result.session != nil && result.session != a.session {
		result.session.Close()
	}
	if result.asked != nil {
		a.asked = result.asked
	}
	*slot = nil
}

// learn remembers how an activity ended.
func (a *Agent) learn(ctx context.Context, o outcome) {
	o.activity.cancel()
	tried := attempt{of: o.activity.of, verdict: o.verdict, message: o.message, left: o.left}
	switch o.verdict {
	case accepted:
		a.calm()
	case unreachable:
		tried.retryAt = a.clock.Now().Add(a.unreachablePace.Step())
	case refused:
		tried.retryAt = a.clock.Now().Add(a.refusedPace.Step())
	case absent:
		tried.retryAt = a.clock.Now().Add(a.absentPace.Step())
	case final:
	}
	switch o.activity.do {
	case register:
		a.join = tried
		if o.verdict == accepted {
			a.join, a.trial, a.bought, a.former = attempt{}, tried, o.bought, a.with
			a.change(ctx, o.session)
		}
	case try:
		tried.left = a.trial.left && o.verdict != accepted
		a.trial, a.bought = tried, ""
		a.change(ctx, o.session)
	case forget:
		a.join = tried
		if o.verdict == refused {
			a.join = attempt{}
			a.stop(&a.current)
			a.lose(tried)
		}
	case work, idle:
		a.lose(tried)
	}
}

// lose gives up the session, which the hub refuses.
func (a *Agent) lose(tried attempt) {
	tried.of = a.door.spent(a.trial.of)
	a.session.Close()
	a.trial, a.session = tried, nil
}

// change puts a session, or none, in the place of the one so far, whose membership is left if the new one is another.
func (a *Agent) change(ctx context.Context, to *remote.Session) {
	a.stop(&a.current)
	from, asked := a.session, a.asked
	a.session, a.asked = to, nil
	if to != nil {
		a.asked = to.Report
	}
	switch {
	case from == nil:
	case to == nil, asked == nil, asked.UID == to.Report.UID, report.HasLeft(asked), from.Credential.Workspace == "":
		from.Close()
	default:
		a.leaveBehind(ctx, from, asked, to)
	}
}

// try asks the hub whether it accepts the stored credential: where the hub told the agent to reach it, and if nobody answers there, where
// the user did.
func (a *Agent) try(ctx context.Context, s seen, in State) outcome {
	told := a.tryAt(ctx, s, s.stored, in)
	if told.verdict != unreachable || s.fallback == nil || ctx.Err() != nil {
		return told
	}
	configured := a.tryAt(ctx, s, *s.fallback, in)
	if configured.verdict != accepted {
		configured.message = told.message + "; at the configured address: " + configured.message
	}
	return configured
}

// tryAt tries a credential at its address. Only the first try of it, which has a state of its own, tells doubts and gives the hub time to
// lift them; what was refused already is asked about once.
func (a *Agent) tryAt(ctx context.Context, s seen, credential identity.Credential, in State) outcome {
	session, err := remote.NewSession(credential, a.door.trust(s, credential), a.clock)
	if err != nil {
		return outcome{verdict: unreachable, message: fmt.Sprintf("secret %s: %v", a.door.source(), err)}
	}
	var v remote.Verdict
	if in == Waiting || in == Left {
		err = session.Ask(ctx)
		v = remote.Classify(err)
	} else {
		v, err = session.Prove(ctx, func(err error) {
			if in == Trying {
				_, sentence := a.door.refused(session, remote.Classify(err), err)
				a.standing.enter(in, sentence)
			}
		})
	}
	if v == remote.Accepted {
		return outcome{verdict: accepted, session: session}
	}
	defer session.Close()
	if v == remote.Unauthorized || v == remote.Forbidden || v == remote.NotFound {
		verdict, message := a.door.refused(session, v, err)
		return outcome{verdict: verdict, message: message}
	}
	return outcome{verdict: unreachable, message: session.Explain(err) + "; the credential is kept"}
}

// register joins, and keeps the credential before anything else is done with it.
func (a *Agent) register(ctx context.Context, s seen) outcome {
	joiner := join.Joiner{
		Member: a.member, Bootstrap: s.bootstrap, Config: s.config, Hostname: a.hostname, Clock: a.clock, Progress: a.standing.registering,
	}
	session, err := joiner.Join(ctx)
	if err != nil {
		var refusal *join.Refusal
		switch {
		case errors.As(err, &refusal) && refusal.Final:
			return outcome{verdict: final, message: refusal.Message}
		case errors.As(err, &refusal):
			return outcome{verdict: refused, message: refusal.Message}
		default:
			return outcome{verdict: unreachable, message: err.Error()}
		}
	}
	secret, err := session.Credential.Secret(a.member.Namespace)
	if err == nil {
		err = a.keep(ctx, secret)
	}
	if err != nil {
		session.Close()
		return outcome{verdict: unreachable, message: err.Error()}
	}
	return outcome{verdict: accepted, session: session, bought: s.observed.bootstrap.version}
}

// keep stores the credential, however long it takes: the hub has granted it and may not grant another.
func (a *Agent) keep(ctx context.Context, secret *corev1.Secret) error {
	for pace := retry.Unreachable(); ; {
		err := a.member.Store(ctx, secret)
		if err == nil || ctx.Err() != nil {
			return err
		}
		a.standing.registering("granted, but the credential cannot be kept: " + err.Error())
		if err := retry.Wait(ctx, a.clock, pace.Step()); err != nil {
			return err
		}
	}
}

// forget deletes a registration token that is left over. One that did not buy the session just now is kept until the hub confirms that
// it is not needed.
func (a *Agent) forget(ctx context.Context, session *remote.Session, s seen) outcome {
	token := a.member.Namespace + "/" + naming.AgentBootstrapSecret
	if version := s.observed.bootstrap.version; version != s.bought {
		held := *session // others use it meanwhile
		held.Credential = s.stored
		switch v, err := held.Prove(ctx, func(error) {}); v {
		case remote.Accepted:
		case remote.Unauthorized, remote.Forbidden, remote.NotFound:
			verdict, message := a.door.refused(&held, v, err)
			return outcome{verdict: verdict, message: message}
		default:
			return outcome{verdict: unreachable, message: fmt.Sprintf("secret %s is kept until the hub confirms the credential in use: %s", token, held.Explain(err))}
		}
	}
	if err := a.member.Forget(ctx, s.observed.bootstrap.version); err != nil {
		return outcome{verdict: unreachable, message: err.Error()}
	}
	a.log.Info("registration token forgotten", "secret", token)
	return outcome{verdict: accepted}
}
