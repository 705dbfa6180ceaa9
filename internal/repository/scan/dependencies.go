package scan

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// maxDepth bounds the depth of dependencies in the repository.
const maxDepth = 8

// dependency is an entry of a Chart.yaml or its lock.
type dependency struct{ Name, Version, Repository string }

// vendor adds the dependencies of charts of the repository to a Bundle, as helm dependency build
// does.
type vendor struct {
	tree   Tree
	charts Charts
	// bundle is the directory of the Bundle, and contents its files.
	bundle   string
	contents map[string][]byte
}

// add adds the missing dependencies of a chart. It lies at root in the Bundle, and at dir in the
// repository.
func (v vendor) add(ctx context.Context, root, dir string, depth int) error {
	file, wanted, err := v.dependencies(root, "Chart.yaml", "requirements.yaml")
	if err != nil || len(wanted) == 0 {
		return err
	}
	_, locked, err := v.dependencies(root, "Chart.lock", "requirements.lock")
	if err != nil {
		return err
	}
	for _, one := range wanted {
		if one.Name == "" || one.Name != path.Base(one.Name) {
			return fmt.Errorf("%s: dependency %q is no name of a chart", path.Join(dir, file), one.Name)
		}
		if one.Repository == "" || v.has(root, one.Name) {
			continue
		}
		if i := slices.IndexFunc(locked, func(l dependency) bool { return l.Name == one.Name && l.Repository == one.Repository }); i >= 0 {
			one.Version = locked[i].Version
		}
		if err := v.addOne(ctx, root, dir, one, depth); err != nil {
			return fmt.Errorf("%s: dependency %s: %w", path.Join(dir, file), one.Name, err)
		}
	}
	return nil
}

// dependencies reads the dependencies from the first file with some.
func (v vendor) dependencies(root string, names ...string) (name string, found []dependency, err error) {
	for _, name := range names {
		var file struct{ Dependencies []dependency }
		if err := yaml.Unmarshal(v.contents[path.Join(root, name)], &file); err != nil {
			return name, nil, fmt.Errorf("%s: %w", path.Join(root, name), err)
		}
		if len(file.Dependencies) > 0 {
			return name, file.Dependencies, nil
		}
	}
	return "", nil, nil
}

// has reports whether a chart has a dependency in its directory charts, as files or as an archive.
func (v vendor) has(root, name string) bool {
	prefix := path.Join(root, "charts", name)
	for file := range v.contents {
		rest, found := strings.CutPrefix(file, prefix)
		if found && (strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, "-") && strings.HasSuffix(rest, ".tgz")) {
			return true
		}
	}
	return false
}

func (v vendor) addOne(ctx context.Context, root, dir string, one dependency, depth int) error {
	place := path.Join(root, "charts", one.Name)
	if local, found := strings.CutPrefix(one.Repository, "file://"); found {
		from, err := within(dir, local)
		switch {
		case err != nil:
			return err
		case !v.tree.has(path.Join(from, "Chart.yaml")):
			return fmt.Errorf("the repository has no %s", path.Join(from, "Chart.yaml"))
		case depth >= maxDepth:
			return fmt.Errorf("it is the dependency of %d charts, one below the other", maxDepth)
		}
		for _, name := range v.tree.below(from) {
			data, err := v.tree.Read(name)
			if err != nil {
				return err
			}
			v.contents[path.Join(place, relative(from, name))] = data
		}
		return v.add(ctx, place, from, depth+1)
	}
	if !strings.Contains(one.Repository, "://") {
		return fmt.Errorf("repository %s is a name of a local Helm configuration: give the address", one.Repository)
	}
	if v.charts == nil {
		return nil
	}
	chart, err := v.charts(ctx, v.bundle, &fleet.HelmOptions{Repo: one.Repository, Chart: one.Name, Version: one.Version})
	if err != nil {
		return err
	}
	if chart.Files == nil {
		return fmt.Errorf("version %s is too large for a Bundle", chart.Version)
	}
	for name, data := range chart.Files {
		v.contents[path.Join(place, name)] = data
	}
	return nil
}
