package agent

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/retry"
)

// restoreDelay is the time from a credential going missing to its restoration. An agent of Rancher
// Fleet deletes the existing credential when it registers, then stores its own.
const restoreDelay = 5 * time.Second

// restorer restores the stored credential of a joined agent.
type restorer struct {
	*session
	// secret is the Secret with the credential; read parses it.
	secret *kubeclient.Mirror[*corev1.Secret]
	read   func(*corev1.Secret) (hubclient.Credential, error)
	// stored is set once the watch has shown the credential.
	stored bool
	// missing is the start of the credential's absence; zero if it exists.
	missing time.Time
}

func (r *restorer) run(ctx context.Context) {
	backoff, logged := retry.Unreachable(), ""
	for ctx.Err() == nil {
		err := r.restore(ctx)
		if ctx.Err() != nil {
			return
		}
		if before := logged; text(err) != before {
			if logged = text(err); err != nil {
				r.log.Info("Failed to restore the credential", "reason", logged)
			}
		}
		if err != nil {
			_ = retry.Wait(ctx, r.clock, backoff.Step()) // the loop ends with the context
			continue
		}
		backoff = retry.Unreachable()
		r.wait(ctx)
	}
}

// wait returns after a possible change of the credential, or at the end of restoreDelay.
func (r *restorer) wait(ctx context.Context) {
	deadline := r.missing
	if !deadline.IsZero() {
		deadline = deadline.Add(restoreDelay)
	}
	due, stop := retry.Timer(r.clock, deadline)
	defer stop()
	select {
	case <-ctx.Done():
	case <-r.mode.credentialChanged:
	case <-due:
	}
}

// restore stores the credential again after its deletion: otherwise the next start would have none.
func (r *restorer) restore(ctx context.Context) error {
	if r.mode.exchanges && r.credential.Load().Sequence == 0 {
		return nil // the token belongs to the user
	}
	if r.uninstalling() {
		return nil // Kubernetes deletes the credential with the agent
	}
	if secret, _ := r.secret.Get(); secret != nil {
		r.stored, r.missing = true, time.Time{}
		if hubclient.Outdated(secret) {
			return r.changeCredential(ctx, func(*hubclient.Credential) {})
		}
		// Another agent of this cluster, before or after this one, has stored a newer credential of the
		// same account.
		if stored, err := r.read(secret); err == nil {
			r.adoptStored(stored)
		}
		return nil
	}
	switch {
	case !r.stored: // the watch has not shown the credential of the join yet
		return nil
	case r.missing.IsZero():
		r.missing = r.clock.Now()
		return nil
	case r.clock.Since(r.missing) < restoreDelay:
		return nil
	}
	if err := r.changeCredential(ctx, func(*hubclient.Credential) {}); err != nil {
		return err
	}
	r.stored, r.missing = false, time.Time{}
	r.log.Info("Credential restored after its deletion", "secret", r.mode.credentialRef())
	return nil
}
