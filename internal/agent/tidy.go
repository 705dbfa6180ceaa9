package agent

import (
	"context"

	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/naming"
)

// tidy keeps the agent's namespace as it has to be once it has joined: no registration token, and its credential in place.
func (r *runner) tidy(ctx context.Context) {
	pace, stored, said := retry.Unreachable(), false, ""
	for {
		err := r.forget(ctx)
		if err == nil {
			stored, err = r.restore(ctx, stored)
		}
		if ctx.Err() != nil {
			return
		}
		if text(err) != said {
			said = text(err)
			r.log.Info("tidying up", "failing", said)
		}
		if err != nil {
			if retry.Wait(ctx, r.clock, pace.Step()) != nil {
				return
			}
			continue
		}
		pace = retry.Unreachable()
		select {
		case <-ctx.Done():
			return
		case <-r.tidyUp:
		}
	}
}

// forget deletes the registration token whenever there is one.
func (r *runner) forget(ctx context.Context) error {
	secret, _ := r.bootstrap.Get()
	if secret == nil {
		return nil
	}
	if err := r.member.Forget(ctx); err != nil {
		return err
	}
	name := r.member.Namespace + "/" + naming.AgentBootstrapSecret
	if b, err := join.ParseBootstrap(secret); err == nil && b.Server != r.session.Server() {
		r.log.Info("registration token for another hub forgotten, because this cluster is registered: to move it, uninstall the chart, "+
			"delete secret "+naming.AgentSecret+", and install it again", "secret", name, "hub", b.Server, "registered", r.session.Server())
		return nil
	}
	r.log.Info("registration token forgotten", "secret", name)
	return nil
}

// restore puts the credential back if somebody deleted it; without it the next start would have nothing.
func (r *runner) restore(ctx context.Context, seen bool) (bool, error) {
	if secret, _ := r.credential.Get(); secret != nil {
		return true, nil
	}
	if !seen {
		// The watch has not shown yet what the join stored.
		return false, nil
	}
	secret, err := r.held.Load().Secret(r.member.Namespace)
	if err != nil {
		return true, err
	}
	if err := r.member.Store(ctx, secret); err != nil {
		return true, err
	}
	r.log.Info("credential restored, because somebody deleted it", "secret", r.member.Namespace+"/"+naming.AgentSecret)
	return false, nil
}
