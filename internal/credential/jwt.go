package credential

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Claims is the unverified content of a ServiceAccount token. Only the API server that issued the
// token can verify it, so the content serves to explain and to plan, never to trust.
type Claims struct {
	// Subject is system:serviceaccount:<namespace>:<name>.
	Subject string
	// Namespace and Account are the parts of Subject.
	Namespace, Account string
	// AccountUID is the UID of the account.
	AccountUID string
	// Secret and SecretUID name the Secret that the token ends with, "" if there is none. A token
	// stored in its Secret lacks the UID.
	Secret, SecretUID string
	// Issued and Expires bound the token's life; Expires is zero if it has no end.
	Issued, Expires time.Time
}

const subjectPrefix = "system:serviceaccount:"

// ReadClaims decodes a ServiceAccount token.
func ReadClaims(token string) (Claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Claims{}, fmt.Errorf("the token is not a JWT: it has %d parts instead of 3", len(parts))
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Claims{}, fmt.Errorf("the token is not a JWT: its payload is not base64")
	}
	var body struct {
		Subject    string `json:"sub"`
		Issued     int64  `json:"iat"`
		Expires    int64  `json:"exp"`
		LegacyUID  string `json:"kubernetes.io/serviceaccount/service-account.uid"`
		LegacyName string `json:"kubernetes.io/serviceaccount/secret.name"`
		Kubernetes struct {
			ServiceAccount struct {
				UID string `json:"uid"`
			} `json:"serviceaccount"`
			Secret struct {
				Name string `json:"name"`
				UID  string `json:"uid"`
			} `json:"secret"`
		} `json:"kubernetes.io"`
	}
	if err := json.Unmarshal(payload, &body); err != nil {
		return Claims{}, fmt.Errorf("the token is not a JWT: its payload is not JSON")
	}
	claims := Claims{
		Subject:    body.Subject,
		AccountUID: cmp.Or(body.Kubernetes.ServiceAccount.UID, body.LegacyUID),
		Secret:     cmp.Or(body.Kubernetes.Secret.Name, body.LegacyName),
		SecretUID:  body.Kubernetes.Secret.UID,
	}
	if body.Issued > 0 {
		claims.Issued = time.Unix(body.Issued, 0)
	}
	if body.Expires > 0 {
		claims.Expires = time.Unix(body.Expires, 0)
	}
	namespace, account, ok := strings.Cut(strings.TrimPrefix(body.Subject, subjectPrefix), ":")
	if !ok || !strings.HasPrefix(body.Subject, subjectPrefix) {
		return Claims{}, fmt.Errorf("the token is not one of a ServiceAccount: its subject is %q", body.Subject)
	}
	claims.Namespace, claims.Account = namespace, account
	return claims, nil
}

// ClaimsOf returns the content of a token. It is empty for a token of another kind, from a hub with
// other authentication.
func ClaimsOf(token string) Claims {
	claims, err := ReadClaims(token)
	if err != nil {
		return Claims{}
	}
	return claims
}

// Lasting reports whether the token is never renewed: it ends with a Secret, or not at all.
func (c Claims) Lasting() bool { return c.Secret != "" || c.Expires.IsZero() }

// Life returns the life of the token; zero if it never expires or the life is unknown.
func (c Claims) Life() time.Duration {
	if c.Expires.IsZero() || c.Issued.IsZero() {
		return 0
	}
	return max(c.Expires.Sub(c.Issued), 0)
}

// ExpiryOf returns the end of a token of any issuer; zero if the token is no JWT, or does not name
// its end.
func ExpiryOf(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	var body struct {
		Expires float64 `json:"exp"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &body) != nil || body.Expires < 1 || body.Expires > maxExpiry {
		return time.Time{}
	}
	return time.Unix(int64(body.Expires), 0)
}

// maxExpiry is the end of the year 9999.
const maxExpiry = 253402300799
