package agent

import (
	"context"
	"errors"
	"fmt"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/retry"
)

// A hub from muster restore has another API server, with other accounts. It refuses the credential
// of the lost hub. If the lost hub has given the agent a token of that API server, the agent of a
// Cluster registers there, and proves its key:
//
//	first address ── no answer for patience ──► further address ── 401 ──► Joining ──► Joined
//
// The agent of a MemberCluster does not register. It reads the credential that the restored hub has
// sealed to its key:
//
//	first address ── no answer for patience ──► further address ── 401 ──► opened, tried, stored ──► Joined
//
// The agent takes the answer only from a hub with the key and a higher term. It removes nothing. It
// keeps the credential of the lost hub, and shows this hub the higher term once it answers.

// unknownThere is the error of an API server that does not know the credential.
type unknownThere struct{ error }

// explained returns the error of a request in the words of the hub's settings.
func explained(session *hubclient.Session, err error) error {
	said := errors.New(session.Explain(err))
	if hubclient.Classify(err) == hubclient.Unauthorized {
		return unknownThere{said}
	}
	return said
}

// standbyToken opens the token for an address; "" if there is none for this agent.
func standbyToken(key *credential.AgentKey, server string, given *clusterv1beta1.StandbyToken) string {
	if key == nil || given == nil {
		return ""
	}
	token, err := key.OpenStandby(server, given.Sealed)
	if err != nil {
		return "" // the hub seals it again to the key in the next report
	}
	return token
}

// standbyRefusal returns the reason to refuse a hub at the address of a standby; "" if it is the
// successor of the obeyed hub.
func standbyRefusal(obeyed, offered *clusterv1beta1.HubTerm) string {
	switch {
	case obeyed == nil:
		return "this cluster remembers no term of its hub, so nothing proves that the hub there succeeds it"
	case !term.SameHub(obeyed, offered):
		return "the hub there does not have the key of " + term.Name(obeyed) + ", which this cluster obeys"
	}
	return term.Refusal(obeyed, offered)
}

// dialStandby connects to the API server at an address, with the token of the standby.
func (e *environment) dialStandby(to hubclient.Address, mode hubclient.TLSMode) (*hubclient.Hub, error) {
	return hubclient.Dial(hubclient.Target{
		Server: to.Server, CA: to.CA, Trust: hubclient.Trust{Mode: mode, Settings: movedSettings},
	}, to.Token, e.clock)
}

var errStandbyToken = errors.New("the API server there refuses the credential and the token of the standby: create another with muster " +
	"hub standby-token")

// standbyAnswers returns an error unless the API server at an address accepts its token. The token
// must have the right to register in the workspace of the credential.
func (e *environment) standbyAnswers(ctx context.Context, to hubclient.Address, c hubclient.Credential, mode hubclient.TLSMode) error {
	hub, err := e.dialStandby(to, mode)
	if err != nil {
		return err
	}
	defer hub.Close()
	allowed, err := hub.MayRegister(ctx, c.Workspace)
	switch {
	case hubclient.Classify(err) == hubclient.Unauthorized:
		return errStandbyToken
	case err != nil:
		return errors.New(hub.Explain(err))
	case !allowed:
		return fmt.Errorf("the token of the standby may not register in the workspace %s there: no hub with it was restored there, or it "+
			"has not given the right yet", c.Workspace)
	}
	return nil
}

// standbyAnswers is the check of a running session.
func (m *mover) standbyAnswers(ctx context.Context, to hubclient.Address) error {
	mode := m.mode.tlsMode(m.hub.Target().Trust.Mode, to.CA)
	if m.mode.exchanges {
		_, err := m.published(ctx, to, m.key(), mode)
		return err
	}
	return m.environment.standbyAnswers(ctx, to, *m.credential.Load(), mode)
}

// key returns the key of the agent; nil if it has none.
func (s *session) key() *credential.AgentKey {
	if s.issued == nil {
		return nil
	}
	return s.issued.key
}

// standbyVersion is the prefix of the version of a join with a token of a standby.
const standbyVersion = "standby/"

// comeToStandby lets an agent without a hub join the restored hub at a further address.
func (r *registration) comeToStandby(o *observation) {
	if o.trial.result != unreachable || o.trial.standby == nil {
		return
	}
	o.reconnecting, o.atStandby = true, true
	o.bootstrap = join.AtStandby(o.stored, *o.trial.standby)
	o.observed.bootstrap.version = standbyVersion + o.trial.standby.Server + "/" + o.trial.version
	o.config.Mode = r.tlsMode(r.trust(*o, o.stored).Mode, o.bootstrap.CA)
}

// succeedsAt reports whether a credential is for the successor of a lost hub: the same Cluster, at
// an address that the lost hub has named.
func succeedsAt(former, now hubclient.Credential) bool {
	return former.Record() == now.Record() && former.Addresses.Fallback(now.Server) > 0
}

// tellLost shows the higher term to a lost hub, as soon as it answers. The hub then stops.
func (d *departure) tellLost(ctx context.Context, former hubclient.Credential, trust hubclient.Trust) {
	log := d.logger(former.Record(), former.Server)
	log.Info("The hub is the successor of the lost hub: the deliveries stay")
	for backoff := retry.Moving(); ctx.Err() == nil; {
		from, err := hubclient.NewSession(former, trust, d.clock)
		if err == nil {
			if err = from.Ask(ctx); err == nil {
				err = from.ReportTerm(ctx, d.terms.get())
			}
			from.Close()
		}
		switch {
		case err == nil:
			log.Info("The lost hub is back, and knows the term of its successor")
			return
		case hubclient.Classify(err).Refuses():
			log.Info("The lost hub is back, and refuses the former credential", "reason", err.Error())
			return
		}
		_ = retry.Wait(ctx, d.clock, backoff.Step()) // the loop ends with ctx
	}
}
