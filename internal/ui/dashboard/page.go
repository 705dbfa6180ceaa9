package dashboard

import (
	"bytes"
	"compress/gzip"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/klauspost/compress/gzhttp"

	"github.com/muster-fleet/muster/internal/ui/view"
	"github.com/muster-fleet/muster/internal/version"
)

//go:embed assets
var assets embed.FS

//go:embed templates/*.html
var pages embed.FS

// takenWithin limits the time of a browser for receiving a page. The page stays in memory
// meanwhile.
const takenWithin = 30 * time.Second

// page is the common data of all pages.
type page struct {
	Title string
	// View is the page's view: fleet, deliveries or registration.
	View    string
	Visitor string
	// SignOut reports whether the visitor has signed in, and may sign out.
	SignOut bool
	// Stale holds the reasons why the page may be out of date.
	Stale []string
	// Live is the address for changes of the page; empty if it has none.
	Live string
	Body any
}

// signIn is the page to sign in.
type signIn struct{ To, Refused string }

var templates = func() map[string]*template.Template {
	all := map[string]*template.Template{}
	functions := template.FuncMap{
		"since":   func(t time.Time) string { return view.Since(t, time.Now()) },
		"time":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") },
		"version": func() string { return version.Version },
		"member":  memberPath,
		"lower":   strings.ToLower,

		"healthy":    view.Healthy,
		"noProblems": func() string { return view.NoProblems },
	}
	for _, name := range []string{"fleet", "member", "deliveries", "delivery", "registration", "token", "sign-in", "problem"} {
		all[name] = template.Must(template.New("layout.html").Funcs(functions).ParseFS(pages,
			"templates/layout.html", "templates/shared.html", "templates/"+name+".html"))
	}
	return all
}()

// memberPath returns the page of a member.
func memberPath(name string) string {
	namespace, bare, qualified := strings.Cut(name, "/")
	if !qualified {
		return "/members/" + url.PathEscape(name)
	}
	return "/members/" + url.PathEscape(namespace) + "/" + url.PathEscape(bare)
}

// show renders a page for a visitor.
func (s *Server) show(w http.ResponseWriter, r *http.Request, v *visitor, name string, p page) error {
	p.Visitor = v.name
	_, p.SignOut = s.door.(*tokenDoor)
	render(w, r, http.StatusOK, name, p)
	return nil
}

// problem shows an error.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, v *visitor, status int, err error) {
	p := page{Title: http.StatusText(status), Body: err.Error()}
	if v != nil {
		p.Visitor = v.name
	}
	render(w, r, status, "problem", p)
}

// compressed wraps a handler and compresses its answers if the browser accepts that.
var compressed = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed))
	if err != nil {
		panic(err) // the options are constants
	}
	return wrap
}()

// render sends a page, compressed if the browser accepts that.
func render(w http.ResponseWriter, r *http.Request, status int, name string, p page) {
	var text bytes.Buffer
	if err := templates[name].Execute(&text, p); err != nil {
		logr.FromContextOrDiscard(r.Context()).Error(err, "rendering a page failed", "page", name)
		http.Error(w, "The dashboard cannot show this page. Its log has the details.", http.StatusInternalServerError)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(takenWithin)) // a recorder of tests has none
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = text.WriteTo(w) // the browser has gone
	})).ServeHTTP(w, r)
}

// part renders a part of a page.
func part(of, name string, data any) (string, error) {
	var text strings.Builder
	err := templates[of].ExecuteTemplate(&text, name, data)
	return text.String(), err
}
