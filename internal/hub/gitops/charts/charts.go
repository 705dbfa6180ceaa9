// Package charts fetches the charts of GitRepos and HelmOps for their Bundles.
//
// Its invariant: it sends only Secrets for credentials, and only their keys for charts.
package charts

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/chartfetch"
	"github.com/muster-fleet/muster/internal/repository/scan"
)

// keys are the keys with credentials for charts, as in Rancher Fleet.
var keys = []string{corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey, "cacerts"}

// Fetch fetches a chart. The files of a large chart are nil: its Bundle names it, and the members
// fetch it. Then there must be no credentials.
func Fetch(ctx context.Context, fetcher *chartfetch.Fetcher, options *fleet.HelmOptions,
	credentials *chartfetch.Credentials) (*scan.Chart, error) {
	fetched, err := fetcher.Fetch(ctx, *options, credentials)
	if err != nil {
		return nil, err
	}
	files, version, err := fetched.Files()
	if err != nil {
		return nil, err
	}
	if len(fetched.Data) > chartfetch.MaxEmbedded {
		if credentials != nil {
			return nil, fmt.Errorf("chart %s has %d KiB, too many for a Bundle, and members have no credentials for it: name them in "+
				"helm.secretName", fetched.From, len(fetched.Data)>>10)
		}
		files = nil
	}
	return &scan.Chart{Version: version, Files: files}, nil
}

// Credentials reads the Secret in spec.helmSecretName.
func Credentials(ctx context.Context, reader client.Reader, key types.NamespacedName) (*chartfetch.Credentials, error) {
	secret, err := read(ctx, reader, key, "spec.helmSecretName")
	if err != nil {
		return nil, err
	}
	if secret.Type != corev1.SecretTypeOpaque && secret.Type != corev1.SecretTypeBasicAuth {
		return nil, fmt.Errorf("secret %s of spec.helmSecretName is of type %s: credentials for charts are of type %s or %s", key, secret.Type,
			corev1.SecretTypeOpaque, corev1.SecretTypeBasicAuth)
	}
	data := map[string][]byte{}
	for _, name := range keys {
		if value, found := secret.Data[name]; found {
			data[name] = value
		}
	}
	credentials, err := chartfetch.ParseCredentials(data)
	if err != nil {
		return nil, fmt.Errorf("secret %s of spec.helmSecretName has neither username and password, nor cacerts", key)
	}
	return credentials, nil
}

func read(ctx context.Context, reader client.Reader, key types.NamespacedName, field string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := reader.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s of %s: %w", key, field, err)
	}
	return secret, nil
}
