package clone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/muster-fleet/muster/internal/repository/scan"
)

// history is the directory of a branch's former commits, for one Read.
const history = "history"

// errKept is the error for damaged objects in the cache.
var errKept = errors.New("the objects that were kept are not whole, and are fetched again")

// Read calls a function with the files of a commit. Their content is available until the function
// returns. After a failure with kept objects, the next Read fetches them again.
func (r *Repository) Read(ctx context.Context, commit string, do func(scan.Tree) error) (err error) {
	o, err := r.options(ctx)
	if err != nil {
		return r.explain(err)
	}
	directory, done, err := r.objects()
	if err != nil {
		return err
	}
	unread := false
	defer func() {
		_ = os.RemoveAll(filepath.Join(directory, history))
		done(err == nil && !unread)
	}()
	read, err := r.commit(ctx, o, directory, commit)
	if err != nil {
		return err
	}
	tree, err := files(ctx, read)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return fmt.Errorf("reading commit %s: %w", commit, errKept)
	} else if err != nil {
		return fmt.Errorf("reading commit %s: %w", commit, err)
	}
	whole := tree.Read
	tree.Read = func(name string) ([]byte, error) {
		data, err := whole(name)
		unread = unread || err != nil
		return data, err
	}
	return do(tree)
}

// commit returns a commit, fetched if it is not there.
func (r *Repository) commit(ctx context.Context, o options, directory, commit string) (*object.Commit, error) {
	tip := filepath.Join(directory, "tip")
	if read := r.completed(ctx, o, tip, commit); read != nil {
		return read, nil
	}
	if err := os.RemoveAll(tip); err != nil {
		return nil, fmt.Errorf("removing objects of the repository: %w", err)
	}
	repository, err := r.clone(ctx, o, tip, 1)
	if err != nil {
		return nil, err
	}
	read, err := repository.CommitObject(plumbing.NewHash(commit))
	if errors.Is(err, plumbing.ErrObjectNotFound) { // the branch has moved on
		if repository, err = r.clone(ctx, o, filepath.Join(directory, history), 0); err != nil {
			return nil, err
		}
		read, err = repository.CommitObject(plumbing.NewHash(commit))
	}
	if errors.Is(err, plumbing.ErrObjectNotFound) && isCommit.MatchString(r.Revision) {
		return nil, fmt.Errorf("the repository has no commit %s, or no branch and no tag leads to it: correct spec.revision", commit)
	} else if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, fmt.Errorf("the repository has no commit %s any more", commit)
	} else if err != nil {
		return nil, fmt.Errorf("reading commit %s: %w", commit, err)
	}
	return read, nil
}

// completed returns a commit from the kept objects, after a fetch of the missing ones. It returns
// nil without kept objects, and if they are not whole. The server takes the kept commit for a
// whole history, so it may leave out a file of an older commit.
func (r *Repository) completed(ctx context.Context, o options, directory, commit string) *object.Commit {
	kept, err := git.Open(storageIn(ctx, directory), nil)
	if err != nil {
		return nil
	}
	read, err := kept.CommitObject(plumbing.NewHash(commit))
	if err != nil {
		if kept, err = r.clone(ctx, o, directory, 0); err != nil {
			return nil
		}
		if read, err = kept.CommitObject(plumbing.NewHash(commit)); err != nil {
			return nil
		}
	}
	if !whole(ctx, kept, read) {
		return nil
	}
	return read
}

// whole reports whether all files of a commit are there.
func whole(ctx context.Context, repository *git.Repository, commit *object.Commit) bool {
	root, err := commit.Tree()
	if err != nil {
		return false
	}
	walker := object.NewTreeWalker(root, true, nil)
	defer walker.Close()
	for {
		_, entry, err := walker.Next()
		switch {
		case errors.Is(err, io.EOF):
			return true
		case err != nil || ctx.Err() != nil:
			return false
		case entry.Mode == filemode.Dir || entry.Mode == filemode.Submodule:
		case repository.Storer.HasEncodedObject(entry.Hash) != nil:
			return false
		}
	}
}
