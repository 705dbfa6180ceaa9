package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
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
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/muster-fleet/muster/charts"
	"github.com/muster-fleet/muster/internal/version"
)

// pending is what Helm says when somebody else has begun to change a release, by an error that it does not export.
const pending = "another operation (install/upgrade/rollback) is in progress"

// busyFor is how long an operation of Helm that somebody else has begun is waited for: most take seconds.
const busyFor = 20 * time.Second

// abandoned is after how long an operation of Helm that has not ended is taken for one whose program was killed: those of this program take seconds.
const abandoned = 5 * time.Minute

// chartRelease is the release of one of the embedded charts, which has the name of its chart.
type chartRelease struct{ chart, namespace string }

// helmOn is Helm in a namespace of a cluster.
type helmOn struct {
	*action.Configuration
	chartRelease
	// replaces says that the release may be of somebody else's chart, takesOver that its objects may be there already, of no release or of another one, or as somebody else has
	// changed them.
	replaces, takesOver bool
}

// nameFieldManager has Helm apply as the command helm does, so that either can go on with a release of the other, which changes only what
// is its own.
var nameFieldManager = sync.OnceFunc(func() { kube.ManagedFieldsManager = "helm" })

func (h *access) helm(r chartRelease) (*helmOn, error) {
	nameFieldManager()
	configuration := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := configuration.Init(h.within(r.namespace), r.namespace, "secret"); err != nil {
		return nil, fmt.Errorf("preparing Helm: %w", err)
	}
	return &helmOn{Configuration: configuration, chartRelease: r}, nil
}

// load reads the chart, as that of the version of this program: its images have that as their tag.
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

// busyError says that somebody is changing a release at the moment: the agent's deployer, for example, when the hub brings the agent up to date.
type busyError struct{ error }

// settle returns the newest revision, nil if there is none, and whether one was ever carried out. An operation whose program was killed is ended.
func (h *helmOn) settle() (last *helm.Release, deployed bool, err error) {
	revisions, err := h.history()
	if err != nil || len(revisions) == 0 {
		return nil, false, err
	}
	last = revisions[len(revisions)-1]
	if last.Info.Status.IsPending() {
		if since := time.Since(last.Info.LastDeployed); since < abandoned {
			return nil, false, busyError{fmt.Errorf("release %s in namespace %s is being changed by somebody since %s; try again when that has ended, or after %s if it was killed",
				h.chart, h.namespace, since.Round(time.Second), abandoned)}
		}
		last.Info.Status = common.StatusFailed
		if err := h.Releases.Update(last); err != nil {
			return nil, false, fmt.Errorf("ending revision %d of release %s, which was begun and left: %w", last.Version, h.chart, err)
		}
	}
	return last, last.Info.Status != common.StatusUninstalled && slices.ContainsFunc(revisions, carriedOut), nil
}

// carriedOut says whether a revision has been what a release is.
func carriedOut(r *helm.Release) bool {
	return r.Info.Status == common.StatusDeployed || r.Info.Status == common.StatusSuperseded
}

// isOurs says whether a release is of a chart of this project: others have charts of the same names.
func isOurs(release *helm.Release, chart *chartv2.Chart) bool {
	return release.Chart != nil && release.Chart.Metadata != nil && release.Chart.Metadata.Home == chart.Metadata.Home
}

// older says whether a version is older than another. A commit without a version, 0.0.0 and its hash, is neither older nor newer.
func older(version, other string) bool {
	a, unread := semver.ParseSemantic(version)
	b, err := semver.ParseSemantic(other)
	isReleased := func(v *semver.Version) bool { return v.Major()+v.Minor()+v.Patch() > 0 }
	return unread == nil && err == nil && isReleased(a) && isReleased(b) && a.LessThan(b)
}

