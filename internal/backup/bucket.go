package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/muster-fleet/muster/internal/bucket"
)

// TakeObject writes a backup to a new object of a bucket, and returns its size. It replaces no
// object, and a failed backup leaves none. It checks the bucket before it reads the hub.
func TakeObject(ctx context.Context, config *rest.Config, o Options, to *bucket.Client, object bucket.Object) (s Summary, size int64,
	err error) {
	upload, err := to.Create(ctx, object)
	if err != nil {
		return s, 0, err
	}
	if s, err = Take(ctx, config, o, upload); err == nil {
		size, err = upload.Commit()
	}
	if err != nil {
		return s, 0, errors.Join(err, upload.Abort())
	}
	s.Note = upload.Note
	return s, size, nil
}

// Bucket holds backups below a prefix, with the times in their names.
type Bucket struct {
	Client *bucket.Client
	Prefix bucket.Object
	// Keep is the number of newest backups to keep; 0 keeps all, and deletes nothing.
	Keep int
}

// Take writes a backup into the bucket, and returns its address and size. It then deletes the
// oldest backups there.
func (b Bucket) Take(ctx context.Context, config *rest.Config, o Options, now time.Time) (s Summary, address string, size int64,
	err error) {
	object := b.named(prefix + now.UTC().Format(stamp) + suffix)
	if s, size, err = TakeObject(ctx, config, o, b.Client, object); err == nil && b.Keep > 0 {
		err = b.prune(ctx)
	}
	return s, object.String(), size, err
}

func (b Bucket) named(name string) bucket.Object {
	if b.Prefix.Key != "" {
		name = b.Prefix.Key + "/" + name
	}
	return bucket.Object{Bucket: b.Prefix.Bucket, Key: name}
}

// ownName matches the name of a backup by a CronJob. All other objects belong to others.
var ownName = regexp.MustCompile(`^` + prefix + `\d{8}T\d{6}Z` + regexp.QuoteMeta(suffix) + `$`)

func (b Bucket) prune(ctx context.Context) error {
	keys, err := b.Client.List(ctx, b.named(prefix))
	if err != nil {
		return fmt.Errorf("looking for older backups: %w", err)
	}
	var own []string
	for _, key := range keys {
		if name := strings.TrimPrefix(key, b.named("").Key); b.named(name).Key == key && ownName.MatchString(name) {
			own = append(own, name)
		}
	}
	slices.Sort(own)
	for _, old := range own[:max(0, len(own)-b.Keep)] {
		err = errors.Join(err, b.Client.Remove(ctx, b.named(old)))
	}
	if err != nil {
		return fmt.Errorf("deleting older backups: %w", err)
	}
	return nil
}

// Download copies the object of a backup into a temporary file, because a restore reads it several
// times. The file is still encrypted. The caller removes it.
func Download(ctx context.Context, from *bucket.Client, object bucket.Object) (open Opener, remove func(), err error) {
	file, err := os.CreateTemp("", prefix+"*"+suffix)
	if err != nil {
		return nil, nil, fmt.Errorf("creating a file for the backup: %w", err)
	}
	remove = func() { _ = os.Remove(file.Name()) } // it is in the directory of temporary files
	if err := errors.Join(from.Download(ctx, object, file), file.Close()); err != nil {
		remove()
		return nil, nil, err
	}
	return func() (io.ReadCloser, error) { return os.Open(file.Name()) }, remove, nil
}
