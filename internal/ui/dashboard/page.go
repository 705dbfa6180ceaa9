package dashboard

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"embed"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/klauspost/compress/gzhttp"

	"github.com/muster-fleet/muster/internal/kube"
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

// briefly limits the characters of a reason in a table; the page of its object has all.
const briefly = 240

// page is the common data of all pages.
type page struct {
	Title string
	// View is the page's view: fleet, deliveries or registration.
	View    string
	Visitor string
	// SignOut reports whether the visitor has signed in, and may sign out.
	SignOut bool
	// Grafana is the address of the metrics; empty for no link.
	Grafana string
	// Stale holds the reasons why the page may be out of date.
	Stale []string
	// Live is the address for changes of the page; empty if it has none.
	Live string
	// Crumbs lead back to the lists with the object of the page.
	Crumbs []link
	// Status is the HTTP status; zero for 200.
	Status int
	Body   any
}

// invalidated returns the page for an invalid query: the form with its values, and no live updates.
func (p page) invalidated(err error) page {
	if err != nil {
		p.Status, p.Live = http.StatusBadRequest, ""
	}
	return p
}

// crumbs returns the way from a list to the object of a page.
func crumbs(list, path, name string) []link { return []link{{list, path}, {Name: name}} }

// signIn is the page to sign in.
type signIn struct{ To, Refused string }

var templates = func() map[string]*template.Template {
	parsed := map[string]*template.Template{}
	functions := template.FuncMap{
		"ago":     ago,
		"at":      func(t time.Time) template.HTML { return timeTag(t, exactly(t)) },
		"now":     func() template.HTML { return timeTag(time.Now(), exactly(time.Now())) },
		"version": func() string { return version.Version },
		"member":  memberPath,
		"brief":   func(text string) string { return kube.Clip(text, briefly) },
		"class":   classOf,

		"healthy":    view.Healthy,
		"noProblems": func() string { return view.NoProblems },
	}
	for _, name := range []string{
		"fleet", "member", "deliveries", "delivery", "registration", "token", "sign-in", "problem", "components", "bulk", "request",
		"token-form", "find",
	} {
		parsed[name] = template.Must(template.New("layout.html").Funcs(functions).ParseFS(pages,
			"templates/layout.html", "templates/shared.html", "templates/"+name+".html"))
	}
	return parsed
}()

// ago returns the age of a time, with the exact time on hover.
func ago(t time.Time) template.HTML {
	if t.IsZero() {
		return view.Nothing
	}
	return timeTag(t, view.Since(t, time.Now()))
}

func exactly(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// timeTag returns the element for a time. The text must be free of markup.
func timeTag(t time.Time, text string) template.HTML {
	//nolint:gosec // both texts have only digits, letters and signs of times
	return template.HTML(`<time datetime="` + t.UTC().Format(time.RFC3339) + `" title="` + exactly(t) + `">` + text + `</time>`)
}

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
	p.Visitor, p.Grafana = v.name, s.options.Grafana
	_, p.SignOut = s.authenticator.(*tokenAuthenticator)
	render(w, r, cmp.Or(p.Status, http.StatusOK), name, p)
	return nil
}

// compressed wraps a handler and compresses its answers for browsers with support for it.
var compressed = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed))
	if err != nil {
		panic(err) // the options are constants
	}
	return wrap
}()

// render sends a page.
func render(w http.ResponseWriter, r *http.Request, status int, name string, p page) {
	var text bytes.Buffer
	if err := templates[name].Execute(&text, p); err != nil {
		logr.FromContextOrDiscard(r.Context()).Error(err, "Failed to render a page", "page", name)
		http.Error(w, "The dashboard cannot show this page. Its log has the details.", http.StatusInternalServerError)
		return
	}
	send(w, r, status, &text)
}

// send sends a text in HTML, compressed for browsers with support for it.
func send(w http.ResponseWriter, r *http.Request, status int, text io.WriterTo) {
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
