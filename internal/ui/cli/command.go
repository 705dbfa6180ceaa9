// Package cli implements the program muster: one command for each task of a fleet's users.
//
// The program acts with the rights of the user's kubeconfig, and stores nothing. Its output
// shows the objects as the hub's API server returns them.
package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/muster-fleet/muster/internal/version"
)

// first lists the commands for the first steps.
const first = `muster init --context HUB                        install the hub of a fleet
muster join --context CLUSTER --hub-context HUB  register a cluster as a member
muster get                                       list the members and their health
muster explain                                   explain problems and their remedies
muster leave NAME                                remove a member from the fleet

Use "muster --help" for all commands.
`

// NewCommand returns the command muster under a name: muster, or kubectl muster for the plugin.
func NewCommand(name string, streams genericiooptions.IOStreams) *cobra.Command {
	hub := newAccess()
	command := &cobra.Command{
		Use:   "muster",
		Short: "Manage a fleet of Kubernetes clusters",
		Long: `muster installs the hub of a fleet, registers clusters as members, shows their health,
and removes them. It uses the current kubeconfig context and the rights of its user.`,
		Args:         takesCommand,
		Version:      version.Version,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(command.OutOrStdout(), strings.ReplaceAll(first, "muster ", name+" "))
			return err
		},
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name},
	}
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	hub.AddFlags(command.PersistentFlags())
	command.PersistentFlags().Lookup("namespace").Usage = `Workspace, a namespace on the hub (default: all; "clusters" for join and tokens)`
	hub.addColor(command)
	hub.addQuiet(command)
	command.PersistentPreRunE = func(*cobra.Command, []string) error { return hub.checkColor() }
	complete(command, "context", hub.contexts)
	complete(command, "namespace", hub.namespaces)
	command.SetFlagErrorFunc(func(failed *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, failed.CommandPath())}
	})
	addCommands(command, streams, hub)
	return command
}

// complete registers the completion of a flag. The call fails only for a flag that does not exist.
func complete(command *cobra.Command, flag string, by cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, by); err != nil {
		panic(err)
	}
}
