package identity

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"time"
)

// serviceAccountPrefix begins the user name of every ServiceAccount.
const serviceAccountPrefix = "system:serviceaccount:"

var endsInUID = regexp.MustCompile(`^(.+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// Claims is what a ServiceAccount token says of itself. Only the hub can check it; the agent uses it for words and times.
type Claims struct {
	// Subject is the user name: system:serviceaccount:<namespace>:<account>.
	Subject string
	// Namespace and Account are the parts of Subject.
	Namespace, Account string
	// IssuedAt and Expires bound its life by the hub's clock; Expires is zero for a token that never expires.
	IssuedAt, Expires time.Time
}

// ReadClaims reads the claims of a token; those of a token that is not a ServiceAccount's are empty.
func ReadClaims(token string) Claims {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Claims{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Claims{}
	}
	var raw struct {
		Subject  string  `json:"sub"`
		IssuedAt float64 `json:"iat"`
		Expires  float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &raw) != nil {
		return Claims{}
	}
	claims := Claims{Subject: raw.Subject, IssuedAt: fromUnix(raw.IssuedAt), Expires: fromUnix(raw.Expires)}
	if account, ok := strings.CutPrefix(raw.Subject, serviceAccountPrefix); ok {
		claims.Namespace, claims.Account, _ = strings.Cut(account, ":")
	}
	return claims
}

func fromUnix(seconds float64) time.Time {
	if seconds <= 0 || seconds > math.MaxInt32*1000 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}

// TokenName is the ClusterRegistrationToken behind a bootstrap token, empty if its account does not tell: the account is
// named <token>-<uid>, and longer names are cut.
func (c Claims) TokenName() string {
	if match := endsInUID.FindStringSubmatch(c.Account); match != nil {
		return match[1]
	}
	return ""
}

// Life is how long the token was issued for; zero if it never expires or does not say.
func (c Claims) Life() time.Duration {
	if c.Expires.IsZero() || c.IssuedAt.IsZero() || !c.Expires.After(c.IssuedAt) {
		return 0
	}
	return c.Expires.Sub(c.IssuedAt)
}

// renewAt is when the token is renewed, by the hub's clock: at two thirds of its life, moved by spread (-1 to 1) times 5 % of
// it. Zero if it never has to be.
func (c Claims) renewAt(spread float64) time.Time {
	life := c.Life()
	if life == 0 {
		return time.Time{}
	}
	return c.IssuedAt.Add(life * 2 / 3).Add(time.Duration(spread * 0.05 * float64(life)))
}
