package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/retry"
)

// A hub names further addresses of itself in the report. The agent stores them with its credential,
// and takes addresses from nowhere else. If its address does not answer for a time, it tries the
// others in order, with the same credential:
//	first address ── no answer, or fenced, for patience ──► next address with the same hub
//	      ▲                                                  │
//	      └─────── answers after returnFactor waits ─────────┘
//
// Only a hub with the key and at least the term that the member obeys is the same hub.

// returnFactor is the wait between two tries of the first address, in waits for a fallback.
const returnFactor = 5

// knownAddresses returns the addresses in a report of the hub; none if it names no fallbacks. A
// token for an address counts if the key opens it.
func knownAddresses(first address, report *clusterv1beta1.InternalMemberCluster, key *credential.AgentKey) (hubclient.Addresses, error) {
	requested := report.Spec.Hub
	if requested == nil || requested.APIServerURL == "" || len(requested.Fallbacks) == 0 {
		return hubclient.Addresses{}, nil
	}
	named := hubclient.Addresses{
		List: []hubclient.Address{{Server: first.server, CA: first.ca}}, AfterSeconds: requested.FallbackAfterSeconds, Report: report.UID,
	}
	for _, fallback := range requested.Fallbacks {
		server, err := credential.ParseServer(fallback.APIServerURL)
		if err != nil {
			return hubclient.Addresses{}, fmt.Errorf("the hub sets the fallback %q: %w", fallback.APIServerURL, err)
		}
		ca, err := credential.ParseCA(fallback.APIServerCA)
		if err != nil {
			return hubclient.Addresses{}, fmt.Errorf("the hub sets an unusable CA for the fallback %s: %w", server, err)
		}
		if len(ca) == 0 {
			ca = first.ca
		}
		named.List = append(named.List, hubclient.Address{Server: server, CA: ca, Token: standbyToken(key, server, fallback.StandbyToken)})
	}
	return named, nil
}

// fallbackRefusal returns the reason not to go to the hub at a fallback address; "" if the member
// obeys it.
func (t *terms) fallbackRefusal(report *clusterv1beta1.InternalMemberCluster) string {
	obeyed, offered := t.get(), report.Spec.HubTerm
	if obeyed != nil && !term.SameHub(obeyed, offered) {
		return "the hub there does not have the key of " + term.Name(obeyed) + ", which this cluster obeys"
	}
	return term.Refusal(obeyed, offered)
}

// patience returns the time without an answer before this agent uses the next address. It differs
// by agent, so a fleet does not move in step.
func (e *environment) patience(known hubclient.Addresses) time.Duration {
	return known.After() + time.Duration(e.spread*float64(known.After())/2)
}

// loss describes a hub without an answer at the address in use.
type loss struct {
	// since is the start; zero while the hub answers. next is the time of the next check.
	since, next time.Time
	backoff     wait.Backoff
	// why is the error of the last check.
	why string
}

// check verifies after a failure that the hub answers. Otherwise the agent uses the next address
// after its patience.
func (m *mover) check(ctx context.Context) {
	addresses := m.credential.Load().Addresses
	if len(addresses.List) < 2 || m.answers(ctx) || ctx.Err() != nil {
		m.loss = loss{}
		return
	}
	now := m.clock.Now()
	if m.loss.since.IsZero() {
		m.loss.since, m.loss.backoff = now, retry.Unreachable()
	}
	due := m.loss.since.Add(m.patience(addresses))
	if !now.Before(due) && m.fallBack(ctx, addresses) {
		m.loss = loss{}
		return
	}
	m.loss.next = m.clock.Now().Add(m.loss.backoff.Step())
	if now.Before(due) && due.Before(m.loss.next) {
		m.loss.next = due
	}
}

// answers reports whether the hub answers at the address in use. A hub whose orders the member
// refuses does not.
func (m *mover) answers(ctx context.Context) bool {
	if m.loss.why = m.fencedMessage(); m.loss.why != "" {
		return false
	}
	hub := *m.hub // Ask writes the report to it
	hub.Credential = *m.credential.Load()
	err := hub.Ask(ctx)
	if hubclient.Classify(err) != hubclient.Unreachable {
		return true
	}
	m.loss.why = hub.Explain(err)
	return false
}

// fallBack moves to the first other address with the same hub; it returns false if there is none.
// The session then ends: a watch cannot continue on an API server that was restored elsewhere.
func (m *mover) fallBack(ctx context.Context, addresses hubclient.Addresses) bool {
	used, why := m.hub.Target(), m.loss.why
	for _, to := range addresses.List {
		if to.Server == used.Server {
			continue
		}
		err := m.move(ctx, address{server: to.Server, ca: to.CA, mode: m.mode.tlsMode(used.Trust.Mode, to.CA)}, m.terms.fallbackRefusal)
		if err == nil {
			m.log.Info("The hub did not answer at the previous address", "reason", why)
			kubeclient.Notify(m.relist)
			return true
		}
		if errors.As(err, &unknownThere{}) && to.Token != "" {
			if err = m.standbyAnswers(ctx, to); err == nil { // another activity joins the hub there, with the token
				kubeclient.Notify(m.standby)
				return false
			}
		}
		if ctx.Err() != nil {
			return false
		}
		m.log.V(1).Info("Failed to use another address of the hub", "to", to.Server, "reason", err.Error())
	}
	return false
}

