package hostnode

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"k8s.io/klog/v2"
)

const headerTimeout = 10 * time.Second

// server answers the part of the kubelet's API for `kubectl logs`, and returns a clear error for
// the rest.
type server struct {
	port   int
	http   *http.Server
	failed chan error
}

// serve listens on a free loopback port. It accepts only the API server's client certificate.
func (n *Node) serve() (*server, error) {
	certificate, err := tls.LoadX509KeyPair(n.config.CertFile, n.config.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("loading the certificate of node %s: %w", n.config.Name, err)
	}
	ca, err := os.ReadFile(n.config.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("loading the client CA of node %s: %w", n.config.Name, err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("loading the client CA of node %s: %s holds no certificate", n.config.Name, n.config.ClientCAFile)
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(loopback, "0"), &tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientCAs:    clients,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS12,
	})
	if err != nil {
		return nil, fmt.Errorf("listening for the API server: %w", err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("listening for the API server: unexpected address %s", listener.Addr())
	}
	s := &server{port: address.Port, failed: make(chan error, 1)}
	s.http = &http.Server{Handler: n.handler(), ReadHeaderTimeout: headerTimeout}
	go func() { s.failed <- s.http.Serve(listener) }()
	return s, nil
}

func (n *Node) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { reply(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.serveLog)
	for _, name := range []string{"exec", "attach", "portForward", "run"} {
		mux.HandleFunc("/"+name+"/", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, name+" is not supported by localkube: containers are processes of this machine; use its own tools",
				http.StatusNotImplemented)
		})
	}
	return mux
}

func (n *Node) serveLog(w http.ResponseWriter, request *http.Request) {
	namespace, pod, name := request.PathValue("namespace"), request.PathValue("pod"), request.PathValue("container")
	r := n.find(namespace, pod)
	if r == nil || r.containers[name] == nil {
		http.Error(w, fmt.Sprintf("container %s of pod %s/%s is not on this node", name, namespace, pod), http.StatusNotFound)
		return
	}
	options, previous, err := readLogOptions(request.URL.Query(), time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	paths, err := logPaths(r.logDir(name))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	live := r.containers[name].liveLog()
	if previous && len(paths) < 2 {
		http.Error(w, fmt.Sprintf("previous terminated container %q in pod %q not found", name, pod), http.StatusBadRequest)
		return
	}
	if len(paths) == 0 {
		http.Error(w, fmt.Sprintf("container %q in pod %q has not started; see: kubectl describe pod %s", name, pod, pod), http.StatusBadRequest)
		return
	}
	path := paths[0]
	if previous {
		path, live = paths[1], nil
	}
	w.Header().Set("Content-Type", "text/plain")
	if err := readLog(request.Context(), path, live, options, flushing{w}); err != nil && request.Context().Err() == nil {
		klog.FromContext(request.Context()).Error(err, "Serving a log", "path", path)
	}
}

func readLogOptions(query url.Values, now time.Time) (o logOptions, previous bool, err error) {
	o = logOptions{tail: -1, follow: query.Get("follow") == "true", timestamps: query.Get("timestamps") == "true"}
	if text := query.Get("tailLines"); text != "" {
		if o.tail, err = strconv.Atoi(text); err != nil || o.tail < 0 {
			return o, false, fmt.Errorf("tailLines %q is not a count", text)
		}
	}
	if text := query.Get("limitBytes"); text != "" {
		if o.limit, err = strconv.ParseInt(text, 10, 64); err != nil || o.limit < 1 {
			return o, false, fmt.Errorf("limitBytes %q is not a count", text)
		}
	}
	if text := query.Get("sinceSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return o, false, fmt.Errorf("sinceSeconds %q is not a number", text)
		}
		o.since = now.Add(-time.Duration(seconds) * time.Second)
	}
	if text := query.Get("sinceTime"); text != "" {
		if o.since, err = time.Parse(time.RFC3339, text); err != nil {
			return o, false, fmt.Errorf("sinceTime %q is not a time", text)
		}
	}
	return o, query.Get("previous") == "true", nil
}

// flushing sends every piece at once, for followers.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(data []byte) (int, error) {
	n, err := f.ResponseWriter.Write(data)
	if err != nil {
		return n, err
	}
	if err := http.NewResponseController(f.ResponseWriter).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return n, fmt.Errorf("sending log: %w", err)
	}
	return n, nil
}

func reply(w io.Writer, text string) {
	_, _ = io.WriteString(w, text) // A disconnected client needs no answer.
}

func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // Followers of a log are cut off.
	}
}

// err returns the reason for an early end of serving, if there is one.
func (s *server) err() error {
	select {
	case err := <-s.failed:
		return fmt.Errorf("serving logs: %w", err)
	default:
		return nil
	}
}
