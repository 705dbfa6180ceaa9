package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errNoVisitor reports a request without a known visitor.
var errNoVisitor = errors.New("nobody")

// authenticator identifies the visitors of requests.
type authenticator interface {
	// visitor returns the visitor of a request. Without a visitor it returns errNoVisitor, or the
	// API server's 401.
	visitor(*http.Request) (*visitor, error)
	// refuse answers a request without a visitor.
	refuse(http.ResponseWriter, *http.Request)
	// register adds the pages for signing in.
	register(*http.ServeMux)
	// entrance returns the path of entry for the only visitor. oneEntrance returns a path for a
	// single entry.
	entrance() string
	oneEntrance() string
	// remembered returns the number of visitors.
	remembered() int
}

// keyAuthenticator admits visitors with a key: the user who started the dashboard and got the key.
type keyAuthenticator struct {
	owner *visitor
	key   string
	// ticket admits a visitor once.
	ticket string
	used   atomic.Bool
}

func newKeyAuthenticator(owner *visitor) *keyAuthenticator {
	return &keyAuthenticator{owner: owner, key: rand.Text(), ticket: rand.Text()}
}

// cookieAt returns the name of a cookie for the port of a request. Browsers send the cookies of
// an address to all of its ports, and two dashboards on one machine would replace each other's
// cookies.
func cookieAt(name string, r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return name + "-" + port
	}
	return name
}

func ownersCookie(r *http.Request) string { return cookieAt("muster-key", r) }

func (d *keyAuthenticator) entrance() string { return "/enter?key=" + d.key }

func (d *keyAuthenticator) oneEntrance() string { return "/enter?key=" + d.ticket }

func (*keyAuthenticator) remembered() int { return 1 }

func (d *keyAuthenticator) isKey(text string) bool { return isSecret(text, d.key) }

// isTicket reports whether a text is the ticket, and uses the ticket up.
func (d *keyAuthenticator) isTicket(text string) bool {
	return isSecret(text, d.ticket) && d.used.CompareAndSwap(false, true)
}

func isSecret(text, secret string) bool {
	return subtle.ConstantTimeCompare([]byte(text), []byte(secret)) == 1
}

func (d *keyAuthenticator) visitor(r *http.Request) (*visitor, error) {
	if cookie, err := r.Cookie(ownersCookie(r)); err == nil && d.isKey(cookie.Value) {
		return d.owner, nil
	}
	return nil, errNoVisitor
}

func (d *keyAuthenticator) refuse(w http.ResponseWriter, r *http.Request) {
	render(w, r, http.StatusUnauthorized, "problem", page{Title: "Key required", Body: shownProblem{
		Text: "This page needs a key. Open the address that muster dashboard printed in the terminal, or run the command again.",
	}})
}

func (d *keyAuthenticator) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /enter", func(w http.ResponseWriter, r *http.Request) {
		if key := r.URL.Query().Get("key"); !d.isKey(key) && !d.isTicket(key) {
			d.refuse(w, r)
			return
		}
		// #nosec G124 -- it is served on the loopback address, without TLS
		http.SetCookie(w, &http.Cookie{Name: ownersCookie(r), Value: d.key, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, local(r.URL.Query().Get("to")), http.StatusSeeOther)
	})
}

// tokenAuthenticator admits visitors with a token known to the API server. A proxy sets the token
// in a header, or the sign-in page sets it in a cookie.
type tokenAuthenticator struct {
	*visitors
	trusted proxies
	log     logr.Logger
}

// mostInCookie limits the length of a token in a cookie. Browsers keep 4096 bytes of a cookie,
// with its name and its attributes (RFC 6265, 6.1).
const mostInCookie = 3900

func (d *tokenAuthenticator) entrance() string { return "" }

func (d *tokenAuthenticator) oneEntrance() string { return "" }

// cookieOf returns the name of the cookie, and whether it is for HTTPS only, as the request was.
// Browsers accept a name with the prefix __Host- only from exactly this host (RFC 6265bis,
// 4.1.3.2). A proxy reports the browser's protocol.
func cookieOf(r *http.Request) (name string, secure bool) {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return "__Host-muster-token", true
	}
	return cookieAt("muster-token", r), false
}

func (d *tokenAuthenticator) visitor(r *http.Request) (*visitor, error) {
	if token, given := bearerOf(r); given {
		return d.by(r.Context(), d.trusted.addressOf(r), token)
	}
	name, _ := cookieOf(r)
	if cookie, err := r.Cookie(name); err == nil {
		return d.by(r.Context(), d.trusted.addressOf(r), cookie.Value)
	}
	return nil, errNoVisitor
}

func (d *tokenAuthenticator) refuse(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.Path == "/live" {
		render(w, r, http.StatusUnauthorized, "problem", page{Title: "Sign in first", Body: shownProblem{
			Text: "Your session has ended, and nothing has changed. Sign in, and submit the form again.", Next: &link{"Sign in", "/sign-in"},
		}})
		return
	}
	http.Redirect(w, r, "/sign-in?to="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
}

func (d *tokenAuthenticator) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /sign-in", func(w http.ResponseWriter, r *http.Request) {
		render(w, r, http.StatusOK, "sign-in", page{Title: "Sign in", Body: signIn{To: local(r.URL.Query().Get("to"))}})
	})
	mux.HandleFunc("POST /sign-in", func(w http.ResponseWriter, r *http.Request) {
		token, to := strings.TrimSpace(r.PostFormValue("token")), local(r.PostFormValue("to"))
		if len(token) > mostInCookie {
			render(w, r, http.StatusBadRequest, "sign-in", page{Title: "Sign in", Body: signIn{To: to, Refused: fmt.Sprintf(
				"This token has %d characters, and browsers keep at most %d. Use a shorter token, or a proxy that sends the token in the "+
					"header Authorization.", len(token), mostInCookie)}})
			return
		}
		if _, err := d.by(r.Context(), d.trusted.addressOf(r), token); err != nil {
			status, said := http.StatusUnauthorized, "The hub's API server rejects this token. It has expired, or belongs to another cluster."
			switch {
			case errors.Is(err, errTooMany):
				status, said = http.StatusTooManyRequests, err.Error()
			case !errors.Is(err, errNoVisitor) && !apierrors.IsUnauthorized(err): // the token may be valid; unknown visitors see no addresses
				status, said = http.StatusBadGateway, "The hub's API server cannot check this token at the moment. Try again."
				d.log.Info("Failed to check a token", "reason", err.Error())
			}
			render(w, r, status, "sign-in", page{Title: "Sign in", Body: signIn{To: to, Refused: said}})
			return
		}
		setCookie(w, r, token, 0)
		http.Redirect(w, r, to, http.StatusSeeOther)
	})
	mux.HandleFunc("POST /sign-out", func(w http.ResponseWriter, r *http.Request) {
		setCookie(w, r, "", -1)
		http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
	})
}

// setCookie sets the cookie until the browser is closed, or removes it.
func setCookie(w http.ResponseWriter, r *http.Request, token string, age int) {
	name, secure := cookieOf(r)
	// #nosec G124 -- without TLS there is no other way, and the documentation says so
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: token, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode, MaxAge: age,
	})
}

// local returns a path of this site: a link to the sign-in page must not redirect to another
// site.
func local(to string) string {
	if u, err := url.Parse(to); err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.ContainsRune(to, '\\') {
		return "/"
	}
	return to
}
