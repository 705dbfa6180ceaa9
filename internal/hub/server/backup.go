package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/muster-fleet/muster/internal/backup"
	"github.com/muster-fleet/muster/internal/bucket"
)

// newBackup returns the command muster-hub backup, for a CronJob of the chart. It holds public keys
// only, so that it cannot open what it writes.
func newBackup(configure func() (*rest.Config, error)) *cobra.Command {
	var keys backup.Keys
	var to destination
	var options backup.Options
	command := &cobra.Command{
		Use:   "backup",
		Short: "Write a backup of the hub into a directory or a bucket",
		Long: `Write the objects of the fleet into an encrypted file, with the time in its name, and delete the oldest files beyond
--keep. The file is the same as the file of muster backup. Only the private keys of the recipients open it.

The credentials of a bucket come from the environment, as for muster backup. The address of its server comes only from the flags.`,
		Example: `  muster-hub backup --directory /backups --keep 14 --recipient age1...
  muster-hub backup --bucket s3://backups/hub --s3-endpoint https://s3.example.com --keep 14 --recipient age1...`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if options.Recipients, err = keys.ForWriting(); err != nil {
				return err
			}
			take, err := to.taker()
			if err != nil {
				return err
			}
			config, err := configure()
			if err != nil {
				return err
			}
			options.WithoutSecrets = len(options.SecretsFrom) == 0
			begun := time.Now()
			summary, path, size, err := take(command.Context(), config, options, begun)
			if path != "" && summary.Objects() > 0 {
				fmt.Fprintf(command.OutOrStdout(), "%s has %d objects at version %s: %d bytes before compression, %d bytes as a file, written in %s\n",
					path, summary.Objects(), summary.ResourceVersion, summary.Bytes(), size, time.Since(begun).Round(time.Millisecond))
			}
			if summary.Note != "" {
				fmt.Fprintln(command.OutOrStdout(), summary.Note)
			}
			return err
		},
	}
	set := command.Flags()
	set.StringVar(&to.directory, "directory", "", "directory for the backups")
	set.StringVar(&to.bucket, "bucket", "", "bucket for the backups, with an optional prefix: s3://BUCKET/PREFIX")
	to.server.AddFlags(set)
	set.IntVar(&to.keep, "keep", 0, "number of backups to keep; 0 keeps all")
	set.StringArrayVar(&keys.Recipients, "recipient", nil, "public key of age that encrypts the file; may be repeated")
	set.StringArrayVar(&options.SecretsFrom, "secrets-from", nil, "namespace with Secrets to include; may be repeated (default: no Secrets)")
	return command
}

// taker writes a backup, and returns its place and size.
type taker func(context.Context, *rest.Config, backup.Options, time.Time) (summary backup.Summary, place string, size int64, err error)

// destination is the place of the backups: a directory or a bucket.
type destination struct {
	directory, bucket string
	server            bucket.Settings
	keep              int
}

// taker returns the function that writes a backup to the destination. It reads no address from the
// environment, because other values of the chart set variables too.
func (d destination) taker() (taker, error) {
	if (d.directory == "") == (d.bucket == "") {
		return nil, errors.New("give one place for the backups: --directory, or --bucket")
	}
	if d.directory != "" {
		return backup.Directory{Path: d.directory, Keep: d.keep}.Take, nil
	}
	prefix, err := bucket.ParsePrefix(d.bucket)
	if err != nil {
		return nil, err
	}
	client, err := bucket.New(d.server)
	return backup.Bucket{Client: client, Prefix: prefix, Keep: d.keep}.Take, err
}
