package agent

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/retry"
)

// activity is a task under way.
type activity struct {
	do task
	// of is the version of what it was begun with.
	of     string
	cancel context.CancelFunc
	ended  chan outcome
}

// outcome is what an activity found out.
type outcome struct {
	activity *activity
	verdict  verdict
	message  string
	// left says that the hub had asked this cluster to leave.
	left bool
	// session is the one that was accepted, token the version of the registration token that bought it, if it is new.
	session *remote.Session
	token   string
}

// act makes what was decided the only thing that goes on.
func (a *Agent) act(ctx context.Context, d decision, s seen) {
	of := ""
	switch d.Do {
	case try:
		of = s.credential.version
	case register:
		of = s.joinVersion()
	case work:
		a.door.tidy()
	case idle:
	}
	if a.current != nil && a.current.do == d.Do && a.current.of == of {
		// It has told more than the decision knows.
		return
	}
	a.stop()
	a.standing.enter(d.State, d.Reason)
	if d.Do == idle {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	begun := &activity{do: d.Do, of: of, cancel: cancel, ended: make(chan outcome, 1)}
	a.current = begun
	session, token := a.session, a.token
	go func() {
		var result outcome
		switch begun.do {
		case try:
			result = a.try(ctx, s, d.State)
		case register:
			result = a.register(ctx, s)
		case work, idle:
			result = a.work(ctx, session, token)
		}
		result.activity = begun
		begun.ended <- result
	}()
}

// stop ends the activity and waits for it; what it found out no longer matters.
func (a *Agent) stop() {
	if a.current == nil {
		return
	}
	a.current.cancel()
	result := <-a.current.ended
	if result.session != nil && result.session != a.session {
		result.session.Close()
	}
	a.current = nil
}

// learn remembers how an activity ended.
func (a *Agent) learn(o outcome) {
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
			a.join, a.trial, a.session, a.token = attempt{}, tried, o.session, o.token
		}
	case try:
		tried.left = a.trial.left && o.verdict != accepted
		if a.session != nil {
			a.session.Close()
		}
		a.trial, a.session, a.token = tried, o.session, ""
	case work, idle:
		// The session that ran was refused.
		tried.of = a.door.spent(a.trial.of)
		a.session.Close()
		a.trial, a.session = tried, nil
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
		Member: a.member, Bootstrap: s.bootstrap, Config: s.config, Hostname: a.hostname, Clock: a.clock,
		Progress: func(sentence string) { a.standing.enter(Joining, sentence) },
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
	return outcome{verdict: accepted, session: session, token: s.observed.bootstrap.version}
}

// keep stores the credential, however long it takes: the hub has granted it and may not grant another.
func (a *Agent) keep(ctx context.Context, secret *corev1.Secret) error {
	for pace := retry.Unreachable(); ; {
		err := a.member.Store(ctx, secret)
		if err == nil || ctx.Err() != nil {
			return err
		}
		a.standing.enter(Joining, "granted, but the credential cannot be kept: "+err.Error())
		if err := retry.Wait(ctx, a.clock, pace.Step()); err != nil {
			return err
		}
	}
}
