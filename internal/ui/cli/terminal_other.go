//go:build !windows

package cli

import (
	"os"

	"golang.org/x/term"
)

// drawsOn reports whether a table can be drawn again on a terminal, as all can but those of Windows.
func drawsOn(terminal *os.File) (restore func(), can bool) {
	return func() {}, term.IsTerminal(int(terminal.Fd()))
}
