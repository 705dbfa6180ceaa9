package agent

import (
	"context"

	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/naming"
)

// tidier keeps the credential of an agent that has joined in its place.
type tidier struct {
	*runner
	door *registration
	// stored says that the watch has shown the credential.
	stored bool
}

func (t *tidier) run(ctx context.Context) {
	pace, said := retry.Unreachable(), ""
	for ctx.Err() == nil {
		err := t.restore(ctx)
		if ctx.Err() != nil {
			return
		}
		if text(err) != said {
			said = text(err)
			t.log.Info("restoring the credential", "failing", said)
		}
		if err != nil {
			_ = retry.Wait(ctx, t.clock, pace.Step()) // the loop ends with the context
			continue
		}
		pace = retry.Unreachable()
		select {
		case <-ctx.Done():
		case <-t.door.tidyUp:
		}
	}
}

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
