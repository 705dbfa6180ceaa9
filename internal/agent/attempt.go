package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/retry"
)

// attempt is the last try of a credential or registration token.
type attempt struct {
	// version is the version of the tried object; any other version is untried.
	version string
	result  result
	message string
	// retryAt is the time of the next try.
	retryAt time.Time
	// left is set if the hub had requested this cluster to leave.
	left bool
	// standby is the further address of a restored hub, with a token for it; nil if there is none.
	standby *hubclient.Address
}

// try verifies the stored credential with the hub. If the hub refuses a credential it issued in
// exchange for a user's token, the agent tries to rejoin by its key. It then tries the user's
// token.
func (a *Agent) try(ctx context.Context, o observation, state State) outcome {
	stored := a.tryAddresses(ctx, o, o.stored, state)
	if stored.result == refused && a.mode.exchanges && o.stored.Reconnect != "" && ctx.Err() == nil {
		back := a.comeBack(ctx, o, state)
		if back.result == accepted {
			return back
		}
		stored.message += "; " + back.message
	}
	if stored.result == accepted || stored.result == unreachable || o.given == nil || ctx.Err() != nil {
		return stored
	}
	given := a.tryAddresses(ctx, o, *o.given, state)
	if given.result == accepted {
		a.log.Info("Returned to the token from the user's Secret", "secret", a.mode.credentialRef(), "reason", stored.message)
	} else {
		given.message += "; " + stored.message
	}
	return given
}

// tryAddresses tries a credential at the address from the hub. If the hub does not answer there, it
// tries the user's address, and then the other addresses of the hub.
func (a *Agent) tryAddresses(ctx context.Context, o observation, c hubclient.Credential, state State) outcome {
	stored := a.tryAt(ctx, o, c, state)
	if stored.result != unreachable || ctx.Err() != nil {
		return stored
	}
	if o.fallback == nil {
		return a.tryFallbacks(ctx, o, c, stored)
	}
	configured := a.tryAt(ctx, o, o.atFallback(c), state)
	if configured.result == accepted {
		return configured
	}
	configured.message = stored.message + "; at the configured address: " + configured.message
	if configured.result == unreachable {
		return a.tryFallbacks(ctx, o, c, configured)
	}
	return configured
}

// atFallback returns a credential with the user's address.
func (o observation) atFallback(c hubclient.Credential) hubclient.Credential {
	c.Server, c.CA, c.Mode = o.fallback.Server, o.fallback.CA, o.fallback.Mode
	return c
}

// tryAt tries a credential at its address. Only the first try has a state of its own: it reports
// doubts and gives the hub time to resolve them. A refused credential is tried once.
func (a *Agent) tryAt(ctx context.Context, o observation, c hubclient.Credential, state State) outcome {
	c, err := a.identify(ctx, c)
	if err != nil {
		return outcome{result: refused, message: err.Error()}
	}
	session, err := hubclient.NewSession(c, a.mode.trust(o, c), a.clock)
	if err != nil {
		return outcome{result: unreachable, message: fmt.Sprintf("secret %s: %v", a.mode.credentialRef(), err)}
	}
	var r hubclient.Result
	if state == Waiting || state == Left {
		err = session.Ask(ctx)
		r = hubclient.Classify(err)
	} else {
		r, err = session.Verify(ctx, func(err error) {
			if state == Trying {
				_, sentence := a.mode.explainRefusal(session, hubclient.Classify(err), err)
				a.status.set(state, sentence)
			}
		})
	}
	if r == hubclient.Accepted {
		if err = a.terms.accept(ctx, session); err == nil {
			return outcome{result: accepted, session: session}
		}
		session.Close()
		return outcome{result: unreachable, message: "remembering the term of the hub: " + err.Error()}
	}
	defer session.Close()
	if r.Refuses() {
		answer, message := a.mode.explainRefusal(session, r, err)
		return outcome{result: answer, message: message}
	}
	return outcome{result: unreachable, message: session.Explain(err) + "; the credential is kept"}
}

