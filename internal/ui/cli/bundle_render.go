package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"helm.sh/helm/v4/pkg/chart/common"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/chartfetch"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/delivery/chart"
	"github.com/muster-fleet/muster/internal/delivery/customization"
	"github.com/muster-fleet/muster/internal/fleet/selection"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/repository/scan"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// receiver is the Cluster of a preview, with its ClusterGroups.
type receiver struct {
	*fleet.Cluster
	groups []*fleet.ClusterGroup
}

// recipients is the kind of objects for --cluster.
var recipients = lookedFor{command: "muster bundle --render --cluster", among: kindsNamed("clusters")}

// addRender adds the flags of a preview.
func (b *bundler) addRender(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&b.renders, "render", false, "Print the objects that a Cluster gets; needs --cluster or --labels")
	flags.StringVar(&b.cluster, "cluster", "", "Name of the Cluster, for --render")
	flags.StringToStringVar(&b.labels, "labels", nil, "Labels of a Cluster that need not exist, for --render without a hub")
	complete(command, "cluster", func(command *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		return b.completeNames(recipients)(command, nil, text)
	})
}

// checkRender returns an error for flags that exclude or need each other.
func (b *bundler) checkRender() error {
	named := b.cluster != "" || b.labels != nil
	switch {
	case b.renders && b.compares:
		return usageError{errors.New("--render and --diff exclude each other")}
	case b.renders && !named:
		return usageError{errors.New("--render needs a Cluster: name one with --cluster, or describe one with --labels")}
	case named && !b.renders:
		return usageError{errors.New("--cluster and --labels need --render")}
	}
	return nil
}

// render prints the objects of a directory for a Cluster. It names Bundles without a target for the
// Cluster on the error stream.
func (b *bundler) render(ctx context.Context, directory string) error {
	repo, err := b.repo(directory)
	if err != nil {
		return err
	}
	to, err := b.receiver(ctx, repo)
	if err != nil {
		return err
	}
	tree, err := scan.Directory(directory)
	if err != nil {
		return err
	}
	fetcher := chartfetch.NewFetcher(http.DefaultClient)
	bundles, err := scan.Bundles(ctx, repo, tree, fetchCharts(fetcher))
	errs := []error{err}
	for _, bundle := range bundles {
		if err := b.renderBundle(ctx, fetcher, bundle, to); err != nil {
			errs = append(errs, fmt.Errorf("bundle %s: %w", bundle.Name, err))
		}
	}
	return errors.Join(errs...)
}

// receiver returns the Cluster of the flags. It completes a GitRepo with its spec on the hub.
func (b *bundler) receiver(ctx context.Context, repo *fleet.GitRepo) (receiver, error) {
	if b.labels != nil {
		name := b.cluster
		if name == "" {
			name = "preview"
		}
		return receiver{Cluster: &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: repo.Namespace, Name: name, Labels: b.labels}}}, nil
	}
	hub, server, err := b.client()
	if err != nil {
		return receiver{}, err
	}
	found, err := b.lookUp(ctx, hub, server, recipients, b.cluster)
	if err != nil {
		return receiver{}, err
	}
	to := receiver{Cluster: found.(*fleet.Cluster)}
	repo.Namespace = to.Namespace
	if err := b.fromHub(ctx, hub, repo); err != nil {
		return receiver{}, err
	}
	var groups fleet.ClusterGroupList
	if err := hub.List(ctx, &groups, client.InNamespace(to.Namespace)); err != nil {
		return receiver{}, fmt.Errorf("listing the ClusterGroups of %s on the hub at %s: %w", to.Namespace, server, err)
	}
	to.groups = selection.GroupsOf(to.Cluster, selection.Groups(groups.Items))
	return to, nil
}

