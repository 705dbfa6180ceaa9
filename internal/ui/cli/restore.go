package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/muster-fleet/muster/internal/backup"
	"github.com/muster-fleet/muster/internal/bucket"
	"github.com/muster-fleet/muster/internal/naming"
)

// restorer is the command muster restore.
type restorer struct {
	genericiooptions.IOStreams
	*access
	keys  backup.Keys
	merge bool
	// server says which S3 server has the bucket of an s3:// address.
	server bucket.Settings
}

func newRestore(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	r := &restorer{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:    "restore FILE",
		Hidden: true, // for lack of room on the page: the help of muster backup names it
		Short:  "Restore the objects of a hub from a file of muster backup",
		Long: `Create the objects of a backup on a hub without members. Install the hub first, and stop it for
the time of the restore. The command can be repeated after a failure. It changes and deletes no
object: an object that is there already stays.

Placements, overrides and envelopes are created in the names of their authors, because the hub
acts with the rights of these. They are paused until you resume them, because the backup has no
objects that placements select. Tokens keep the rest of their life. A hub with members of its own
is refused, unless --merge is given.

The hub gets the key of the lost hub, and a higher term. Members that have obeyed this hub refuse
the lost one; see "muster hub --help". With --merge, the hub keeps its own key.

FILE may be an s3:// address. Its credentials and its server are given as to "muster backup".

You need the rights of an administrator, and the right to impersonate the authors.`,
		Example: `  # Stop the hub on the new cluster, restore the backup, and start the hub
  kubectl --context new-hub -n cattle-fleet-system scale deployment fleet-controller --replicas=0
  muster restore hub.age --context new-hub --passphrase-file passphrase.txt
  kubectl --context new-hub -n cattle-fleet-system scale deployment fleet-controller --replicas=1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{errors.New("give one file of muster backup: muster restore FILE")}
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			return interruptible(command.Context(), r.run(command.Context(), args[0]))
		},
	}
	flags := command.Flags()
	flags.StringVar(&r.keys.IdentityFile, "identity", "", "File with the private key of age that opens the backup")
	flags.StringVar(&r.keys.PassphraseFile, "passphrase-file", "", "File with the passphrase in its first line")
	flags.BoolVar(&r.merge, "merge", false, "Restore into a hub that has members of its own, and keep these")
	r.server.AddFlags(flags)
	return command
}

func (r *restorer) run(ctx context.Context, file string) error {
	identities, err := r.keys.ForReading()
	if err != nil {
		return usageError{err}
	}
	storage, object, err := inBucket(file, r.server)
	if err != nil {
		return err
	}
	hub, err := r.checked()
	if err != nil {
		return err
	}
	if err := require(ctx, append(hub.reachable()[:1], hub.hubRuns()[0])); err != nil {
		return err
	}
	p, begun := r.newProgress(r.Out), time.Now()
	open := func() (io.ReadCloser, error) { return os.Open(file) }
	if storage != nil {
		downloaded, remove, err := backup.Download(ctx, storage, object)
		if err != nil {
			return err
		}
		defer remove()
		open = downloaded
	}
	restored, err := backup.Restore(ctx, hub.config, open, backup.RestoreOptions{
		Identities: identities, Merge: r.merge, Idle: hub.isIdle, Progress: func(text string) { p.step("%s", text) },
	})
	for _, text := range append(restored.Notes, restored.Failed...) {
		p.paragraph(2, "  %s", text)
	}
	if restored.Created+restored.Present+restored.LeftOut > 0 {
		p.line("%d objects of the backup of %s were created in %s; %d were there, and %d were left out.", restored.Created,
			restored.Taken.Format(time.RFC3339), time.Since(begun).Round(time.Millisecond), restored.Present, restored.LeftOut)
	}
	if err != nil {
		return err
	}
	if restored.Term > 0 {
		p.line("The hub has the key of the lost hub, and term %d. Members that have obeyed it refuse the lost hub.", restored.Term)
		p.paragraph(0, "Deliveries from after the backup stay on the members. Each member reports them after its return: muster explain")
	}
	if restored.Paused > 0 {
		p.paragraph(0, "%d placements are paused, because the objects that they select are not in the backup. Start the hub, restore these "+
			"objects, and resume each placement: muster pause placements/NAME --undo. Without the objects, agents of KubeFleet, and of "+
			"earlier versions of Muster, remove them from their members.", restored.Paused)
	}
	p.line("Start the hub: kubectl -n %s scale deployment %s --replicas=1", naming.SystemNamespace, hubDeployment)
	return p.err
}

// isIdle returns an error while a hub leads on the cluster, or if that is unknown.
func (c *checked) isIdle(ctx context.Context) error {
	says, err := c.leader(ctx)
	switch {
	case errors.As(err, &notAsked{}):
		return err
	case err != nil:
		return nil //nolint:nilerr // a restore needs a cluster without a leader
	}
	return fmt.Errorf("a hub runs on %s: %s, and it would act on a part of the fleet: stop it for the time of the restore: "+
		"kubectl -n %s scale deployment %s --replicas=0", c.server, says, naming.SystemNamespace, hubDeployment)
}
