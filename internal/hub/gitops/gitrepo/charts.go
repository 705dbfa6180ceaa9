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

// fetchChart fetches a chart for a Bundle.
func (r *reconciliation) fetchChart(ctx context.Context, options *fleet.HelmOptions) (*scan.Chart, error) {
	var credentials *chartfetch.Credentials
	if sendTo(r.repo.Spec, cmp.Or(options.Repo, options.Chart)) {
		var err error
		key := types.NamespacedName{Namespace: r.repo.Namespace, Name: r.repo.Spec.HelmSecretName}
		if credentials, err = charts.Credentials(ctx, r.Live, key); err != nil {
			return nil, err
		}
	}
	return charts.Fetch(ctx, r.Charts, options, credentials)
}

// sendTo reports whether a GitRepo sends its credentials for charts to an address.
func sendTo(spec fleet.GitRepoSpec, address string) bool {
	if spec.HelmSecretName == "" || spec.HelmRepoURLRegex == "" {
		return false
	}
	pattern, err := regexp.Compile("^(?:" + spec.HelmRepoURLRegex + ")")
	return err == nil && pattern.MatchString(address)
}
