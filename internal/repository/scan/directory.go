package scan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
)

// MaxPaths bounds the files of a repository.
const MaxPaths = 100_000

// MaxFile bounds the bytes read from a file.
const MaxFile = maxFiles

// Directory returns the tree of a directory on disk. Links to files count. Links to directories do
// not.
func Directory(name string) (Tree, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return Tree{}, fmt.Errorf("reading directory %s: %w", name, err)
	}
	tree := Tree{Broken: map[string]error{}, Read: func(file string) ([]byte, error) {
		info, err := root.Stat(file)
		switch {
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", path.Join(name, file), err)
		case info.Size() > MaxFile:
			return nil, TooLarge(file, info.Size())
		}
		data, err := root.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path.Join(name, file), err)
		}
		return data, nil
	}}
	err = fs.WalkDir(root.FS(), ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("reading %s: %w", path.Join(name, file), err)
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.Type()&fs.ModeSymlink != 0:
			info, err := root.Stat(file)
			if err != nil {
				tree.Broken[file] = brokenLink(root, file, err)
			} else if !info.Mode().IsRegular() {
				return nil
			}
		case !entry.Type().IsRegular():
			return nil
		}
		if tree.Paths = append(tree.Paths, file); len(tree.Paths) > MaxPaths {
			return TooMany()
		}
		return nil
	})
	slices.Sort(tree.Paths)
	return tree, err
}

// brokenLink returns the error for a link of a directory that leads to no file of the directory.
func brokenLink(root *os.Root, file string, err error) error {
	target, unread := root.Readlink(file)
	switch _, outside := LinkTarget(file, target); {
	case unread == nil && outside != nil:
		return outside
	case unread == nil && errors.Is(err, fs.ErrNotExist):
		return NoTarget(file, target)
	}
	return fmt.Errorf("following the link %s: %w", file, err)
}

// TooLarge is the error for a file above MaxFile.
func TooLarge(file string, size int64) error {
	return fmt.Errorf("%s has %d MiB, and a Bundle may have %d MiB: exclude the file in a %s", file, size>>20, maxFiles>>20, ignoreFile)
}

// TooMany is the error for more than MaxPaths files.
func TooMany() error {
	return fmt.Errorf("the repository has more than %d files: divide it", MaxPaths)
}
