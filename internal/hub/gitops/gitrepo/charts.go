package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/chartfetch"
	"github.com/muster-fleet/muster/internal/repository/scan"
)

// maxEmbedded is the largest packed chart that becomes a part of its Bundle. The files of a Bundle
// may have 1.1 MiB, compressed.
const maxEmbedded = 900 << 10

// chartKeys are the keys with credentials for charts, as in Rancher Fleet.
var chartKeys = []string{corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey, "cacerts"}

// fetchChart fetches a chart for a Bundle.
func (r *reconciliation) fetchChart(ctx context.Context, options *fleet.HelmOptions) (*scan.Chart, error) {
	var credentials *chartfetch.Credentials
	if sendTo(r.repo.Spec, cmp.Or(options.Repo, options.Chart)) {
		var err error
		if credentials, err = r.chartCredentials(ctx); err != nil {
			return nil, err
		}
	}
	return fetchChart(ctx, r.Charts, options, credentials)
}

func fetchChart(ctx context.Context, fetcher *chartfetch.Fetcher, options *fleet.HelmOptions,
	credentials *chartfetch.Credentials) (*scan.Chart, error) {
	fetched, err := fetcher.Fetch(ctx, *options, credentials)
	if err != nil {
		return nil, err
	}
	files, version, err := fetched.Files()
	if err != nil {
		return nil, err
	}
	if len(fetched.Data) > maxEmbedded {
		if credentials != nil {
			return nil, fmt.Errorf("chart %s has %d KiB, too many for a Bundle, and members have no credentials for it: name them in "+
				"helm.secretName", fetched.From, len(fetched.Data)>>10)
		}
		files = nil
	}
	return &scan.Chart{Version: version, Files: files}, nil
}

// sendTo reports whether a GitRepo sends its credentials for charts to an address.
func sendTo(spec fleet.GitRepoSpec, address string) bool {
	if spec.HelmSecretName == "" || spec.HelmRepoURLRegex == "" {
		return false
	}
	pattern, err := regexp.Compile("^(?:" + spec.HelmRepoURLRegex + ")")
	return err == nil && pattern.MatchString(address)
}

func (r *reconciliation) chartCredentials(ctx context.Context) (*chartfetch.Credentials, error) {
	key := types.NamespacedName{Namespace: r.repo.Namespace, Name: r.repo.Spec.HelmSecretName}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s of spec.helmSecretName: %w", key, err)
	}
	if secret.Type != corev1.SecretTypeOpaque && secret.Type != corev1.SecretTypeBasicAuth {
		return nil, fmt.Errorf("secret %s of spec.helmSecretName is of type %s: credentials for charts are of type %s or %s", key, secret.Type,
			corev1.SecretTypeOpaque, corev1.SecretTypeBasicAuth)
	}
	data := map[string][]byte{}
	for _, name := range chartKeys {
		if value, found := secret.Data[name]; found {
			data[name] = value
		}
	}
	credentials, err := chartfetch.ParseCredentials(data)
	if err != nil {
		return nil, errors.New("secret " + key.String() + " of spec.helmSecretName has neither username and password, nor cacerts")
	}
	return credentials, nil
}