// retryIn returns the wait for another try of the requested address.
func (m *mover) retryIn() time.Duration {
	if known := m.credential.Load().Addresses; known.Fallback(m.hub.Server()) > 0 {
		return wait.Jitter(returnFactor*known.After(), 0.3)
	}
	return m.backoff.Step()
}

// base returns the address behind the empty fields of a request: the first one, if the agent uses
// one of its fallbacks.
func (m *mover) base(used address) address {
	known, requested := m.credential.Load().Addresses, m.desired.Spec.Hub
	if known.Fallback(used.server) > 0 && requested != nil && requested.APIServerURL == known.List[0].Server {
		used.server, used.ca = known.List[0].Server, known.List[0].CA
	}
	return used
}

// keepAddresses stores the addresses of a request with the credential, unless they are stored.
func (m *mover) keepAddresses(ctx context.Context, first address) error {
	known, err := knownAddresses(first, m.desired, m.key())
	if err != nil || bytes.Equal(known.Encode(), m.credential.Load().Addresses.Encode()) {
		return err
	}
	return m.changeCredential(ctx, func(c *hubclient.Credential) { c.Addresses = known })
}

// showTerm proves to an old hub that the member obeys a higher term. The hub then stops.
func (m *mover) showTerm(ctx context.Context, session *hubclient.Session) {
	obeyed := m.terms.get()
	if !term.Supersedes(obeyed, session.Report.Spec.HubTerm) {
		return
	}
	if err := session.ReportTerm(ctx, obeyed); err != nil {
		m.log.Info("Failed to show the higher term to a hub", "hub", session.Server(), "reason", session.Explain(err))
	}
}

// tryFallbacks tries a credential at the other addresses of its hub, once the hub has not answered
// for the patience of this agent. A refusal there never costs the agent its credential.
func (a *Agent) tryFallbacks(ctx context.Context, o observation, c hubclient.Credential, so outcome) outcome {
	if len(c.Addresses.List) < 2 {
		return so
	}
	since := o.unreachableSince
	if since.IsZero() {
		since = a.clock.Now()
	}
	if due := since.Add(a.patience(c.Addresses)); a.clock.Now().Before(due) {
		so.fallbackAt = due
		return so
	}
	for _, to := range c.Addresses.List {
		if ctx.Err() != nil || to.Server == c.Server || o.fallback != nil && to.Server == o.fallback.Server {
			continue
		}
		next := c
		mode := a.mode.trust(o, c).Mode
		a.mode.adoptAddress(&next, address{server: to.Server, ca: to.CA, mode: a.mode.tlsMode(mode, to.CA)})
		session, err := a.tryFallback(ctx, o, next)
		if err == nil {
			return outcome{result: accepted, session: session}
		}
		if errors.As(err, &unknownThere{}) && to.Token != "" {
			if a.mode.exchanges {
				if session, err = a.joinSuccessor(ctx, o, to, next); err == nil {
					return outcome{result: accepted, session: session}
				}
			} else if err = a.standbyAnswers(ctx, to, c, next.Mode); err == nil {
				so.standby = &to
				return so
			}
		}
		so.message += "; at " + to.Server + ": " + err.Error()
	}
	return so
}

// tryFallback returns a session with the hub at a fallback address, and stores this address.
func (a *Agent) tryFallback(ctx context.Context, o observation, c hubclient.Credential) (*hubclient.Session, error) {
	session, err := hubclient.NewSession(c, a.mode.trust(o, c), a.clock)
	if err != nil {
		return nil, err
	}
	if err = session.Ask(ctx); err != nil {
		err = explained(session, err)
	} else if session.Report.UID != c.Addresses.Report {
		err = errAnotherHub(session)
	} else if err = a.terms.load(ctx); err == nil {
		if refusal := a.terms.fallbackRefusal(session.Report); refusal != "" {
			err = errors.New(refusal)
		} else {
			err = a.terms.accept(ctx, session)
		}
	}
	if err == nil { // the agent observes the stored credential at once and tries it, and so cancels this try
		err = a.mode.storeCredential(context.WithoutCancel(ctx), c)
	}
	if err != nil {
		session.Close()
		return nil, err
	}
	a.log.Info("Moved to another address of the hub", "to", c.Server)
	return session, nil
}
