package scan

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8svalidation "k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/repository/fleetyaml"
)

const (
	// maxPlain is the maximum of uncompressed bytes of all resources; more of them are compressed.
	maxPlain = 1_000_000
	// maxFiles bounds the bytes of a Bundle's files before compression, as the hub does.
	maxFiles = 16 << 20
	// chartDir holds charts from elsewhere.
	chartDir = ".chart"
)

// read makes the Bundle of a directory.
func read(ctx context.Context, repo *fleet.GitRepo, tree Tree, s source, charts Charts) (*fleet.Bundle, error) {
	file := &fleetyaml.File{}
	if s.options != "" {
		text, err := tree.Read(s.options)
		if err != nil {
			return nil, err
		}
		if file, err = fleetyaml.Parse(s.options, text); err != nil {
			return nil, err
		}
	}
	name := file.Name
	if name == "" {
		name = s.name(repo.Name)
	} else if wrong := k8svalidation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return nil, fmt.Errorf("%s: name: %s is no name of a Bundle: %s", s.options, name, wrong[0])
	}
	bundle := &fleet.Bundle{
		TypeMeta:   metav1.TypeMeta{APIVersion: fleet.GroupVersion.String(), Kind: "Bundle"},
		ObjectMeta: metav1.ObjectMeta{Namespace: repo.Namespace, Name: name, Labels: labels(repo, file)},
		Spec:       file.BundleSpec,
	}
	values, err := mergeValues(tree, s, &file.BundleSpec, file.TargetCustomizations)
	if err != nil {
		return nil, err
	}
	contents, err := content(tree, s, values)
	if err != nil {
		return nil, err
	}
	root, dir, err := addChart(ctx, tree, s, bundle.Spec.Helm, contents, charts)
	if err != nil {
		return nil, err
	}
	if helm := bundle.Spec.Helm; dir != "" && (helm == nil || !helm.DisableDependencyUpdate) {
		if err := (vendor{tree, charts, s.dir, contents}).add(ctx, root, dir, 0); err != nil {
			return nil, err
		}
	}
	if bundle.Spec.Resources, err = encode(contents); err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}
	target(bundle, repo, file)
	lay(bundle, repo)
	return bundle, nil
}

// labels returns the labels of a Bundle: the labels of the GitRepo and of the fleet.yaml, and its
// origin.
func labels(repo *fleet.GitRepo, file *fleetyaml.File) map[string]string {
	all := maps.Clone(repo.Labels)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, file.Labels)
	all[fleet.LabelRepoName] = repo.Name
	if repo.Status.Commit != "" {
		all[fleet.LabelCommit] = repo.Status.Commit
	}
	return all
}

// target sets the targets. The customizations come first. The targets of the GitRepo are also
// restrictions, so a customization selects no further Clusters.
func target(bundle *fleet.Bundle, repo *fleet.GitRepo, file *fleetyaml.File) {
	targets := file.OverrideTargets
	if len(targets) == 0 {
		for _, t := range repo.Spec.Targets {
			targets = append(targets, fleet.BundleTargetRestriction(t))
		}
	}
	if len(targets) == 0 {
		targets = []fleet.BundleTargetRestriction{{Name: "default", ClusterGroup: "default"}}
	}
	bundle.Spec.Targets = slices.Clone(file.TargetCustomizations)
	for _, t := range targets {
		bundle.Spec.Targets = append(bundle.Spec.Targets, fleet.BundleTarget{Name: t.Name, ClusterName: t.ClusterName,
			ClusterSelector: t.ClusterSelector, ClusterGroup: t.ClusterGroup, ClusterGroupSelector: t.ClusterGroupSelector})
	}
	bundle.Spec.TargetRestrictions = targets
}

// lay sets the options of the GitRepo; they override a fleet.yaml.
func lay(bundle *fleet.Bundle, repo *fleet.GitRepo) {
	from := repo.Spec
	bundle.Spec.Paused = bundle.Spec.Paused || from.Paused
	over := func(options *fleet.BundleDeploymentOptions, isTarget bool) {
		if from.TargetNamespace != "" {
			options.TargetNamespace = from.TargetNamespace
		}
		if from.ServiceAccount != "" {
			options.ServiceAccount = from.ServiceAccount
		}
		if from.CorrectDrift != nil && (!isTarget || options.CorrectDrift != nil) {
			options.CorrectDrift = from.CorrectDrift.DeepCopy()
		}
		if isTarget {
			return
		}
		options.KeepResources = options.KeepResources || from.KeepResources
		options.DeleteNamespace = options.DeleteNamespace || from.DeleteNamespace
		options.ForceSyncGeneration = max(options.ForceSyncGeneration, from.ForceSyncGeneration)
	}
	over(&bundle.Spec.BundleDeploymentOptions, false)
	for i := range len(bundle.Spec.Targets) - len(bundle.Spec.TargetRestrictions) {
		over(&bundle.Spec.Targets[i].BundleDeploymentOptions, true)
	}
}

