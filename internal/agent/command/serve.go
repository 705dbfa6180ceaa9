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
	"github.com/muster-fleet/muster/internal/process"
	"github.com/muster-fleet/muster/internal/ui/explain"
)

// off is the address to switch an endpoint off.
const off = "0"

// startup bounds the wait of /healthz?until=joined for the agent to join, because a request may
// wait for days to be approved.
const startup = time.Minute

// health answers /healthz while the process runs, and /readyz once it has joined. Before the join,
// /readyz returns the reason and the remedy.
//
// With until=joined, /healthz serves a startup probe. A startup probe runs each second, so an
// installation need not wait for a rare readiness probe.
func health(status func() (agent.State, string, bool)) http.Handler {
	mux, started := http.NewServeMux(), time.Now()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if _, _, joined := status(); r.URL.Query().Get("until") == "joined" && !joined && time.Since(started) < startup {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, "not joined yet")
			return
		}
		fmt.Fprintln(w, "ok")
	})
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

// serve listens before it returns, so a port in use is an error of the start. flag names the flag
// for another address.
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
