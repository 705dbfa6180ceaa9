// Package renewal exchanges the agent's token for a fresh one at two thirds of its life, unless the
// hub has issued another one by then. A hub of an earlier version does not issue any, and lets
// agents request tokens instead.
//
// Its invariant: a fresh token is stored before it is used, and the previous token works until it
// expires. The agent may therefore end at any point. Times come from the hub's clock. A timer
// stopped by a suspension of the machine is noticed within an hour.
package renewal

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/logging"
	"github.com/muster-fleet/muster/internal/retry"
)

// Renewer exchanges the agent's token for a fresh one before it expires.
type Renewer struct {
	// Token returns the token in use.
	Token func() string
	// Request requests a token with the given life from the hub.
	Request func(ctx context.Context, life time.Duration) (string, error)
	// Keep stores the token on the member, for the next restart, and makes the agent use it from then
	// on.
	Keep func(ctx context.Context, token string) error
	// Explain words an error for the log.
	Explain func(error) string
	// Now returns the time of the hub's clock, because the times in a token come from it.
	Now   func() time.Time
	Clock clock.Clock
}

// Run renews the token whenever it is due, until ctx ends or the token never expires.
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
		var outage logging.Outage
		for backoff := retry.Refused(); r.Token() == current; {
			fresh, err := r.renew(ctx, claims.Life())
			if err == nil {
				log.Info("Credential renewed", "expires", credential.ClaimsOf(fresh).Expires)
				break
			}
			if reason := r.Explain(err); ctx.Err() == nil && outage.IsNews(reason) {
				log.Info("Failed to renew the credential", "reason", reason, "expires", claims.Expires)
			}
			// A token with a life of minutes must not expire during a wait.
			if retry.Wait(ctx, r.Clock, min(backoff.Step(), claims.Life()/20)) != nil {
				return
			}
		}
	}
}

// renew requests a fresh token; the older one works until it expires.
func (r *Renewer) renew(ctx context.Context, life time.Duration) (string, error) {
	token, err := r.Request(ctx, life)
	if err != nil {
		return "", err
	}
	return token, r.Keep(ctx, token)
}

// renewAt returns the time of the next renewal by the hub's clock. The time is two thirds of the
// token's life, moved by spread (-1 to 1) times 5 % of it. Zero means never.
func renewAt(claims credential.Claims, spread float64) time.Time {
	whole := claims.Life()
	if whole == 0 {
		return time.Time{}
	}
	return claims.Issued.Add(whole * 2 / 3).Add(time.Duration(spread * 0.05 * float64(whole)))
}