// content returns the files of a directory by their paths in it, without its fleet.yaml and without
// the files of values in the spec.
func content(tree Tree, s source, values map[string]bool) (map[string][]byte, error) {
	contents, size := map[string][]byte{}, 0
	for _, name := range s.files {
		if name == s.options || values[name] {
			continue
		}
		data, err := tree.Read(name)
		if err != nil {
			return nil, err
		}
		if size += len(data); size > maxFiles {
			return nil, fmt.Errorf("%s: its files have more than %d MiB: make it several Bundles, or exclude files in a %s", s, maxFiles>>20,
				ignoreFile)
		}
		contents[relative(s.dir, name)] = data
	}
	return contents, nil
}

// addChart adds a chart from outside of the directory, and names its place in the Bundle in the
// options. It returns the places of a chart of the repository, in the Bundle and in the repository;
// without such a chart the latter is empty.
func addChart(ctx context.Context, tree Tree, s source, helm *fleet.HelmOptions, contents map[string][]byte,
	charts Charts) (root, from string, err error) {
	if helm == nil || helm.Chart == "" && helm.Repo == "" {
		if _, found := contents["Chart.yaml"]; found {
			return ".", s.dir, nil
		}
		return "", "", nil
	}
	place := placeOf(helm)
	if dir, err := within(s.dir, helm.Chart); helm.Repo == "" && err == nil && tree.has(path.Join(dir, "Chart.yaml")) {
		if dir == s.dir {
			return ".", dir, nil
		}
		if s.dir == "." || strings.HasPrefix(dir, s.dir+"/") {
			return relative(s.dir, dir), dir, nil
		}
		for _, name := range tree.below(dir) {
			data, err := tree.Read(name)
			if err != nil {
				return "", "", err
			}
			contents[path.Join(place, relative(dir, name))] = data
		}
		helm.Chart = place
		return place, dir, nil
	}
	if helm.Repo == "" && !strings.Contains(helm.Chart, "://") {
		return "", "", fmt.Errorf("%s: helm.chart: the repository has no %s: name a directory with a chart, or give helm.repo", s.options,
			path.Join(s.dir, helm.Chart, "Chart.yaml"))
	}
	if charts == nil || helm.SecretName != "" { // the members have the Secret
		return "", "", nil
	}
	chart, err := charts(ctx, s.dir, helm)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", s.options, err)
	}
	embed(helm, chart, contents)
	return "", "", nil
}

// placeOf returns the directory of a chart from elsewhere in its Bundle.
func placeOf(helm *fleet.HelmOptions) string {
	return path.Join(chartDir, naming.Digest(helm.Chart+":"+helm.Repo+":"+helm.Version))
}

// embed adds the files of a fetched chart. If there are none, the options name its version.
func embed(helm *fleet.HelmOptions, chart *Chart, contents map[string][]byte) {
	if chart.Files == nil {
		helm.Version = chart.Version
		return
	}
	place := placeOf(helm)
	for name, data := range chart.Files {
		contents[path.Join(place, name)] = data
	}
	helm.Chart, helm.Repo, helm.Version = place, "", ""
}

// PutChart makes a fetched chart the content of a Bundle, as for the chart of a fleet.yaml.
func PutChart(spec *fleet.BundleSpec, chart *Chart) (err error) {
	contents := map[string][]byte{}
	embed(spec.Helm, chart, contents)
	spec.Resources, err = encode(contents)
	return err
}

// encode returns the resources, sorted by name.
func encode(contents map[string][]byte) ([]fleet.BundleResource, error) {
	total := 0
	for _, data := range contents {
		total += len(data)
	}
	var resources []fleet.BundleResource
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		data := contents[name]
		resource := fleet.BundleResource{Name: name, Content: string(data)}
		if total > maxPlain || !utf8.Valid(data) {
			packed, err := delivery.Gzip(data)
			if err != nil {
				return nil, fmt.Errorf("compressing %s: %w", name, err)
			}
			resource.Content, resource.Encoding = base64.StdEncoding.EncodeToString(packed), fleet.EncodingGzip
		}
		resources = append(resources, resource)
	}
	return resources, nil
}
