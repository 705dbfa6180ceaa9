package identity

import (
	"time"

	"github.com/muster-fleet/muster/internal/credential"
)

// ReadClaims reads what a token says of itself; one that says nothing never expires, as far as the agent can tell.
func ReadClaims(token string) credential.Claims {
	claims, err := credential.ReadClaims(token)
	if err != nil {
		// Not a ServiceAccount's token, as a hub may give that authenticates otherwise.
		return credential.Claims{}
	}
	return claims
}

// life is how long a token was issued for; zero if it never expires or does not say.
func life(claims credential.Claims) time.Duration {
	if claims.Expires.IsZero() || claims.Issued.IsZero() || !claims.Expires.After(claims.Issued) {
		return 0
	}
	return claims.Expires.Sub(claims.Issued)
}

// renewAt is when a token is renewed, by the hub's clock: at two thirds of its life, moved by spread (-1 to 1) times 5 % of
// it. Zero if it never has to be.
func renewAt(claims credential.Claims, spread float64) time.Time {
	whole := life(claims)
	if whole == 0 {
		return time.Time{}
	}
	return claims.Issued.Add(whole * 2 / 3).Add(time.Duration(spread * 0.05 * float64(whole)))
}
