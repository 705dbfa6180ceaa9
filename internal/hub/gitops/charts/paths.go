package charts

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/internal/chartfetch"
)

// keyPaths is the key with credentials by path, as in Rancher Fleet.
const keyPaths = "secrets-path.yaml"

// pathCredentials are the credentials for the Bundles of a path.
type pathCredentials struct {
	Username, Password string
	// CABundle is a PEM, in base64 or as text.
	CABundle           string `json:"caBundle"`
	InsecureSkipVerify bool   `json:"insecureSkipVerify"`
}

// CredentialsFor reads the Secret in spec.helmSecretNameForPaths, and returns the credentials for
// the Bundle of a directory; nil if there are none. Its keys are directories or patterns; the first
// match in lexical order counts.
func CredentialsFor(ctx context.Context, reader client.Reader, key types.NamespacedName,
	directory string) (*chartfetch.Credentials, error) {
	const field = "spec.helmSecretNameForPaths"
	secret, err := read(ctx, reader, key, field)
	if err != nil {
		return nil, err
	}
	text, found := secret.Data[keyPaths]
	if secret.Type != corev1.SecretTypeOpaque || !found {
		return nil, fmt.Errorf("secret %s of %s is not of type %s with the key %s", key, field, corev1.SecretTypeOpaque, keyPaths)
	}
	var byPath map[string]pathCredentials
	if yaml.Unmarshal(text, &byPath) != nil { // its error would quote the Secret
		return nil, fmt.Errorf("secret %s of %s: %s is no map from paths to credentials", key, field, keyPaths)
	}
	for _, pattern := range slices.Sorted(maps.Keys(byPath)) {
		if !covers(pattern, directory) {
			continue
		}
		credentials, err := byPath[pattern].parse()
		if err != nil {
			return nil, fmt.Errorf("secret %s of %s: %s in %s has neither username and password, nor caBundle", key, field, pattern, keyPaths)
		}
		return credentials, nil
	}
	return nil, nil
}

// covers reports whether a path or a pattern is about a directory.
func covers(pattern, directory string) bool {
	pattern = path.Clean(strings.TrimPrefix(pattern, "/"))
	if pattern == directory {
		return true
	}
	matched, err := path.Match(pattern, directory)
	return err == nil && matched
}

func (p pathCredentials) parse() (*chartfetch.Credentials, error) {
	data := map[string][]byte{}
	if p.Username != "" || p.Password != "" {
		data[corev1.BasicAuthUsernameKey], data[corev1.BasicAuthPasswordKey] = []byte(p.Username), []byte(p.Password)
	}
	if p.CABundle != "" {
		data["cacerts"] = []byte(p.CABundle)
		if decoded, err := base64.StdEncoding.DecodeString(p.CABundle); err == nil {
			data["cacerts"] = decoded
		}
	}
	if len(data) == 0 && p.InsecureSkipVerify {
		return chartfetch.AcceptingAnyCertificate(nil), nil
	}
	credentials, err := chartfetch.ParseCredentials(data)
	if err == nil && p.InsecureSkipVerify {
		credentials = chartfetch.AcceptingAnyCertificate(credentials)
	}
	return credentials, err
}
