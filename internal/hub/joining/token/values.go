package token

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/bootstrap"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

const valuesKey = bootstrap.ValuesKey

// renderValues returns the values.yaml for the chart fleet-agent.
func renderValues(token *fleet.ClusterRegistrationToken, settings settings.Config, systemNamespace, credential string) (string, error) {
	v := bootstrap.Bootstrap{
		APIServerCA:                 settings.APIServerCA,
		APIServerURL:                settings.APIServerURL,
		ClusterNamespace:            token.Namespace,
		SystemRegistrationNamespace: naming.RegistrationNamespace(systemNamespace),
		Token:                       credential,
		TokenName:                   token.Name,
	}
	if systemNamespace != naming.SystemNamespace {
		v.Internal = &bootstrap.Internal{SystemNamespace: systemNamespace}
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("rendering values.yaml: %w", err)
	}
	return string(text), nil
}

// credentialIn returns the token in a values Secret, or "" if there is none.
func credentialIn(secret *corev1.Secret) string { return bootstrap.ReadBootstrap(secret).Token }
