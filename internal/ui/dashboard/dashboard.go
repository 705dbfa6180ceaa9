// Package dashboard shows the fleet as pages of a browser: the members and their health, the
// deliveries, and the registration requests.
//
// Its invariant: it shows and does only what the visitor may see and do. It caches the fleet with
// its own credential. Of the cache it shows only the objects the visitor may list, according to the
// API server. All other reads, and all changes, use the visitor's credential. It contacts no other
// host than the API server.
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// mostSent limits the bytes of a browser's request.
const mostSent = 64 << 10

// Options of a dashboard.
type Options struct {
	// Config reaches the hub, with the credential for reading the fleet.
	Config *rest.Config
	// Namespace is the only workspace to show; empty for all.
	Namespace string
	// TrustedProxies are the networks, separated by commas, of proxies with a trusted header
	// X-Forwarded-For. Only a shared dashboard has visitors from other hosts.
	TrustedProxies string
	// Grafana is the address of the board with the metrics of the fleet; empty for no link to it.
	Grafana string
}

// Server is a dashboard.
type Server struct {
	options       Options
	cache         *fleetCache
	reader        client.WithWatch
	authenticator authenticator
	ctx           context.Context // ends the streams
	streams       atomic.Int64
	drains        drains
	// shared reports whether the visitors differ from the account for reading the fleet.
	shared bool
}

// NewOwned returns a dashboard for the one user with the credential in the config. Knowledge of the
// path returned by Entrance is the proof of this user.
func NewOwned(ctx context.Context, options Options) (*Server, error) {
	s, err := newServer(ctx, &options)
	if err != nil {
		return nil, err
	}
	owner, err := newVisitor(ctx, options.Config, s.reader.RESTMapper())
	if err != nil {
		return nil, err
	}
	s.authenticator = newKeyAuthenticator(owner)
	return s, nil
}

// NewShared returns a dashboard for many users. Each user shows a token known to the API server.
func NewShared(ctx context.Context, options Options) (*Server, error) {
	s, err := newServer(ctx, &options)
	if err != nil {
		return nil, err
	}
	trusted, err := proxiesOf(options.TrustedProxies)
	if err != nil {
		return nil, err
	}
	s.shared = true
	s.authenticator = &tokenAuthenticator{newVisitors(options.Config, s.reader.RESTMapper()), trusted, logr.FromContextOrDiscard(ctx)}
	return s, nil
}

func newServer(ctx context.Context, options *Options) (*Server, error) {
	if err := checkGrafana(options.Grafana); err != nil {
		return nil, err
	}
	options.Config = rest.CopyConfig(options.Config)
	options.Config.QPS, options.Config.WarningHandlerWithContext = -1, rest.NoWarnings{}
	calls, err := rest.HTTPClientFor(options.Config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(options.Config, calls)
	if err != nil {
		return nil, fmt.Errorf("reading the kinds of the hub at %s: %w", options.Config.Host, err)
	}
	reader, err := client.NewWithWatch(options.Config, client.Options{Scheme: scheme, Mapper: mapper, HTTPClient: calls})
	if err != nil {
		return nil, err
	}
	return &Server{options: *options, cache: newFleetCache(), reader: reader, ctx: ctx}, nil
}

// checkGrafana returns an error for an address other than a web page's.
func checkGrafana(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("the address %q of Grafana is no web page: use one such as https://grafana.example.com/d/muster", address)
	}
	return nil
}

// Serve keeps the data up to date, and serves it, until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	go s.cache.keep(ctx, s.reader, s.options.Namespace)
	serving := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = serving.Close() }) // pages in transit are not waited for
	defer stop()
	if err := serving.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Entrance returns the owner's path of entry; empty for a shared dashboard.
func (s *Server) Entrance() string { return s.authenticator.entrance() }

// Ticket returns a path for one single entry of the owner. It is for a command line, readable by
// other users of the machine. It is empty for a shared dashboard.
func (s *Server) Ticket() string { return s.authenticator.oneEntrance() }

