package dashboard

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"time"
)

// bearerOf returns the token in the header Authorization. given reports whether the header has
// one, even an invalid one.
func bearerOf(r *http.Request) (token string, given bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token, strings.EqualFold(scheme, "Bearer") // RFC 9110, 11.1
}

// isToken reports whether a text can be a token. An API server treats a request with other text
// as anonymous, or reads only a part of it. One token could then have any number of forms.
func isToken(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// endOf returns the end of a token from its own data (RFC 7519, 4.1.4). It returns zero without
// such data. It also returns zero for a past end: the API server has just accepted the token, so
// this clock is wrong. The data never leads to acceptance, only to forgetting.
func endOf(token string, now time.Time) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Expires <= 0 || claims.Expires > math.MaxInt32*100 {
		return time.Time{}
	}
	if end := time.Unix(int64(claims.Expires), 0); end.After(now) {
		return end
	}
	return time.Time{}
}