// renderBundle prints the objects of a Bundle on a Cluster.
func (b *bundler) renderBundle(ctx context.Context, fetcher *chartfetch.Fetcher, bundle *fleet.Bundle, to receiver) error {
	matcher, err := selection.NewMatcher(bundle, nil)
	if err != nil {
		return err
	}
	if why := matcher.WhyNot(to.Cluster, to.groups); why != "" {
		if matcher.UsesGroups() {
			why += "; " + b.inGroups(to)
		}
		_, err := fmt.Fprintf(b.ErrOut, "Bundle %s is not for Cluster %s: %s\n", bundle.Name, view.NameOf(to), why)
		return err
	}
	matched := matcher.Match(to.Cluster, to.groups)
	options, err := customization.Options(customization.Present, bundle, matched, to.Cluster)
	if err != nil {
		return err
	}
	if err := errors.Join(delivery.CheckComparePatches(options.Diff), delivery.CheckChartVersion(options.Helm)); err != nil {
		return err
	}
	manifests, err := manifestsOf(ctx, fetcher, bundle, options)
	if err != nil {
		return err
	}
	var targets []string
	for _, i := range matched {
		targets = append(targets, matcher.NameOf(i))
	}
	name, namespace := chart.Release(bundle.Name, options)
	var text bytes.Buffer
	fmt.Fprintf(&text, "# Bundle %s for Cluster %s, by %s: release %s in namespace %s\n", bundle.Name, view.NameOf(to),
		strings.Join(targets, ", "), name, namespace)
	for _, note := range unseen(options) {
		fmt.Fprintf(&text, "# %s\n", note)
	}
	text.Write(manifests)
	_, err = b.Out.Write(text.Bytes())
	return err
}

// inGroups names the ClusterGroups of a Cluster.
func (b *bundler) inGroups(to receiver) string {
	var names []string
	for _, group := range to.groups[:min(len(to.groups), selection.MaxNear)] {
		names = append(names, group.Name)
	}
	switch {
	case b.labels != nil:
		return "with --labels the Cluster is in no ClusterGroup"
	case len(names) == 0:
		return "the Cluster is in no ClusterGroup"
	}
	return "the Cluster is in ClusterGroup " + kube.JoinNames(names, len(to.groups))
}

// unseen lists the parts missing in a preview.
func unseen(options fleet.BundleDeploymentOptions) (notes []string) {
	if options.TargetNamespace != "" {
		notes = append(notes, "The member puts all objects into namespace "+options.TargetNamespace)
	}
	if options.Helm != nil && len(options.Helm.ValuesFrom) > 0 {
		notes = append(notes, "Without the values of helm.valuesFrom, which are on the member")
	}
	for _, copied := range delivery.CopiedFor(options) {
		notes = append(notes, fmt.Sprintf("Without the copy of %s %s from the hub", copied.Kind, copied.Name))
	}
	return notes
}

// manifestsOf renders a Bundle as a deployer does, without a cluster for look-ups.
func manifestsOf(ctx context.Context, fetcher *chartfetch.Fetcher, bundle *fleet.Bundle,
	options fleet.BundleDeploymentOptions) ([]byte, error) {
	input, err := inputOf(ctx, fetcher, bundle, options)
	if err != nil {
		return nil, err
	}
	loaded, values, err := input.Load()
	if err != nil {
		return nil, err
	}
	helmOptions := fleet.HelmOptions{}
	if options.Helm != nil {
		helmOptions = *options.Helm
	}
	name, namespace := chart.Release(bundle.Name, options)
	texts, err := input.Render(loaded, chart.Templates{
		Values: values, NoSchema: helmOptions.SkipSchemaValidation, Capabilities: common.DefaultCapabilities,
		Release: common.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true},
	}, func(string, string, string, string) (map[string]any, error) { return map[string]any{}, nil })
	if err != nil {
		return nil, err
	}
	return append(definitionsOf(loaded), chart.Manifests(texts)...), nil
}

// inputOf returns the input of a chart. It fetches charts that members would fetch.
func inputOf(ctx context.Context, fetcher *chartfetch.Fetcher, bundle *fleet.Bundle,
	options fleet.BundleDeploymentOptions) (chart.Input, error) {
	input := chart.Input{Options: options, Name: naming.Release(bundle.Name)}
	var err error
	if input.Files, err = chart.Decode(bundle.Spec.Resources); err != nil {
		return input, err
	}
	content, err := delivery.Pack(bundle.Spec.Resources)
	if err != nil {
		return input, err
	}
	input.Content = content.Name
	if input.Own, err = customization.Values(options); err != nil {
		return input, err
	}
	if chart.Elsewhere(input.Files, options) {
		fetched, err := fetcher.Fetch(ctx, *options.Helm, nil)
		if err != nil {
			return input, err
		}
		input.Archive = &chart.Archive{Archive: *fetched, Incomplete: options.Helm.DisableDependencyUpdate}
	}
	return input, nil
}

// definitionsOf returns the CustomResourceDefinitions of a chart.
func definitionsOf(loaded *helm.Chart) []byte {
	texts := map[string]string{}
	for _, definition := range loaded.CRDObjects() {
		texts[definition.Filename] = string(definition.File.Data)
	}
	return chart.Manifests(texts)
}
