package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
)

func newUse(_ genericiooptions.IOStreams, h *access) *cobra.Command {
	return &cobra.Command{
		Use:   "use CONTEXT",
		Short: "Choose the context of the hub for all commands",
		Long: `Set the current context of the kubeconfig, as "kubectl config use-context" does. Commands
without --context use it, and so does kubectl.`,
		Example: `  muster use hub`,
		Args:    takes(1, 1, "the name of a context"),
		ValidArgsFunction: func(command *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return h.contexts(command, args, prefix)
		},
		RunE: func(command *cobra.Command, args []string) error {
			loader := h.ToRawKubeConfigLoader()
			config, err := loader.RawConfig()
			if err != nil {
				return h.explainConfig(err)
			}
			if _, known := config.Contexts[args[0]]; !known {
				*h.Context = args[0]
				return h.explainConfig(fmt.Errorf("context %s is unknown", args[0]))
			}
			config.CurrentContext = args[0]
			if err := clientcmd.ModifyConfig(loader.ConfigAccess(), config, true); err != nil {
				return fmt.Errorf("changing the kubeconfig: %w", err)
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "All commands use context %s from now on.\n", args[0])
			return err
		},
	}
}
