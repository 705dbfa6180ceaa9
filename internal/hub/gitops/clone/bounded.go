package clone

import (
	"context"
	"fmt"
	"io"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/muster-fleet/muster/internal/repository/scan"
)

// errPack is the error for a repository with too many bytes.
var errPack = fmt.Errorf("the commit has more than %d MiB compressed: divide the repository", maxPack>>20)

// bounded is a storage with a limited number of bytes.
type bounded struct {
	*filesystem.Storage
	// ctx ends a wait for the turn of large objects: go-git passes none.
	ctx  context.Context
	left int64
}

// PackfileWriter writes the data from the server.
func (b *bounded) PackfileWriter() (io.WriteCloser, error) {
	writer, err := b.Storage.PackfileWriter()
	if err != nil {
		return nil, err
	}
	return &counting{newChecked(b.ctx, writer), b}, nil
}

type counting struct {
	io.WriteCloser
	of *bounded
}

func (c *counting) Write(p []byte) (int, error) {
	if c.of.left -= int64(len(p)); c.of.left < 0 {
		return 0, errPack
	}
	return c.WriteCloser.Write(p)
}

// EncodedObject unpacks an object, unless it is larger than a file of a Bundle may be. A small pack
// may hold objects of gigabytes.
func (b *bounded) EncodedObject(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	if size, err := b.EncodedObjectSize(hash); err == nil && size > scan.MaxFile {
		return nil, tooLarge(size)
	}
	return b.Storage.EncodedObject(kind, hash)
}

// tooLarge is the error for an object with too many bytes.
type tooLarge int64

func (t tooLarge) Error() string {
	return fmt.Sprintf("an object of the repository has %d MiB, and may have %d", t>>20, scan.MaxFile>>20)
}

// storageIn returns the storage in a directory.
func storageIn(ctx context.Context, directory string) *bounded {
	return &bounded{filesystem.NewStorage(osfs.New(directory), cache.NewObjectLRU(objectCache)), ctx, maxPack}
}