// Handler serves the pages.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /assets/", cached(http.FileServerFS(assets)))
	s.authenticator.register(mux)
	for pattern, show := range map[string]pageFunc{
		"GET /{$}":                                       s.fleet,
		"GET /rows":                                      s.rows,
		"GET /members/{name}":                            s.member,
		"GET /members/{namespace}/{name}":                s.member,
		"GET /deliveries":                                s.deliveries,
		"GET /deliveries/{resource}/{name}":              s.delivery,
		"GET /deliveries/{resource}/{namespace}/{name}":  s.delivery,
		"GET /registration":                              s.registration,
		"POST /members/{name}":                           s.decideMember,
		"POST /members/{namespace}/{name}":               s.decideMember,
		"POST /deliveries/{resource}/{name}":             s.confirm,
		"POST /deliveries/{resource}/{namespace}/{name}": s.confirm,
		"POST /requests/{namespace}/{name}":              s.decide,
		"GET /requests/{namespace}/{name}":               s.request,
		"GET /tokens/new":                                s.newToken,
		"POST /tokens":                                   s.createToken,
		"GET /tokens/{namespace}/{name}":                 s.token,
		"GET /live":                                      s.live,
		"GET /bulk":                                      s.confirmBulk,
		"POST /bulk":                                     s.changeBulk,
		"GET /components":                                s.components,
		"GET /find":                                      s.find,
		"GET /":                                          s.missing,
	} {
		mux.HandleFunc(pattern, s.forVisitors(show))
	}
	return counted(http.NewCrossOriginProtection().Handler(secured(bounded(mux))))
}

// bounded limits the size of a browser's request, and its time: a form is sent at once.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(sentWithin)) // a recorder of tests has none
		}
		r.Body = http.MaxBytesReader(w, r.Body, mostSent)
		next.ServeHTTP(w, r)
	})
}

// ready reports whether the fleet has been read. An unserved or forbidden kind does not block the
// others: the pages report it.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	switch resource, listed := s.cache.unanswered(); {
	case resource != "":
		http.Error(w, resource+" have not been read yet", http.StatusServiceUnavailable)
	case listed == 0:
		http.Error(w, "the dashboard can list no kinds: check that the chart fleet-crd is installed, and that the dashboard's "+
			"account has its rights",
			http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, "ok")
	}
}

// pageFunc answers a visitor.
type pageFunc func(w http.ResponseWriter, r *http.Request, v *visitor) error

// forVisitors shows a view to visitors, and refuses all other requests.
func (s *Server) forVisitors(show pageFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := s.authenticator.visitor(r)
		switch {
		case errors.Is(err, errNoVisitor), apierrors.IsUnauthorized(err):
			s.authenticator.refuse(w, r)
			return
		case err == nil && !v.pace.TryAccept():
			err = errTooMany
		case err == nil && !isText(r.URL):
			err = &inputError{errors.New("the address has bytes that are no UTF-8 text: correct the link")}
		case err == nil:
			err = show(w, r, v)
		}
		if errors.Is(err, errTooMany) {
			w.Header().Set("Retry-After", "5")
		}
		if err != nil && r.Context().Err() == nil {
			status := statusOf(err)
			logr.FromContextOrDiscard(s.ctx).V(1).Info("Failed to show a page", "path", r.URL.Path, "status", status, "reason", err.Error())
			s.problem(w, r, v, status, err)
		}
	}
}

// isText reports whether an address is text in UTF-8, so that pages can show its values.
func isText(address *url.URL) bool {
	query, err := url.QueryUnescape(address.RawQuery)
	return err == nil && utf8.ValidString(query) && utf8.ValidString(address.Path)
}

// statusOf returns the HTTP status of an error. Missing objects, forbidden requests and failed
// requests have three different statuses.
func statusOf(err error) int {
	var input *inputError
	switch {
	case errors.As(err, &input), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return http.StatusBadRequest
	case apierrors.IsNotFound(err):
		return http.StatusNotFound
	case apierrors.IsForbidden(err):
		return http.StatusForbidden
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return http.StatusConflict
	case errors.Is(err, errTooMany):
		return http.StatusTooManyRequests
	}
	return http.StatusBadGateway
}

// inputError is an error in a visitor's request.
type inputError struct{ error }

// secured makes browsers load only resources of the dashboard itself, and show it in no page of
// another site.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// cached serves files; they change only with the program.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=300")
		next.ServeHTTP(w, r)
	})
}
