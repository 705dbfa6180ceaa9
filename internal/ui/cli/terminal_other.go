//go:build !windows

package cli

import (
	"os"

	"golang.org/x/term"
)

// drawsOn reports whether a terminal supports redrawing. All do outside Windows.
func drawsOn(terminal *os.File) (restore func(), can bool) {
	return func() {}, term.IsTerminal(int(terminal.Fd()))
}
