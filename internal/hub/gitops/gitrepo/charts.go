package gitrepo

import (
	"cmp"
	"context"
	"regexp"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/chartfetch"
	"github.com/muster-fleet/muster/internal/hub/gitops/charts"
	"github.com/muster-fleet/muster/internal/repository/scan"
)

// fetchChart fetches a chart for the Bundle of a directory.
func (r *reconciliation) fetchChart(ctx context.Context, directory string, options *fleet.HelmOptions) (*scan.Chart, error) {
	var credentials *chartfetch.Credentials
	if sendTo(r.repo.Spec, cmp.Or(options.Repo, options.Chart)) {
		var err error
		if credentials, err = r.chartCredentials(ctx, directory); err != nil {
			return nil, err
		}
	}
	return charts.Fetch(ctx, r.Charts, options, credentials)
}

// chartCredentials reads the credentials for the charts of a directory. Without any they are nil.
func (r *reconciliation) chartCredentials(ctx context.Context, directory string) (*chartfetch.Credentials, error) {
	key := types.NamespacedName{Namespace: r.repo.Namespace, Name: r.repo.Spec.HelmSecretNameForPaths}
	if key.Name != "" { // it replaces the other
		return charts.CredentialsFor(ctx, r.Live, key, directory)
	}
	if key.Name = r.repo.Spec.HelmSecretName; key.Name == "" {
		return nil, nil
	}
	return charts.Credentials(ctx, r.Live, key)
}

// sendTo reports whether a GitRepo sends its credentials for charts to an address.
func sendTo(spec fleet.GitRepoSpec, address string) bool {
	if spec.HelmRepoURLRegex == "" {
		return false
	}
	pattern, err := regexp.Compile("^(?:" + spec.HelmRepoURLRegex + ")")
	return err == nil && pattern.MatchString(address)
}
