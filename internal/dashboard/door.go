package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errNobody says that a request does not say whom it is from.
var errNobody = errors.New("nobody")

// A door says whom requests are from.
type door interface {
	// visitor is whom a request is from; errNobody, or the API server's 401, if that is nobody.
	visitor(*http.Request) (*visitor, error)
	// refuse answers a request that is from nobody.
	refuse(http.ResponseWriter, *http.Request)
	// register adds the pages of the door itself.
	register(*http.ServeMux)
	// entrance is the path by which the only visitor there is enters.
	entrance() string
}

// ownersDoor lets in who has a key: the user who started the dashboard, who was told it.
type ownersDoor struct {
	owner *visitor
	key   string
}

func newOwnersDoor(owner *visitor) *ownersDoor { return &ownersDoor{owner, rand.Text()} }

const ownersCookie = "muster-key"

func (d *ownersDoor) entrance() string { return "/enter?key=" + d.key }

func (d *ownersDoor) isKey(text string) bool {
	return subtle.ConstantTimeCompare([]byte(text), []byte(d.key)) == 1
}

func (d *ownersDoor) visitor(r *http.Request) (*visitor, error) {
	if cookie, err := r.Cookie(ownersCookie); err == nil && d.isKey(cookie.Value) {
		return d.owner, nil
	}
	return nil, errNobody
}

func (d *ownersDoor) refuse(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "Open the address that muster dashboard has printed: it has the key to this page.", http.StatusUnauthorized)
}

func (d *ownersDoor) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /enter", func(w http.ResponseWriter, r *http.Request) {
		if !d.isKey(r.URL.Query().Get("key")) {
			d.refuse(w, r)
			return
		}
		// #nosec G124 -- it is served on the loopback address, without TLS
		http.SetCookie(w, &http.Cookie{Name: ownersCookie, Value: d.key, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, local(r.URL.Query().Get("to")), http.StatusSeeOther)
	})
}

// tokenDoor lets in whom the API server knows by a token, in a header that a proxy has set, or in a cookie that the page to sign in has set.
type tokenDoor struct{ *visitors }

func (d *tokenDoor) entrance() string { return "" }

// cookieOf is the name of the cookie, and whether it is for HTTPS only, as far as the request came by that: browsers take one that begins with __Host- from nobody
// but this very host (RFC 6265bis, 4.1.3.2). A proxy says by which way the browser came.
func cookieOf(r *http.Request) (name string, secure bool) {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return "__Host-muster-token", true
	}
	return "muster-token", false
}

func (d *tokenDoor) visitor(r *http.Request) (*visitor, error) {
	if token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); is {
		return d.by(r.Context(), token)
	}
	name, _ := cookieOf(r)
	if cookie, err := r.Cookie(name); err == nil && cookie.Value != "" {
		return d.by(r.Context(), cookie.Value)
	}
	return nil, errNobody
}

func (d *tokenDoor) refuse(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.Path == "/live" {
		http.Error(w, "Sign in first.", http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, "/sign-in?to="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
}

func (d *tokenDoor) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /sign-in", func(w http.ResponseWriter, r *http.Request) {
		render(w, r, http.StatusOK, "sign-in", page{Title: "Sign in", Body: signIn{To: local(r.FormValue("to"))}})
	})
	mux.HandleFunc("POST /sign-in", func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		token, to := strings.TrimSpace(r.PostFormValue("token")), local(r.PostFormValue("to"))
		if _, err := d.by(r.Context(), token); err != nil || token == "" {
			status, said := http.StatusUnauthorized, "The API server of the hub does not accept this token: it is another cluster's, or has expired."
			switch {
			case errors.Is(err, errTooMany):
				status, said = http.StatusTooManyRequests, err.Error()
			case err != nil && !apierrors.IsUnauthorized(err):
				status, said = http.StatusBadGateway, err.Error() // the token may be a good one
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

// setCookie sets the cookie, until the browser is closed, or takes it away.
func setCookie(w http.ResponseWriter, r *http.Request, token string, age int) {
	name, secure := cookieOf(r)
	// #nosec G124 -- without TLS there is no other way, and the documentation says so
	http.SetCookie(w, &http.Cookie{Name: name, Value: token, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode, MaxAge: age})
}

// local is a path of this site: nobody is sent to another by a link to the page to sign in.
func local(to string) string {
	if u, err := url.Parse(to); err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsRune(to, '\\') {
		return "/"
	}
	return to
}
