// Package renewal exchanges the agent's token for a fresh one at two thirds of its life, unless the hub has issued another one by then. A hub of an
// earlier version does not, and lets the agents request tokens instead.
//
// Its invariant: a fresh token is stored before it is used, and the token before works until it expires, so that the agent may end at any
// point. Times are by the hub's clock, and a timer that stood still while the machine was suspended is noticed within an hour.
package renewal

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/retry"
)

// Renewer exchanges the agent's token for a fresh one before it expires.
type Renewer struct {
	// Token is the one in use.
	Token func() string
	// Request asks the hub for a token that lives so long.
	Request func(ctx context.Context, life time.Duration) (string, error)
	// Keep stores the token on the member, so that a restart finds it, and makes the agent show it from then on.
	Keep func(ctx context.Context, token string) error
	// Explain words an error for the log.
	Explain func(error) string
	// Now is the time by the hub's clock, which the times in a token are by.
	Now   func() time.Time
	Clock clock.Clock
}

// Run renews whenever it is due, until ctx ends or the token is one that never expires.
func (r *Renewer) Run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	for {
		current := r.Token()
		claims := credential.ClaimsOf(current)
		due := renewAt(claims, 2*rand.Float64()-1)
		if due.IsZero() {
			return
		}
		if retry.Until(ctx, r.Clock, r.Now, due) != nil {
			return
		}
		for backoff, failing := retry.Refused(), false; r.Token() == current; {
			fresh, err := r.renew(ctx, claims.Life())
			if err == nil {
				log.Info("credential renewed", "expires", credential.ClaimsOf(fresh).Expires)
				break
			}
			if !failing && ctx.Err() == nil {
				failing = true
				log.Info("credential renewal failing", "reason", r.Explain(err), "expires", claims.Expires)
			}
			// A token of minutes must not run out during a wait.
			if retry.Wait(ctx, r.Clock, min(backoff.Step(), claims.Life()/20)) != nil {
				return
			}
		}
	}
}

// renew leaves the older token alone, which works until it expires.
func (r *Renewer) renew(ctx context.Context, life time.Duration) (string, error) {
	token, err := r.Request(ctx, life)
	if err != nil {
		return "", err
	}
	return token, r.Keep(ctx, token)
}

// renewAt is when a token is renewed, by the hub's clock: at two thirds of its life, moved by spread (-1 to 1) times 5 % of
// it. Zero if it never has to be.
func renewAt(claims credential.Claims, spread float64) time.Time {
	whole := claims.Life()
	if whole == 0 {
		return time.Time{}
	}
	return claims.Issued.Add(whole * 2 / 3).Add(time.Duration(spread * 0.05 * float64(whole)))
}
