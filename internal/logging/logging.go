// Package logging is how the programs log: as text, to stderr, the Kubernetes libraries included.
//
// Its invariant: a line is Info or, with --debug, more; there are no other levels to choose from.
package logging

import (
	"log/slog"
	"os"

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
