package agent

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/naming"
)

// spare is how long a registration token is kept that did not buy the credential in use. It may have been given because that
// one was just revoked, which an API server takes up to 10 s to notice.
const spare = 15 * time.Second

// tidier keeps the agent's namespace as it has to be once it has joined: no registration token, and its credential in place.
type tidier struct {
	*runner
	door *registration
	// token is the registration token last seen, since when.
	token string
	since time.Time
	// stored says that the watch has shown the credential.
	stored bool
}

func (t *tidier) run(ctx context.Context) {
	pace, said := retry.Unreachable(), ""
	for {
		wait, err := t.forget(ctx)
		if err == nil {
			err = t.restore(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if text(err) != said {
			said = text(err)
			t.log.Info("tidying up", "failing", said)
		}
		if err == nil {
			pace = retry.Unreachable()
		} else {
			wait = pace.Step()
		}
		if !t.pause(ctx, wait) {
			return
		}
	}
}

// pause returns when an object may have changed, or after d unless that is zero; false ends it all.
func (t *tidier) pause(ctx context.Context, d time.Duration) bool {
	var again <-chan time.Time
	if d > 0 {
		timer := t.clock.NewTimer(d)
		defer timer.Stop()
		again = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-t.door.tidyUp:
	case <-again:
	}
	return true
}

// forget deletes the registration token, once it is sure not to be needed; wait is when to look again.
func (t *tidier) forget(ctx context.Context) (wait time.Duration, err error) {
	secret, _ := t.door.bootstrap.Get()
	if secret == nil {
		return 0, nil
	}
	if secret.ResourceVersion != t.runner.token {
		if secret.ResourceVersion != t.token {
			t.token, t.since = secret.ResourceVersion, t.clock.Now()
		}
		if left := spare - t.clock.Since(t.since); left > 0 {
			return left, nil
		}
		if held, verdict, err := t.prove(ctx); verdict != remote.Accepted {
			poke(t.doubts)
			return 0, fmt.Errorf("keeping secret %s until the hub confirms the credential in use: %s", t.tokenName(), held.Explain(err))
		}
	}
	if err := t.member.Forget(ctx); err != nil {
		return 0, err
	}
	t.sayForgotten(secret)
	return 0, nil
}

func (t *tidier) sayForgotten(secret *corev1.Secret) {
	if b, err := join.ParseBootstrap(secret); err == nil && b.Server != t.session.Server() {
		t.log.Info("registration token for another hub forgotten, because this cluster is registered: to move it, uninstall the chart, "+
			"delete secret "+naming.AgentSecret+", and install it again", "secret", t.tokenName(), "hub", b.Server, "registered", t.session.Server())
		return
	}
	t.log.Info("registration token forgotten", "secret", t.tokenName())
}

func (t *tidier) tokenName() string { return t.member.Namespace + "/" + naming.AgentBootstrapSecret }

// restore puts the credential back if somebody deleted it; without it the next start would have nothing.
func (t *tidier) restore(ctx context.Context) error {
	if secret, _ := t.door.credential.Get(); secret != nil {
		t.stored = true
		return nil
	}
	if !t.stored {
		// The watch has not shown yet what the join stored.
		return nil
	}
	if err := t.change(ctx, func(*identity.Credential) {}); err != nil {
		return err
	}
	t.stored = false
	t.log.Info("credential restored, because somebody deleted it", "secret", t.member.Namespace+"/"+naming.AgentSecret)
	return nil
}
