package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"helm.sh/helm/v4/pkg/action"
	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli/values"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	semver "k8s.io/apimachinery/pkg/util/version"

	"github.com/muster-fleet/muster/charts"
	"github.com/muster-fleet/muster/internal/version"
)

// abandoned is the age of an operation with a killed program. Most take seconds.
const abandoned = 5 * time.Minute

// chartRelease is the release of an embedded chart, with the name of the chart.
type chartRelease struct{ chart, namespace string }

// helmOn is Helm in a namespace of a cluster.
type helmOn struct {
	*action.Configuration
	chartRelease
	// replaces allows a release of another chart. takesOver allows existing objects of any
	// release or none, also with changes by others.
	replaces, takesOver bool
}

// nameFieldManager makes Helm apply with the field manager of the command helm. Then either program
// can continue with a release of the other, and changes only its own fields.
var nameFieldManager = sync.OnceFunc(func() { kube.ManagedFieldsManager = "helm" })

func (h *access) helm(r chartRelease) (*helmOn, error) {
	nameFieldManager()
	configuration := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := configuration.Init(h.within(r.namespace), r.namespace, "secret"); err != nil {
		return nil, fmt.Errorf("preparing Helm: %w", err)
	}
	return &helmOn{Configuration: configuration, chartRelease: r}, nil
}

// load reads the chart with the version of this program, the tag of its images.
func (h *helmOn) load() (*chartv2.Chart, error) {
	chart, err := charts.Load(h.chart)
	if err == nil && version.Known() {
		chart.Metadata.Version = version.Semantic(version.Version)
		chart.Metadata.AppVersion = chart.Metadata.Version
	}
	return chart, err
}

// history returns the revisions of the release, the oldest first.
func (h *helmOn) history() ([]*helm.Release, error) {
	found, err := action.NewHistory(h.Configuration).Run(h.chart)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the history of release %s in namespace %s: %w", h.chart, h.namespace, err)
	}
	var revisions []*helm.Release
	for _, r := range found {
		if revision, ok := r.(*helm.Release); ok {
			revisions = append(revisions, revision)
		}
	}
	slices.SortFunc(revisions, func(a, b *helm.Release) int { return a.Version - b.Version })
	return revisions, nil
}

// settle ends abandoned operations, and returns the newest revision, and if any was deployed.
func (h *helmOn) settle() (last *helm.Release, deployed bool, err error) {
	revisions, err := h.history()
	if err != nil || len(revisions) == 0 {
		return nil, false, err
	}
	last = revisions[len(revisions)-1]
	if last.Info.Status.IsPending() {
		if since := time.Since(last.Info.LastDeployed); since < abandoned {
			return nil, false, busyError{fmt.Errorf("release %s in namespace %s has been in use by another program since %s: run the command again "+
				"after its end, or after %s if it was killed",
				h.chart, h.namespace, since.Round(time.Second), abandoned)}
		}
		last.Info.Status = common.StatusFailed
		if err := h.Releases.Update(last); err != nil {
			return nil, false, fmt.Errorf("ending the abandoned revision %d of release %s: %w", last.Version, h.chart, err)
		}
	}
	return last, last.Info.Status != common.StatusUninstalled && slices.ContainsFunc(revisions, carriedOut), nil
}

// carriedOut reports whether a revision was deployed.
func carriedOut(r *helm.Release) bool {
	return r.Info.Status == common.StatusDeployed || r.Info.Status == common.StatusSuperseded
}

// isOurs reports whether Muster's chart owns a release. Chart names are not unique.
func isOurs(release *helm.Release, chart *chartv2.Chart) bool {
	return release.Chart != nil && release.Chart.Metadata != nil && release.Chart.Metadata.Home == chart.Metadata.Home
}

// older reports whether a version is older than another. Development versions count as equal.
func older(version, other string) bool {
	a, unread := semver.ParseSemantic(version)
	b, err := semver.ParseSemantic(other)
	isReleased := func(v *semver.Version) bool { return v.Major()+v.Minor()+v.Patch() > 0 }
	return unread == nil && err == nil && isReleased(a) && isReleased(b) && a.LessThan(b)
}

