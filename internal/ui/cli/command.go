// Package cli is the program muster: what the users of a fleet do, each in one line.
//
// It acts with the rights of the user's kubeconfig, and keeps nothing: what it shows is what the API server of the hub says at that moment.
package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/muster-fleet/muster/internal/version"
)

// first are the commands that one needs first.
const first = `muster init --context HUB                        make a cluster the hub of a fleet
muster join --context CLUSTER --hub-context HUB  make another one a member
muster get                                       who is in the fleet, and how they are
muster explain                                   what is wrong, and what to do
muster leave NAME                                have a member leave, to the end

muster --help has them all.
`

// NewCommand is the command muster, which users call by that name or as a plugin of kubectl.
func NewCommand(name string, streams genericiooptions.IOStreams) *cobra.Command {
	hub := newAccess()
	command := &cobra.Command{
		Use:   "muster",
		Short: "Look after a fleet of Kubernetes clusters",
		Long: `muster installs the hub of a fleet, makes clusters its members, shows them and what is delivered to them, says what is wrong, and decides who is in. It asks the
cluster to which the current context of the kubeconfig leads, or the one of --context, with the rights of its user: the hub, but for join.

It ends with 0 if it did what was asked for, else with 1 and a sentence that says why; muster get ends with 2 if it shows a part only, because you
may not list the rest. It prints no colours.`,
		Example:      "  muster get\n  muster explain",
		Args:         cobra.NoArgs,
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
	complete(command, "context", hub.contexts)
	complete(command, "namespace", hub.namespaces)
	for _, add := range []func(genericiooptions.IOStreams, *access) *cobra.Command{
		newInit, newJoin, newGet, newExplain, newTree, newDashboard, newDoctor, newSupport, newApprove, newDeny, newRevoke, newConfirm, newLabel, newMove, newLeave, newMigrate, newToken,
	} {
		command.AddCommand(add(streams, hub))
	}
	return command
}

// complete has a flag completed by a function; that cannot fail for a flag that there is.
func complete(command *cobra.Command, flag string, by cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, by); err != nil {
		panic(err)
	}
}
