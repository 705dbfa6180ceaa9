package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// drawsOn has a console follow the sequences by which a table is drawn again, and reports whether it can: those of Windows
// follow them only if a program asks for that, and old ones never. restore leaves the console as it was.
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
