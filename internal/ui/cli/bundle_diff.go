package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/pmezard/go-difflib/difflib"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/chartfetch"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/repository/scan"
)

// errDiffers is the error of a comparison with differences. As with kubectl diff, the exit code is
// 1, and greater for errors.
var errDiffers = errors.New("the Bundles of the directory and the hub differ")

// diffFailed wraps the error of a comparison that failed.
type diffFailed struct{ error }

func (d diffFailed) Unwrap() error { return d.error }

// diff compares the Bundles of a directory with those on the hub.
func (b *bundler) diff(ctx context.Context, directory string) error {
	c, server, err := b.client()
	differs := false
	if err == nil {
		differs, err = b.differences(ctx, c, directory)
	}
	switch {
	case err != nil && server != "":
		return diffFailed{fmt.Errorf("comparing with the hub at %s: %w", server, err)}
	case err != nil:
		return diffFailed{err}
	case differs:
		return errDiffers
	}
	return nil
}

// differences prints the differences, and reports whether there are any.
func (b *bundler) differences(ctx context.Context, c client.Client, directory string) (differs bool, err error) {
	repo, err := b.repo(directory)
	if err != nil {
		return false, err
	}
	if err := b.fromHub(ctx, c, repo); err != nil {
		return false, err
	}
	tree, err := scan.Directory(directory)
	if err != nil {
		return false, err
	}
	wanted, err := scan.Bundles(ctx, repo, tree, fetchCharts(chartfetch.NewFetcher(http.DefaultClient)))
	if err != nil {
		return false, err
	}
	present, err := bundlesOf(ctx, c, repo)
	if err != nil {
		return false, fmt.Errorf("reading the Bundles of GitRepo %s: %w", client.ObjectKeyFromObject(repo), err)
	}
	for _, bundle := range wanted {
		is, err := b.compare(ctx, c, bundle)
		if err != nil {
			return false, err
		}
		delete(present, bundle.Name)
		differs = differs || is
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		is, err := b.printDiff(name, present[name], nil)
		if err != nil {
			return false, err
		}
		differs = differs || is
	}
	return differs, nil
}

// fromHub takes the spec of the GitRepo on the hub, if there is one of this name. Flags win.
func (b *bundler) fromHub(ctx context.Context, c client.Client, repo *fleet.GitRepo) error {
	present := &fleet.GitRepo{}
	err := c.Get(ctx, client.ObjectKeyFromObject(repo), present)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading GitRepo %s: %w", client.ObjectKeyFromObject(repo), err)
	}
	flags := repo.Spec
	repo.Spec, repo.Labels = present.Spec, present.Labels
	if b.targetsFile != "" {
		repo.Spec.Targets = flags.Targets
	}
	if len(flags.Paths) > 0 {
		repo.Spec.Paths, repo.Spec.Bundles = flags.Paths, nil
	}
	return nil
}

// bundlesOf returns the Bundles on the hub that a GitRepo controls, by name.
func bundlesOf(ctx context.Context, c client.Client, repo *fleet.GitRepo) (map[string]*fleet.Bundle, error) {
	var list fleet.BundleList
	if err := c.List(ctx, &list, client.InNamespace(repo.Namespace), client.MatchingLabels{fleet.LabelRepoName: repo.Name}); err != nil {
		return nil, err
	}
	found := map[string]*fleet.Bundle{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	return found, nil
}

// fetchCharts fetches charts from repositories and registries without credentials.
func fetchCharts(fetcher *chartfetch.Fetcher) scan.Charts {
	return func(ctx context.Context, _ string, options *fleet.HelmOptions) (*scan.Chart, error) {
		fetched, err := fetcher.Fetch(ctx, *options, nil)
		if err != nil {
			return nil, err
		}
		files, version, err := fetched.Files()
		if len(fetched.Data) > chartfetch.MaxEmbedded {
			files = nil
		}
		return &scan.Chart{Version: version, Files: files}, err
	}
}

// compare prints the differences of a Bundle and the one of its name on the hub.
func (b *bundler) compare(ctx context.Context, c client.Client, wanted *fleet.Bundle) (bool, error) {
	present := &fleet.Bundle{}
	err := c.Get(ctx, client.ObjectKeyFromObject(wanted), present)
	switch {
	case apierrors.IsNotFound(err):
		return b.printDiff(wanted.Name, nil, wanted)
	case err != nil:
		return false, fmt.Errorf("reading Bundle %s: %w", client.ObjectKeyFromObject(wanted), err)
	}
	foreign := maps.Clone(present.Labels)
	for key := range wanted.Labels {
		delete(foreign, key)
	}
	for key := range foreign { // users may label Bundles, too
		delete(present.Labels, key)
	}
	return b.printDiff(wanted.Name, present, wanted)
}

// printDiff prints the unified diff of two Bundles, the hub's first. One of them may be nil.
func (b *bundler) printDiff(name string, present, wanted *fleet.Bundle) (differs bool, err error) {
	before, err := readable(present)
	if err != nil {
		return false, err
	}
	after, err := readable(wanted)
	if err != nil || before == after {
		return false, err
	}
	diff := difflib.UnifiedDiff{A: difflib.SplitLines(before), B: difflib.SplitLines(after), Context: 3,
		FromFile: "hub: Bundle " + name, ToFile: "directory: Bundle " + name}
	if present == nil {
		diff.A, diff.FromFile = nil, "/dev/null"
	}
	if wanted == nil {
		diff.B, diff.ToFile = nil, "/dev/null"
	}
	text, err := difflib.GetUnifiedDiffString(diff)
	if err != nil {
		return false, fmt.Errorf("comparing Bundle %s: %w", name, err)
	}
	_, err = io.WriteString(b.Out, text)
	return true, err
}

// readable returns the spec and labels of a Bundle as YAML, with the files unpacked.
func readable(bundle *fleet.Bundle) (string, error) {
	if bundle == nil {
		return "", nil
	}
	shown := bundle.DeepCopy()
	files := map[string]string{}
	for _, resource := range shown.Spec.Resources {
		data, err := delivery.File(resource)
		if err != nil {
			return "", fmt.Errorf("reading Bundle %s: %w", bundle.Name, err)
		}
		files[resource.Name] = string(data)
	}
	shown.Spec.Resources = nil
	delete(shown.Labels, fleet.LabelCommit)
	text, err := json.Marshal(shown.Spec)
	if err != nil {
		return "", fmt.Errorf("encoding Bundle %s: %w", bundle.Name, err)
	}
	var spec map[string]any
	if err := json.Unmarshal(text, &spec); err != nil {
		return "", fmt.Errorf("encoding Bundle %s: %w", bundle.Name, err)
	}
	whole, err := yaml.Marshal(map[string]any{"labels": shown.Labels, "spec": spec, "files": files})
	if err != nil {
		return "", fmt.Errorf("encoding Bundle %s: %w", bundle.Name, err)
	}
	return string(whole), nil
}