// checkOwn refuses a release of another chart, and a newer version than this program's.
func (h *helmOn) checkOwn(last *helm.Release, chart *chartv2.Chart) error {
	if last == nil {
		return nil
	}
	installed, brought := last.Chart.Metadata.Version, chart.Metadata.Version
	if isOurs(last, chart) {
		if version.Known() && older(brought, installed) {
			return fmt.Errorf("release %s in namespace %s is of version %s, and this muster brings %s: use muster of that version or a newer one",
				h.chart, h.namespace, installed, brought)
		}
		return nil
	}
	if h.replaces {
		return nil
	}
	does := ""
	if h.chart == agentRelease.chart || h.chart == memberAgent.Name {
		does = ", and muster migrate does it"
	}
	return fmt.Errorf("release %s in namespace %s is of another chart of that name, %s %s: docs/migration.md says how to change over%s",
		h.chart, h.namespace, last.Chart.Metadata.Home, last.Chart.Metadata.Version, does)
}

// values returns the values of the present release, if it is Muster's or one to replace.
func (h *helmOn) values() (map[string]any, error) {
	revisions, err := h.history()
	if err != nil || len(revisions) == 0 {
		return nil, err
	}
	chart, err := h.load()
	if goesOn := basis(revisions); err == nil && (h.replaces || isOurs(goesOn, chart)) {
		return goesOn.Config, nil
	}
	return nil, err
}

// basis returns the revision with the next values: the deployed one, else the newest.
func basis(revisions []*helm.Release) *helm.Release {
	for _, r := range slices.Backward(revisions) {
		if r.Info.Status == common.StatusDeployed {
			return r
		}
	}
	return revisions[len(revisions)-1]
}

// plan describes the next deploy.
func (h *helmOn) plan() (chart *chartv2.Chart, does string, err error) {
	if chart, err = h.load(); err != nil {
		return nil, "", err
	}
	revisions, err := h.history()
	if err != nil || len(revisions) == 0 {
		return chart, "would install", err
	}
	last := revisions[len(revisions)-1]
	return chart, fmt.Sprintf("would upgrade revision %d, of %s, to", last.Version, last.Chart.Metadata.Version), h.checkOwn(last, chart)
}

// deploy installs or upgrades the release and returns it. Earlier values stay unless the new values
// replace them. It waits for changes by other programs, and does not wait for the workloads.
func (h *helmOn) deploy(ctx context.Context, given map[string]any) (made *helm.Release, err error) {
	err = whenFree(ctx, func(ctx context.Context) error {
		made, err = h.apply(ctx, given)
		return err
	})
	return made, err
}

// apply is one attempt of deploy. It ignores interrupts: half a change blocks the next one.
func (h *helmOn) apply(ctx context.Context, given map[string]any) (*helm.Release, error) {
	chart, err := h.load()
	if err != nil {
		return nil, err
	}
	last, deployed, err := h.settle()
	if err != nil {
		return nil, err
	}
	if err := h.checkOwn(last, chart); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandoned)
	defer cancel()
	var revision any
	if deployed {
		upgrade := action.NewUpgrade(h.Configuration)
		upgrade.Namespace, upgrade.ResetThenReuseValues, upgrade.WaitStrategy, upgrade.MaxHistory = h.namespace, true, kube.HookOnlyStrategy, 10
		upgrade.TakeOwnership, upgrade.ForceConflicts = h.takesOver, h.takesOver && appliedByServer(last)
		if given, upgrade.ResetValues, err = h.cleaned(chart, given); err != nil {
			return nil, err
		}
		upgrade.ResetThenReuseValues = !upgrade.ResetValues
		revision, err = upgrade.RunWithContext(ctx, h.chart, chart, given)
	} else {
		if last != nil && isOurs(last, chart) { // Helm installs a release without a deployed revision anew, without its values
			given = loader.MergeMaps(last.Config, given)
		}
		install := action.NewInstall(h.Configuration)
		install.ReleaseName, install.Namespace, install.CreateNamespace, install.Replace, install.WaitStrategy = h.chart, h.namespace, true,
			last != nil, kube.HookOnlyStrategy
		install.TakeOwnership, install.ForceConflicts = h.takesOver, h.takesOver
		revision, err = install.RunWithContext(ctx, chart, given)
	}
	if err != nil {
		return nil, busyOr(err, fmt.Errorf("installing the chart %s: %s", h.chart, charts.Sentence(err)))
	}
	return revision.(*helm.Release), nil
}

