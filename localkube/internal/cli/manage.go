package cli

import (
	"github.com/spf13/cobra"

	"github.com/muster-fleet/muster/localkube/internal/cluster"
	"github.com/muster-fleet/muster/localkube/internal/machine"
)

func newDownCommand(root *string) *cobra.Command {
	return &cobra.Command{
		Use:     "down NAME",
		Short:   "Stop a running cluster and keep its state",
		Example: `  localkube down web`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			dir, err := clusterDir(*root, args[0])
			if err != nil {
				return err
			}
			ran, err := cluster.Down(dir)
			if err != nil {
				return err
			}
			if ran {
				command.Printf("cluster %s stopped\n", dir.Name)
			} else {
				command.Printf("cluster %s was not running\n", dir.Name)
			}
			return nil
		},
	}
}

func newDeleteCommand(root *string) *cobra.Command {
	return &cobra.Command{
		Use:     "delete NAME",
		Short:   "Stop a cluster and remove its state",
		Example: `  localkube delete web`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			dir, err := clusterDir(*root, args[0])
			if err != nil {
				return err
			}
			if err := cluster.Delete(dir); err != nil {
				return err
			}
			command.Printf("cluster %s deleted\n", dir.Name)
			return nil
		},
	}
}

func newListCommand(root *string) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "Show the clusters, whether they run, and their URLs",
		Example: `  localkube list`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			root, err := rootDir(*root)
			if err != nil {
				return err
			}
			return cluster.List(root, command.OutOrStdout())
		},
	}
}

func newCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "check",
		Short:   "Check whether this machine can run nodes with containers, and name missing packages",
		Example: `  localkube check && localkube up web --node=kubelet`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if _, err := machine.Find(); err != nil {
				return err
			}
			command.Println("this machine can run nodes with containers: localkube up NAME --node=kubelet")
			return nil
		},
	}
}
