package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// drawsOn makes a console interpret escape sequences, and reports whether it can. A Windows
// console does so only on request, and old ones never. restore resets the console.
func drawsOn(terminal *os.File) (restore func(), can bool) {
	console, before := windows.Handle(terminal.Fd()), uint32(0)
	if windows.GetConsoleMode(console, &before) != nil {
		return func() {}, false
	}
	if before&windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING != 0 {
		return func() {}, true
	}
	if windows.SetConsoleMode(console, before|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) != nil {
		return func() {}, false
	}
	return func() { _ = windows.SetConsoleMode(console, before) }, true // the program ends
}
