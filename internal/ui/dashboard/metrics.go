package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/muster-fleet/muster/internal/process"
)

// off is the address to switch metrics off.
const off = "0"

var (
	pagesAnswered = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_dashboard_pages_total",
		Help: "Requests answered, by view and HTTP status. The view live counts streams when they end.",
	}, []string{"view", "status"})
	pageSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "muster_dashboard_page_duration_seconds", Help: "Time to answer a request in seconds, by view, without the view live.",
		Buckets: []float64{.01, .03, .1, .3, 1, 3, 10},
	}, []string{"view"})
	openStreams = prometheus.NewDesc("muster_dashboard_streams", "Open pages with live updates.", []string{}, nil)
	seenLately  = prometheus.NewDesc("muster_dashboard_visitors",
		"Tokens of visitors in the last hour.", []string{}, nil)
)

// Describe implements prometheus.Collector.
func (s *Server) Describe(all chan<- *prometheus.Desc) {
	all <- openStreams
	all <- seenLately
}

// Collect implements prometheus.Collector.
func (s *Server) Collect(all chan<- prometheus.Metric) {
	all <- prometheus.MustNewConstMetric(openStreams, prometheus.GaugeValue, float64(s.streams.Load()))
	all <- prometheus.MustNewConstMetric(seenLately, prometheus.GaugeValue, float64(s.authenticator.remembered()))
}

// metrics serves /metrics with the metrics of the dashboard and of its process. They reveal
// nothing about the fleet, and no names.
func (s *Server) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(s, pagesAnswered, pageSeconds, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// serveMetrics serves the metrics at a separate address, out of reach for an Ingress, until the
// context ends. It listens before it returns, so a port in use is an error at the start.
func (s *Server) serveMetrics(ctx context.Context, address string) error {
	if address == off || address == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", process.BindAddress(address))
	if err != nil {
		return fmt.Errorf("serving metrics: %w; choose another address with --metrics-bind-address, or turn metrics off with 0", err)
	}
	serving := &http.Server{Handler: s.metrics(), ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = serving.Close() }) // the process ends
	go func() {
		if err := serving.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logr.FromContextOrDiscard(ctx).Error(err, "Failed to serve metrics")
		}
	}()
	return nil
}

// counted counts the answers.
func counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun, answer := time.Now(), &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answer, r)
		view := viewOf(r.Pattern)
		if view == "" {
			return
		}
		pagesAnswered.WithLabelValues(view, strconv.Itoa(answer.status)).Inc()
		if view != "live" {
			pageSeconds.WithLabelValues(view).Observe(time.Since(begun).Seconds())
		}
	})
}

// viewOf returns the view of a page's pattern, one of a few for any request. It returns empty for
// other patterns.
func viewOf(pattern string) string {
	_, path, _ := strings.Cut(pattern, " ")
	switch first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); first {
	case "healthz", "readyz", "assets":
		return ""
	case "{$}":
		return "fleet"
	case "":
		return "none" // a missing page, or a request from another site
	default:
		return first
	}
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets an http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
