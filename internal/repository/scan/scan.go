// Package scan makes Bundles from the directories of a repository, as `fleet apply` does.
//
// Its invariant: it is pure but for Charts. The same files give the same Bundles, byte for byte. A
// broken directory costs only its own Bundle, and its error names the file.
package scan

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// Charts fetches a chart from elsewhere, for the Bundle of a directory.
type Charts func(ctx context.Context, directory string, options *fleet.HelmOptions) (*Chart, error)

// Chart is a chart from elsewhere.
type Chart struct {
	// Version is the chosen version.
	Version string
	// Files are its files by their paths in it; nil if it is too large for a Bundle. Then each member
	// fetches this version.
	Files map[string][]byte
}

// source is the directory of a Bundle.
type source struct {
	dir string
	// options is the path of its fleet.yaml, or "".
	options string
	// file is the last part of the Bundle's name, if spec.bundles names an options file; else "".
	file string
	// files are the paths of its files.
	files []string
}

// Bundles returns the Bundles of a repository, sorted by name, with their values in the spec.
// Beside an error, it also returns the valid Bundles. Without charts, the members fetch charts from
// elsewhere.
func Bundles(ctx context.Context, repo *fleet.GitRepo, tree Tree, charts Charts) ([]*fleet.Bundle, error) {
	tree, err := visible(tree)
	if err != nil {
		return nil, err
	}
	sources, err := find(repo, tree)
	var bundles []*fleet.Bundle
	from := map[string]string{}
	errs := []error{err}
	for _, s := range sources {
		bundle, err := read(ctx, repo, tree, s, charts)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if other, twice := from[bundle.Name]; twice {
			errs = append(errs, fmt.Errorf("%s and %s both make a Bundle %s: name one of them in its fleet.yaml", other, s, bundle.Name))
			continue
		}
		from[bundle.Name] = s.String()
		bundles = append(bundles, bundle)
	}
	if len(sources) == 0 && err == nil {
		errs = append(errs, fmt.Errorf("no resource found: no file ends with .yaml or .yml in %s", strings.Join(paths(repo), ", ")))
	}
	slices.SortFunc(bundles, func(a, b *fleet.Bundle) int { return strings.Compare(a.Name, b.Name) })
	return bundles, errors.Join(errs...)
}

func (s source) String() string {
	if s.dir == "." {
		return "the root of the repository"
	}
	return s.dir
}

// name returns the name of the source's Bundle without one in its fleet.yaml.
func (s source) name(repo string) string {
	return naming.Release(path.Join(repo, s.dir, s.file))
}

func paths(repo *fleet.GitRepo) []string {
	if len(repo.Spec.Paths) == 0 {
		return []string{"."}
	}
	return repo.Spec.Paths
}

// find returns the directories of the Bundles, in the order of their paths.
func find(repo *fleet.GitRepo, tree Tree) ([]source, error) {
	if len(repo.Spec.Bundles) > 0 {
		return driven(repo.Spec.Bundles, tree)
	}
	directories := tree.directories()
	bases, errs := map[string]bool{}, []error(nil)
	for _, pattern := range paths(repo) {
		clean := path.Clean(strings.TrimPrefix(pattern, "/"))
		if _, err := path.Match(clean, ""); err != nil {
			errs = append(errs, fmt.Errorf("spec.paths: %s is no valid pattern: %w", pattern, err))
			continue
		}
		for dir := range directories {
			if matched, _ := path.Match(clean, dir); matched {
				bases[dir] = true
			}
		}
		if tree.Submodules[clean] {
			_, err := tree.Read(clean)
			errs = append(errs, fmt.Errorf("spec.paths: %w", err))
		}
	}
	own := map[string]bool{} // the directories with a fleet.yaml
	for dir := range directories {
		own[dir] = tree.options(dir) != ""
	}
	chosen := map[string]bool{}
	for base := range bases {
		for dir := range directories {
			if own[dir] && (dir == base || base == "." || strings.HasPrefix(dir, base+"/")) {
				chosen[dir] = true
			}
		}
		if !own[base] && slices.ContainsFunc(ownFiles(tree, base, own), isYAML) {
			chosen[base] = true
		}
	}
	var sources []source
	for dir := range chosen {
		sources = append(sources, source{dir: dir, options: tree.options(dir), files: ownFiles(tree, dir, own)})
	}
	slices.SortFunc(sources, func(a, b source) int { return strings.Compare(a.dir, b.dir) })
	return sources, errors.Join(errs...)
}

// ownFiles returns the files below a directory outside the Bundles below it.
func ownFiles(tree Tree, base string, own map[string]bool) (files []string) {
	other := map[string]bool{} // whether the files of a directory belong to another Bundle
	for _, name := range tree.below(base) {
		dir := path.Dir(name)
		elsewhere, known := other[dir]
		for up := dir; !known && up != base; up = path.Dir(up) {
			elsewhere = elsewhere || own[up]
		}
		other[dir] = elsewhere
		if !elsewhere {
			files = append(files, name)
		}
	}
	return files
}

// driven returns the Bundles listed in spec.bundles.
func driven(listed []fleet.BundlePath, tree Tree) (sources []source, err error) {
	var errs []error
	directories := tree.directories()
	for i, entry := range listed {
		base := path.Clean(strings.TrimPrefix(entry.Base, "/"))
		s := source{dir: base, options: tree.options(base), files: tree.below(base)}
		if entry.Options != "" {
			s.options, s.file = path.Join(base, entry.Options), entry.Options
		}
		switch {
		case entry.Base == "":
			errs = append(errs, fmt.Errorf("spec.bundles[%d] has no base", i))
		case tree.Submodules[base]:
			_, err := tree.Read(base)
			errs = append(errs, fmt.Errorf("spec.bundles[%d]: %w", i, err))
		case !directories[base]:
			errs = append(errs, fmt.Errorf("spec.bundles[%d]: the repository has no directory %s with files", i, entry.Base))
		case entry.Options != "" && !tree.has(s.options):
			errs = append(errs, fmt.Errorf("spec.bundles[%d]: the repository has no file %s, which is relative to base", i, s.options))
		default:
			sources = append(sources, s)
		}
	}
	return sources, errors.Join(errs...)
}
