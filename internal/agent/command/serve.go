package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/explain"
	"github.com/muster-fleet/muster/internal/process"
)

// off is the address that switches an endpoint off.
const off = "0"

// health answers /healthz while the process lives and /readyz once it has joined; until then /readyz says why not, and what to do.
func health(status func() (agent.State, string, bool)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		state, reason, joined := status()
		if !joined {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintf(w, "%s: %s\n", state, reason)
		if remedy := explain.AgentRemedy(string(state)); remedy != "" && !joined {
			fmt.Fprintf(w, "What to do: %s\n", remedy)
		}
	})
	return mux
}

// metrics answers /metrics.
func metrics() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(agent.Metrics(), promhttp.HandlerOpts{}))
	return mux
}

// serve listens before it returns, so that a port in use is an error of the start; flag names what chooses another.
func serve(ctx context.Context, address, flag string, handler http.Handler) error {
	if address == off || address == "" {
		return nil
	}
	address = process.BindAddress(address)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening on %s: %w; choose another address with %s, or switch it off with 0", address, err, flag)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // the process ends
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("serving %s: %v", address, err))
		}
	}()
	return nil
}
