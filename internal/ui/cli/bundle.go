package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/repository/scan"
)

// bundler is the command muster bundle.
type bundler struct {
	genericiooptions.IOStreams
	*access
	print             *genericclioptions.PrintFlags
	name, targetsFile string
	paths             []string
	compares, renders bool
	// cluster and labels are the Cluster of a preview.
	cluster string
	labels  map[string]string
}

func newBundle(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	b := &bundler{IOStreams: streams, access: h, print: genericclioptions.NewPrintFlags("").WithDefaultOutput("yaml")}
	command := &cobra.Command{
		Use:   "bundle DIRECTORY",
		Short: "Print the Bundles that a GitRepo makes of a directory",
		Long: `Print the Bundles that a GitRepo with this content makes. Without --diff
and --render, the command contacts no cluster.

A directory with a fleet.yaml becomes a Bundle. So does each path with YAML that has no
fleet.yaml. An error names the file and the line.

Charts of a chart repository stay there, also those that a chart depends on. A GitRepo puts their
files into the Bundle.

With --diff, the command compares the Bundles with those on the hub, and fetches charts, without
credentials. The GitRepo of this name on the hub sets the options that no flag sets. The exit code
is 1 if there are differences, and greater than 1 after an error.

With --render, the command prints the objects that one Cluster gets. It matches the targets, fills
the templates with the labels and values of the Cluster, and renders charts and kustomizations. The
hub has the Cluster, its ClusterGroups and the GitRepo of this name. With --labels, no hub is
needed. Bundles that do not select the Cluster are named with the nearest targets. Values and
look-ups on the member, and Policies, have no effect.`,
		Example: `  # Show what a repository becomes, before you push
  muster bundle .

  # Compare it with the Bundles on the hub
  muster bundle . --name web --targets-file targets.yaml --diff

  # Show the objects that a Cluster gets; or any Cluster with these labels, without a hub
  muster bundle . --render --cluster clusters/web
  muster bundle . --targets-file targets.yaml --render --labels env=prod,region=eu

  # Only the names of the Bundles of some directories
  muster bundle . --path 'apps/*' -o name`,
		Args: takes(1, 1, "a directory"),
		RunE: func(command *cobra.Command, args []string) error {
			return b.run(command.Context(), args[0])
		},
	}
	b.print.AddFlags(command)
	command.Flags().StringVar(&b.name, "name", "", "Name of the GitRepo, the first part of the Bundles' names (default: the directory's)")
	command.Flags().StringVar(&b.targetsFile, "targets-file", "",
		"YAML file with the targets of the GitRepo (default: the ClusterGroup default)")
	command.Flags().BoolVar(&b.compares, "diff", false, "Compare the Bundles with those on the hub")
	b.addRender(command)
	command.Flags().StringArrayVar(&b.paths, "path", nil,
		"Path or pattern, as in spec.paths of the GitRepo; can be repeated (default: the root)")
	return command
}

// run shows, compares or renders the Bundles of a directory.
func (b *bundler) run(ctx context.Context, directory string) error {
	if err := b.checkRender(); err != nil {
		return err
	}
	switch {
	case b.renders:
		return b.render(ctx, directory)
	case b.compares:
		return b.diff(ctx, directory)
	}
	repo, err := b.repo(directory)
	if err != nil {
		return err
	}
	return b.show(ctx, repo, directory)
}

// repo returns the GitRepo of the flags.
func (b *bundler) repo(directory string) (*fleet.GitRepo, error) {
	whole, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	repo := &fleet.GitRepo{
		ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(*b.Namespace, defaultWorkspace), Name: cmp.Or(b.name, filepath.Base(whole))},
		Spec:       fleet.GitRepoSpec{Paths: b.paths},
	}
	if b.targetsFile == "" {
		return repo, nil
	}
	text, err := os.ReadFile(b.targetsFile)
	if err != nil {
		return nil, fmt.Errorf("reading the targets: %w", err)
	}
	var file struct {
		Targets []fleet.GitTarget `json:"targets"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("%s is no map with a list of targets: %w", b.targetsFile, err)
	}
	repo.Spec.Targets = file.Targets
	return repo, nil
}

// show prints the Bundles. Those beside an error are printed too.
func (b *bundler) show(ctx context.Context, repo *fleet.GitRepo, directory string) error {
	printer, err := b.print.ToPrinter()
	if err != nil {
		return err
	}
	tree, err := scan.Directory(directory)
	if err != nil {
		return err
	}
	bundles, err := scan.Bundles(ctx, repo, tree, nil)
	errs := []error{err}
	for _, bundle := range bundles {
		manifest, err := runtime.DefaultUnstructuredConverter.ToUnstructured(bundle)
		if err != nil {
			return fmt.Errorf("encoding Bundle %s: %w", bundle.Name, err)
		}
		delete(manifest, "status")
		errs = append(errs, printer.PrintObj(&unstructured.Unstructured{Object: manifest}, b.Out))
	}
	return errors.Join(errs...)
}
