package server

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/muster-fleet/muster/internal/backup"
)

// newBackup returns the command muster-hub backup, for a CronJob of the chart. It holds public keys
// only, so that it cannot open what it writes.
func newBackup(configure func() (*rest.Config, error)) *cobra.Command {
	var keys backup.Keys
	var directory backup.Directory
	var options backup.Options
	command := &cobra.Command{
		Use:   "backup",
		Short: "Write a backup of the hub into a directory",
		Long: `Write the objects of the fleet into an encrypted file, with the time in its name, and delete the oldest files beyond
--keep. The file is the same as the file of muster backup. Only the private keys of the recipients open it.`,
		Example: `  muster-hub backup --directory /backups --keep 14 --recipient age1...`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if directory.Path == "" {
				return errors.New("--directory is required: the directory for the backups")
			}
			if options.Recipients, err = keys.ForWriting(); err != nil {
				return err
			}
			config, err := configure()
			if err != nil {
				return err
			}
			options.WithoutSecrets = len(options.SecretsFrom) == 0
			begun := time.Now()
			summary, path, size, err := directory.Take(command.Context(), config, options, begun)
			if path != "" && summary.Objects() > 0 {
				fmt.Fprintf(command.OutOrStdout(), "%s has %d objects at version %s: %d bytes before compression, %d bytes as a file, written in %s\n",
					path, summary.Objects(), summary.ResourceVersion, summary.Bytes(), size, time.Since(begun).Round(time.Millisecond))
			}
			return err
		},
	}
	set := command.Flags()
	set.StringVar(&directory.Path, "directory", "", "directory for the backups")
	set.IntVar(&directory.Keep, "keep", 0, "number of backups to keep; 0 keeps all")
	set.StringArrayVar(&keys.Recipients, "recipient", nil, "public key of age that encrypts the file; may be repeated")
	set.StringArrayVar(&options.SecretsFrom, "secrets-from", nil, "namespace with Secrets to include; may be repeated (default: no Secrets)")
	return command
}