// register joins, and stores the credential before any other use.
func (a *Agent) register(ctx context.Context, o observation) outcome {
	key, err := a.member.AgentKey(ctx)
	if apierrors.IsForbidden(err) { // the chart of an earlier version
		a.log.Info("Registering without a key, so the hub cannot recognize this agent later: upgrade the chart to grant the right",
			"secret", a.member.Namespace+"/"+naming.AgentKeySecret)
	} else if err != nil {
		return outcome{result: unreachable, message: err.Error()}
	}
	joiner := join.Joiner{
		Member: a.member, Bootstrap: o.bootstrap, Config: o.config, Key: key, Hostname: a.hostname, Clock: a.clock,
		Progress: a.status.setRegistering,
	}
	session, err := joiner.Join(ctx)
	if err != nil {
		end := outcome{result: unreachable, message: err.Error()}
		var refusal *join.Refusal
		if errors.As(err, &refusal) {
			end.result = refused
			if refusal.Final && !o.reconnecting { // the hub may let it come back later
				end.result = final
			}
		}
		return end
	}
	if refused := a.refuseTerm(ctx, session, o.atStandby); refused != nil {
		session.Close()
		return *refused
	}
	session.Credential.Former = o.former(session.Credential)
	secret, err := session.Credential.Secret(a.member.Namespace)
	if err == nil {
		err = a.storeGranted(ctx, secret)
	}
	if err == nil {
		err = a.terms.accept(ctx, session)
	}
	if err != nil {
		session.Close()
		return outcome{result: unreachable, message: err.Error()}
	}
	return outcome{result: accepted, session: session, boughtWith: o.observed.bootstrap.version}
}

// former returns the credential of the membership that a new one replaces; nil if there is none to
// leave. The credential stays stored until then, so a restart of the agent does not lose it.
func (o observation) former(next hubclient.Credential) *hubclient.Credential {
	replaced := o.stored
	switch {
	case o.credential.version == "" || o.credential.problem != "" || replaced.Workspace == "":
		return nil
	case replaced.Server == next.Server && replaced.Record() == next.Record():
		return replaced.Former
	case o.trial.version == o.credential.version && (o.trial.left || o.trial.result != accepted && o.trial.result != unreachable):
		return nil // its hub refuses it, or the cluster has left
	}
	replaced.Former = nil
	return &replaced
}

// refuseTerm returns the outcome of a registration with a hub that the member does not obey; nil if
// it obeys. The agent keeps its credential of the other hub, and shows the hub the higher term.
func (a *Agent) refuseTerm(ctx context.Context, session *hubclient.Session, atStandby bool) *outcome {
	if err := a.terms.load(ctx); err != nil {
		return &outcome{result: unreachable, message: err.Error()}
	}
	refusal := a.terms.refusal(session.Report)
	if atStandby {
		refusal = standbyRefusal(a.terms.get(), session.Report.Spec.HubTerm)
	}
	if refusal == "" {
		return nil
	}
	if err := session.ReportTerm(ctx, a.terms.get()); err != nil {
		a.log.Info("Failed to show the higher term to a hub", "hub", session.Server(), "reason", session.Explain(err))
	}
	end := &outcome{result: final, message: "the hub at " + session.Server() + " is refused: " + refusal + remedyFenced}
	if atStandby { // nothing on this cluster changes when the hub there is another one
		end.result = refused
	}
	return end
}

// storeGranted stores the credential and retries until it succeeds, because the hub may not grant
// another.
func (a *Agent) storeGranted(ctx context.Context, secret *corev1.Secret) error {
	for backoff := retry.Unreachable(); ; {
		err := a.member.Store(ctx, secret)
		if err == nil || ctx.Err() != nil {
			return err
		}
		a.status.setRegistering("granted, but the credential cannot be kept: " + err.Error())
		if err := retry.Wait(ctx, a.clock, backoff.Step()); err != nil {
			return err
		}
	}
}

// deleteToken deletes an unneeded registration token. Unless the token has just bought the session,
// the hub must first confirm the credential in use.
func (a *Agent) deleteToken(ctx context.Context, session *hubclient.Session, o observation, boughtWith string) outcome {
	token := a.member.Namespace + "/" + naming.AgentBootstrapSecret
	if o.observed.bootstrap.version != boughtWith {
		stored := *session // other goroutines use the session meanwhile
		stored.Credential = o.stored
		r, err := stored.Verify(ctx, func(error) {})
		switch {
		case r.Refuses():
			answer, message := a.mode.explainRefusal(&stored, r, err)
			return outcome{result: answer, message: message}
		case r != hubclient.Accepted:
			return outcome{result: unreachable,
				message: fmt.Sprintf("secret %s is kept until the hub confirms the credential in use: %s", token, stored.Explain(err))}
		}
	}
	if err := a.member.DeleteBootstrapSecret(ctx, o.observed.bootstrap.version); err != nil {
		return outcome{result: unreachable, message: err.Error()}
	}
	a.log.Info("Registration token forgotten", "secret", token)
	return outcome{result: accepted}
}
