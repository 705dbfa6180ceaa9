package scan

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/repository/fleetyaml"
)

// Tree is the files of a directory or a commit.
type Tree struct {
	// Paths are the slash-separated paths of the files and submodules, sorted.
	Paths []string
	// Submodules are the paths without files of their own. Read returns an error for them.
	Submodules map[string]bool
	// Broken are the links that lead to no file of the tree, with the reason. They are paths, too, so
	// only a Bundle with such a link fails.
	Broken map[string]error
	// Read returns a file. It never leaves the tree.
	Read func(path string) ([]byte, error)
}

// directories returns the directories with files, at any depth; "." is the root.
func (t Tree) directories() map[string]bool {
	found := map[string]bool{".": true}
	for _, name := range t.Paths {
		for dir := path.Dir(name); !found[dir]; dir = path.Dir(dir) {
			found[dir] = true
		}
	}
	return found
}

// below returns the files in a directory and its subdirectories.
func (t Tree) below(dir string) []string {
	if dir == "." {
		return t.Paths
	}
	begin, _ := slices.BinarySearch(t.Paths, dir+"/")
	end, _ := slices.BinarySearch(t.Paths, dir+"0") // the character after the slash
	return t.Paths[begin:end]
}

func (t Tree) has(name string) bool {
	_, found := slices.BinarySearch(t.Paths, name)
	return found
}

// options returns the path of a directory's fleet.yaml, or "".
func (t Tree) options(dir string) string {
	for _, name := range fleetyaml.Names {
		if file := path.Join(dir, name); t.has(file) {
			return file
		}
	}
	return ""
}

// pointer begins the file kept by Git LFS in place of a large one.
const pointer = "version https://git-lfs.github.com/spec/"

// readWhole returns a file, or an error if its content is elsewhere.
func (t Tree) readWhole(name string) ([]byte, error) {
	if t.Submodules[name] {
		return nil, fmt.Errorf("%s is a submodule, and submodules are not read: put its files into the repository, or exclude it in a %s", name,
			ignoreFile)
	}
	if err := t.Broken[name]; err != nil {
		return nil, err
	}
	data, err := t.Read(name)
	if err == nil && bytes.HasPrefix(data, []byte(pointer)) {
		return nil, fmt.Errorf("%s is a pointer of Git LFS, and the file itself is not read: store it in the repository, or exclude it in a %s",
			name, ignoreFile)
	}
	return data, err
}

// isYAML reports whether a file makes its directory a Bundle.
func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// within returns the path of a file as a fleet.yaml names it, from its directory.
func within(dir, name string) (string, error) {
	joined := path.Join(dir, name)
	if path.IsAbs(name) || joined == ".." || strings.HasPrefix(joined, "../") {
		return "", fmt.Errorf("%s lies outside of the repository", name)
	}
	return joined, nil
}

// relative returns the path of a file from a directory above it.
func relative(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}

// LinkTarget returns the path of the file behind a link in the tree.
func LinkTarget(link, target string) (string, error) {
	joined, err := within(path.Dir(link), target)
	if err != nil {
		return "", fmt.Errorf("the link %s: %s: put the file itself in the place of the link, or exclude the link in a %s", link,
			kube.Clip(err.Error(), maxShown), ignoreFile)
	}
	return joined, nil
}

// NoTarget is the error for a link without a file behind it.
func NoTarget(link, target string) error {
	return fmt.Errorf("the link %s: there is no file %s: correct the link, or exclude it in a %s", link, kube.Clip(target, maxShown),
		ignoreFile)
}

// maxShown bounds the target of a link in a message. A commit may have many broken links.
const maxShown = 200