// cleaned returns the values of an upgrade, and true if they lost another chart's image.
func (h *helmOn) cleaned(chart *chartv2.Chart, given map[string]any) (map[string]any, bool, error) {
	revisions, err := h.history()
	if err != nil {
		return nil, false, err
	}
	if goesOn := basis(revisions); h.replaces || !isOurs(goesOn, chart) {
		return loader.MergeMaps(goesOnWith(goesOn, chart), given), true, nil
	}
	return given, false, nil
}

// appliedByServer reports whether Helm applied this revision server-side.
func appliedByServer(r *helm.Release) bool {
	return r.ApplyMethod == string(helm.ApplyMethodServerSideApply)
}

// rollBack rolls the release back to a revision. It waits for changes by other programs.
func (h *helmOn) rollBack(ctx context.Context, to int) error {
	return whenFree(ctx, func(context.Context) error {
		if _, _, err := h.settle(); err != nil {
			return err
		}
		back := action.NewRollback(h.Configuration)
		if h.takesOver { // client-side, Helm cannot patch objects on the cluster outside the newest revision
			back.ServerSideApply, back.ForceConflicts = "true", true
		}
		back.Version, back.WaitStrategy, back.Timeout = to, kube.HookOnlyStrategy, abandoned
		if err := back.Run(h.chart); err != nil {
			return busyOr(err, fmt.Errorf("rolling release %s in namespace %s back to revision %d: %w", h.chart, h.namespace, to, err))
		}
		return nil
	})
}

// render returns the manifest of the release for a cluster of this version. As with deploy, earlier
// values stay unless the new values replace them.
func (h *helmOn) render(ctx context.Context, given map[string]any) (string, error) {
	chart, err := h.load()
	if err != nil {
		return "", err
	}
	earlier, err := h.values()
	if err != nil {
		return "", err
	}
	discovery, err := h.RESTClientGetter.ToDiscoveryClient()
	if err != nil {
		return "", err
	}
	install := action.NewInstall(h.Configuration)
	install.ReleaseName, install.Namespace, install.DryRunStrategy, install.IncludeCRDs = h.chart, h.namespace, action.DryRunClient, true
	server, err := discovery.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("reading the version of the cluster: %w", err)
	}
	install.KubeVersion = &chartcommon.KubeVersion{Version: server.GitVersion, Major: server.Major, Minor: server.Minor}
	if install.APIVersions, err = action.GetVersionSet(discovery); err != nil {
		return "", fmt.Errorf("reading the kinds of the cluster: %w", err)
	}
	rendered, err := install.RunWithContext(ctx, chart, loader.MergeMaps(earlier, given))
	if err != nil {
		return "", fmt.Errorf("rendering the chart %s: %s", h.chart, charts.Sentence(err))
	}
	return rendered.(*helm.Release).Manifest, nil
}

// chartValues are the flags for the values of a chart.
type chartValues struct{ values.Options }

func (v *chartValues) addFlags(command *cobra.Command, chart string) {
	flags := command.Flags()
	flags.StringArrayVar(&v.Values, "set", nil, "Value of the chart "+chart+", as KEY=VALUE")
	flags.StringArrayVar(&v.StringValues, "set-string", nil, "Value of the chart "+chart+", always a string, as KEY=VALUE")
	flags.StringSliceVarP(&v.ValueFiles, "values", "f", nil, "File with values of the chart "+chart)
}

// areGiven reports whether the user has set values.
func (v *chartValues) areGiven() bool { return len(v.Values)+len(v.StringValues)+len(v.ValueFiles) > 0 }

// over merges the user's values over the defaults.
func (v *chartValues) over(defaults map[string]any) (map[string]any, error) {
	set, err := v.MergeValues(nil)
	if err != nil {
		return nil, fmt.Errorf("reading --set or --values: %w", err)
	}
	return loader.MergeMaps(defaults, set), nil
}