// checkOwn refuses a release of somebody else's chart, and one of a newer version than this program's.
func (h *helmOn) checkOwn(last *helm.Release, chart *chartv2.Chart) error {
	if last == nil {
		return nil
	}
	has, brought := last.Chart.Metadata.Version, chart.Metadata.Version
	if isOurs(last, chart) {
		if version.Known() && older(brought, has) {
			return fmt.Errorf("release %s in namespace %s is of version %s, and this muster brings %s: use muster of that version or a newer one", h.chart, h.namespace, has, brought)
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
	return fmt.Errorf("release %s in namespace %s is of another chart of that name, %s %s: docs/migration.md says how to change over%s", h.chart, h.namespace,
		last.Chart.Metadata.Home, last.Chart.Metadata.Version, does)
}

// values are those with which deploy goes on; none if there is no release of this project's chart, or of one that it replaces.
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

// basis is the revision with whose values Helm goes on: the one that is deployed, and if none is, the newest.
func basis(revisions []*helm.Release) *helm.Release {
	for _, r := range slices.Backward(revisions) {
		if r.Info.Status == common.StatusDeployed {
			return r
		}
	}
	return revisions[len(revisions)-1]
}

// plan says what deploy would do.
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

// deploy installs or upgrades the release and returns it. What was set before stays unless these values say otherwise. It does not wait for what it makes, but
// for somebody else who is changing the release.
func (h *helmOn) deploy(ctx context.Context, given map[string]any) (made *helm.Release, err error) {
	err = whenFree(ctx, func(ctx context.Context) error {
		made, err = h.apply(ctx, given)
		return err
	})
	return made, err
}

// whenFree changes a release, again and again for a while as long as somebody else is changing it. A change that was made is no failure although time ran out, or the
// user interrupted it, before it ended: no other one is begun then.
func whenFree(ctx context.Context, change func(context.Context) error) error {
	err := ctx.Err()
	if err != nil {
		return err
	}
	_ = wait.PollUntilContextTimeout(ctx, lookEvery, busyFor, true, func(ctx context.Context) (bool, error) { // what it ends with is the last error of the change
		err = change(ctx)
		return !errors.As(err, &busyError{}), nil
	})
	return err
}

// apply is one attempt of deploy. What it has begun it ends although the user interrupts it: a release that is left in the middle hinders whoever comes next.
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
	var made any
	if deployed {
		upgrade := action.NewUpgrade(h.Configuration)
		upgrade.Namespace, upgrade.ResetThenReuseValues, upgrade.WaitStrategy, upgrade.MaxHistory = h.namespace, true, kube.HookOnlyStrategy, 10
		upgrade.TakeOwnership, upgrade.ForceConflicts = h.takesOver, h.takesOver && appliedByServer(last)
		if given, upgrade.ResetValues, err = h.cleaned(chart, given); err != nil {
			return nil, err
		}
		upgrade.ResetThenReuseValues = !upgrade.ResetValues
		made, err = upgrade.RunWithContext(ctx, h.chart, chart, given)
	} else {
		if last != nil && isOurs(last, chart) { // Helm installs anew what never came to be, without the values that it had
			given = loader.MergeMaps(last.Config, given)
		}
		install := action.NewInstall(h.Configuration)
		install.ReleaseName, install.Namespace, install.CreateNamespace, install.Replace, install.WaitStrategy = h.chart, h.namespace, true, last != nil, kube.HookOnlyStrategy
		install.TakeOwnership, install.ForceConflicts = h.takesOver, h.takesOver
		made, err = install.RunWithContext(ctx, chart, given)
	}
	if err != nil {
		said := fmt.Errorf("installing the chart %s: %s", h.chart, charts.Sentence(err))
		if errors.Is(err, driver.ErrReleaseExists) || strings.Contains(err.Error(), pending) { // somebody began in the same moment
			return nil, busyError{said}
		}
		return nil, said
	}
	return made.(*helm.Release), nil
}

// cleaned returns the values of an upgrade and true if they hold what the release had, without the image of another chart:
// this one replaces it, or an attempt to do so failed.
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

// appliedByServer reports whether Helm applies the objects of a release server-side, as it did for this revision.
func appliedByServer(r *helm.Release) bool {
	return r.ApplyMethod == string(helm.ApplyMethodServerSideApply)
}

// rollBack makes the release what it was with one of its revisions. It waits for somebody else who is changing the release.
func (h *helmOn) rollBack(ctx context.Context, to int) error {
	return whenFree(ctx, func(context.Context) error {
		if _, _, err := h.settle(); err != nil {
			return err
		}
		back := action.NewRollback(h.Configuration)
		if h.takesOver { // Helm cannot patch client-side what the newest revision does not have, and what stays on the cluster
			back.ServerSideApply, back.ForceConflicts = "true", true
		}
		back.Version, back.WaitStrategy, back.Timeout = to, kube.HookOnlyStrategy, abandoned
		if err := back.Run(h.chart); err != nil {
			return fmt.Errorf("rolling release %s in namespace %s back to revision %d: %w", h.chart, h.namespace, to, err)
		}
		return nil
	})
}

// render returns what the release would be made of, on a cluster as this one is. As with deploy, what was set before stays unless these values say otherwise.
func (h *helmOn) render(ctx context.Context, given map[string]any) (string, error) {
	chart, err := h.load()
	if err != nil {
		return "", err
	}
	has, err := h.values()
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
		return "", fmt.Errorf("asking the cluster for its version: %w", err)
	}
	install.KubeVersion = &chartcommon.KubeVersion{Version: server.GitVersion, Major: server.Major, Minor: server.Minor}
	if install.APIVersions, err = action.GetVersionSet(discovery); err != nil {
		return "", fmt.Errorf("asking the cluster for its kinds: %w", err)
	}
	made, err := install.RunWithContext(ctx, chart, loader.MergeMaps(has, given))
	if err != nil {
		return "", fmt.Errorf("rendering the chart %s: %s", h.chart, charts.Sentence(err))
	}
	return made.(*helm.Release).Manifest, nil
}

// chartValues are the flags with which a user sets values of a chart.
type chartValues struct{ values.Options }

func (v *chartValues) addFlags(command *cobra.Command, chart string) {
	flags := command.Flags()
	flags.StringArrayVar(&v.Values, "set", nil, "a value of the chart "+chart+", such as KEY=VALUE")
	flags.StringArrayVar(&v.StringValues, "set-string", nil, "the same for a value that is a string whatever it looks like")
	flags.StringSliceVarP(&v.ValueFiles, "values", "f", nil, "a file of values for the chart "+chart)
}

// areGiven says whether the user has set values.
func (v *chartValues) areGiven() bool { return len(v.Values)+len(v.StringValues)+len(v.ValueFiles) > 0 }

// over returns some values with those that the user has set.
func (v *chartValues) over(defaults map[string]any) (map[string]any, error) {
	set, err := v.MergeValues(nil)
	if err != nil {
		return nil, fmt.Errorf("reading --set or --values: %w", err)
	}
	return loader.MergeMaps(defaults, set), nil
}
