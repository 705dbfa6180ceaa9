package dashboard

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"time"
)

// bearerOf is the token in the header Authorization; given says that the header has one, which may
// be none that there can be.
func bearerOf(r *http.Request) (token string, given bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token, strings.EqualFold(scheme, "Bearer") // RFC 9110, 11.1
}

// isToken says whether a text can be a token. An API server takes a request with any other for one
// of nobody, or reads a part of it, so that one token had as many names as somebody likes.
func isToken(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// endOf is when a token ends by its own word (RFC 7519, 4.1.4); zero if it does not say, or has
// ended by this clock, which is wrong then: the API server has just accepted it. Nothing is
// accepted by that word, only forgotten.
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
