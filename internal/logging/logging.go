// Package logging configures the logs of the programs: as text, to stderr, including the Kubernetes
// libraries.
//
// Its invariant: a line is Info or, with --debug, more; there are no other levels.
package logging

import (
	"context"
	"log/slog"
	"os"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// New returns the program's logger and makes client-go use it.
func New(debug bool) logr.Logger {
	level := slog.LevelInfo
	if debug {
		level = slog.LevelDebug
	}
	log := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	klog.SetLogger(log)
	return log
}

// Libraries returns the logger for controller-runtime; it logs less than the program itself.
func Libraries(log logr.Logger) logr.Logger {
	if log.V(1).Enabled() {
		return log
	}
	return logr.FromSlogHandler(ownLines{logr.ToSlogHandler(log)})
}

// ownLines drops controller-runtime's lines about each started watch and worker. Errors pass, and
// so do all lines within a reconcile: they belong to the controllers.
type ownLines struct{ slog.Handler }

func (ownLines) Enabled(_ context.Context, level slog.Level) bool { return level > slog.LevelInfo }

func (h ownLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	if slices.ContainsFunc(attrs, func(a slog.Attr) bool { return a.Key == "reconcileID" }) {
		return h.Handler.WithAttrs(attrs)
	}
	return ownLines{h.Handler.WithAttrs(attrs)}
}
