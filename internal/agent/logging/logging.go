// Package logging is how the programs of an agent log: a line of text for each event, to standard error.
package logging

import (
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// New logs to stderr and makes the Kubernetes libraries do the same.
func New(debug bool) logr.Logger {
	level := slog.LevelInfo
	if debug {
		level = slog.LevelDebug
	}
	log := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	klog.SetLogger(log)
	return log
}
