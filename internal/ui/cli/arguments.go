package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-fleet/muster/internal/nearest"
)

// usageError is a mistake in the command line.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// takes accepts between least and most arguments; most 0 for any number. The error names the
// missing argument, with an example.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usageError{fmt.Errorf("%s needs %s%s", command.CommandPath(), what, exampleOf(command))}
		case most > 0 && len(args) > most:
			return usageError{fmt.Errorf("%s is one argument too many: %s takes %s%s", args[most], command.CommandPath(), what,
				exampleOf(command))}
		}
		return nil
	}
}

// takesNone accepts no arguments.
func takesNone(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments, and got %s; see %s --help", command.CommandPath(), args[0], command.CommandPath())}
	}
	return nil
}

// exampleOf returns the first command in the examples.
func exampleOf(command *cobra.Command) string {
	for line := range strings.Lines(command.Example) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return ", for example: " + line
		}
	}
	return ""
}

// takesCommand accepts no arguments, and suggests a command for a misspelled one.
func takesCommand(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	question := nearest.Question(args[0], namesOfCommands(command))
	if other, known := otherNames[args[0]]; known && command == command.Root() {
		question = fmt.Sprintf("; use %s %s", command.CommandPath(), other)
	}
	if question == "" {
		question = fmt.Sprintf("; see %s --help", command.CommandPath())
	}
	return usageError{fmt.Errorf("%s has no command %s%s", command.CommandPath(), args[0], question)}
}

func namesOfCommands(command *cobra.Command) (names []string) {
	for _, c := range command.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// otherNames are the names of commands in other tools.
var otherNames = map[string]string{
	"list": "get", "ls": "get", "ps": "get", "clusters": "get clusters", "members": "get members", "status": "get", "show": "get",
	"why": "explain", "health": "explain", "check": "doctor", "import": "join", "register": "join",
	"add": "join", "delete": "leave", "remove": "leave", "rm": "leave", "unjoin": "leave", "detach": "leave", "install": "init",
	"upgrade": "init", "accept": "approve", "reject": "deny", "ui": "dashboard", "web": "dashboard",
	"dump": "support-bundle", "config": "use", "context": "use",
}
