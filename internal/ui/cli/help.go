package cli

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// group is a heading of muster --help with its commands, in the order of the page.
type group struct {
	id, title string
	commands  []func(genericiooptions.IOStreams, *access) *cobra.Command
}

// groupHelp holds the commands that cobra adds itself.
const groupHelp = "help"

// groups lists all commands by purpose.
func groups() []group {
	type constructor = func(genericiooptions.IOStreams, *access) *cobra.Command
	return []group{
		{"install", "Install:", []constructor{newInit, newMigrate, newUse, newBackup, newRestore, newHub}},
		{"join", "Join:", []constructor{newJoin, newMove, newToken}},
		{"look", "Look:", []constructor{
			newGet, newWatch, newExplain, newTree, newEvents, newLogs, newWait, newBundle, newDashboard, newDoctor, newSupport,
		}},
		{"decide", "Decide:", []constructor{
			newApprove, newDeny, newRevoke, newQuarantine, newCordon, newDrain, newUncordon, newTaint, newPause, newRetry, newConfirm,
			newLabel, newRename,
		}},
		{"leave", "Leave:", []constructor{newLeave}},
		{groupHelp, "Help:", []constructor{newOptions, newVersion}},
	}
}

// usage prints the commands in groups, and leaves the flags of kubectl to muster options.
const usage = `{{if .HasAvailableSubCommands}}{{$commands := .Commands}}{{range $group := .Groups}}{{.Title}}
{{- range $commands}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}

{{end}}{{if not .Groups}}Commands:
{{- range $commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}

{{end}}{{end}}Usage:{{if .HasParent}}
  {{.UseLine}}{{else}} {{.CommandPath}} COMMAND [flags]{{end}}
{{- if .HasExample}}

Examples:
{{.Example}}{{end}}
{{- if and .HasParent .LocalNonPersistentFlags.HasAvailableFlags}}

Flags:
{{.LocalNonPersistentFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasParent}}
{{end}}
{{if .HasAvailableSubCommands}}Use "{{.CommandPath}} COMMAND --help" for more. {{end -}}
Use "{{.Root.CommandPath}} options" for the flags of all commands.
`

// addCommands adds all commands in groups.
func addCommands(root *cobra.Command, streams genericiooptions.IOStreams, hub *access) {
	for _, g := range groups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, create := range g.commands {
			command := create(streams, hub)
			command.GroupID = g.id
			root.AddCommand(command)
		}
	}
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Hidden = true // for lack of room on the page: --help does the same
	}
	root.SetCompletionCommandGroupID(groupHelp)
	root.SetUsageTemplate(usage)
}

func newOptions(genericiooptions.IOStreams, *access) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags of all commands, and the exit codes",
		Long: `List the flags of all commands. Most are flags of kubectl with the same meaning.

Exit codes of all commands:
  0  success
  1  the command failed
  2  the command line has a mistake, or "muster bundle --diff" failed
  3  the fleet has problems: "muster doctor", and commands with --exit-code
  4  the goal was not reached within --timeout; the hub continues
  5  the list is not complete, because you may not list the rest`,
		Args:              takesNone,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			flags := command.Root().PersistentFlags().FlagUsages()
			_, err := io.WriteString(command.OutOrStdout(), "All commands accept these flags:\n\n"+strings.TrimRight(flags, "\n")+"\n")
			return err
		},
	}
}

// acceptAllNamespaces adds kubectl's flag -A. These commands look in all workspaces by default.
func (h *access) acceptAllNamespaces(command *cobra.Command) *cobra.Command {
	all := command.Flags().BoolP("all-namespaces", "A", false, "Look in all workspaces, which is the default; not with --namespace")
	command.PreRunE = func(*cobra.Command, []string) error {
		if *all && *h.Namespace != "" {
			return usageError{errors.New("--all-namespaces and --namespace exclude each other: use one of the two")}
		}
		return nil
	}
	return command
}
