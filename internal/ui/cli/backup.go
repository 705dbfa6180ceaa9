package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/muster-fleet/muster/internal/backup"
	"github.com/muster-fleet/muster/internal/bucket"
)

// backuper is the command muster backup.
type backuper struct {
	genericiooptions.IOStreams
	*access
	keys    backup.Keys
	options backup.Options
	file    string
	// server says which S3 server has the bucket of an s3:// address.
	server bucket.Settings
}

func newBackup(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	b := &backuper{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:    "backup",
		Hidden: true, // for lack of room on the page: the help of muster init names it
		Short:  "Write the objects of the hub into an encrypted file",
		Long: `Write the objects of the fleet into one encrypted file. They are from one moment of the hub:

- tokens, members with their reports, ClusterGroups, Policies, Schedules and AuditEntries
- Bundles, GitRepos, HelmOps, placements and overrides
- the workspaces with their Secrets, and the identities of MemberClusters
- the key and the term of the hub

The objects that the hub writes again are left out.

The file is always encrypted, in the format of age. With --recipient, a public key
encrypts it, and only the private key opens it. With --passphrase-file, both use a passphrase.
The command replaces no file. You need the right to list all of these objects.

An s3:// address writes to a bucket. A failed run leaves no object. The credentials come only
from the environment, and from the files that it names: AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, AWS_WEB_IDENTITY_TOKEN_FILE, AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE.
AWS_ENDPOINT_URL, AWS_REGION and AWS_CA_BUNDLE do the same as the flags.
For the way back, see "muster restore --help".`,
		Example: `  # Encrypt with a public key: age-keygen -o key.txt makes a pair
  muster backup --context hub --output hub.age --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p

  # Encrypt with a passphrase
  muster backup --context hub --output hub.age --passphrase-file passphrase.txt`,
		Args: takesNone,
		RunE: func(command *cobra.Command, _ []string) error { return b.run(command.Context()) },
	}
	flags := command.Flags()
	flags.StringVarP(&b.file, "output", "o", "", "File to write, s3://BUCKET/NAME, or - for standard output")
	flags.StringArrayVar(&b.keys.Recipients, "recipient", nil, "Public key of age that encrypts the file; may be repeated")
	flags.StringVar(&b.keys.RecipientsFile, "recipients-file", "", "File with public keys of age, one a line")
	flags.StringVar(&b.keys.PassphraseFile, "passphrase-file", "", "File with a passphrase in its first line")
	flags.BoolVar(&b.options.WithoutSecrets, "without-secrets", false, "Leave out all Secrets")
	b.server.AddFlags(flags)
	return command
}

func (b *backuper) run(ctx context.Context) error {
	if b.file == "" {
		return usageError{errors.New("--output is required: the file to write, s3://BUCKET/NAME, or -")}
	}
	recipients, err := b.keys.ForWriting()
	if err != nil {
		return usageError{err}
	}
	storage, object, err := inBucket(b.file, b.server)
	if err != nil {
		return err
	}
	hub, err := b.checked()
	if err != nil {
		return err
	}
	if err := require(ctx, hub.reachable()[:1]); err != nil {
		return err
	}
	out, begun := b.Out, time.Now()
	if b.file == "-" {
		out = b.ErrOut
	}
	p := b.newProgress(out)
	b.options.Recipients = recipients
	b.options.Progress = func(text string) { p.step("%s", text) }
	summary, size, err := b.take(ctx, hub, storage, object)
	if err != nil {
		return interruptible(ctx, err)
	}
	printSummary(&p, summary)
	p.line("%s has %d objects of the hub at %s: %s before compression, %s as a file, written in %s.",
		b.file, summary.Objects(), hub.server, bytesOf(int64(summary.Bytes())), bytesOf(size), time.Since(begun).Round(time.Millisecond))
	if summary.Note != "" {
		p.line("%s", summary.Note)
	}
	if summary.Hub == nil {
		p.line("The file has no key of the hub: a restored hub cannot fence this one.")
	}
	if !summary.Secrets {
		p.line("The file has no Secrets: keep the kubeconfigs and the credentials of repositories elsewhere.")
	}
	return p.err
}

// inBucket returns the client and the object of an s3:// address; nil for the name of a file.
func inBucket(address string, server bucket.Settings) (*bucket.Client, bucket.Object, error) {
	if !bucket.IsAddress(address) {
		return nil, bucket.Object{}, nil
	}
	object, err := bucket.Parse(address)
	if err != nil {
		return nil, object, usageError{err}
	}
	at, err := bucket.New(server.WithEnvironment())
	return at, object, err
}

func (b *backuper) take(ctx context.Context, hub *checked, at *bucket.Client, object bucket.Object) (backup.Summary, int64, error) {
	switch {
	case at != nil:
		return backup.TakeObject(ctx, hub.config, b.options, at, object)
	case b.file != "-":
		return backup.TakeFile(ctx, hub.config, b.options, b.file)
	}
	counted := &countingWriter{to: b.Out}
	summary, err := backup.Take(ctx, hub.config, b.options, counted)
	return summary, counted.written, err
}

// printSummary prints the number and the size of the objects of each kind.
func printSummary(p *progress, s backup.Summary) {
	p.line("")
	for _, c := range s.Counts {
		p.line("  %6d  %8s  %s", c.Objects, bytesOf(int64(c.Bytes)), c.Kind)
	}
	p.line("")
}

// bytesOf returns a size in the form of Kubernetes, rounded up to a whole unit.
func bytesOf(size int64) string {
	const unit = 1024
	divisor := int64(1)
	for size/divisor >= 10*unit {
		divisor *= unit
	}
	return resource.NewQuantity((size+divisor-1)/divisor*divisor, resource.BinarySI).String() + "B"
}

// countingWriter counts the written bytes.
type countingWriter struct {
	to      io.Writer
	written int64
}

// Write implements io.Writer.
func (c *countingWriter) Write(text []byte) (int, error) {
	n, err := c.to.Write(text)
	c.written += int64(n)
	if err != nil {
		return n, fmt.Errorf("writing the backup: %w", err)
	}
	return n, nil
}
