package token

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/naming"
)

// valuesKey is the key of the values Secret.
const valuesKey = "values"

// values is the values.yaml for the fleet-agent chart.
type values struct {
	APIServerCA                 string    `json:"apiServerCA"`
	APIServerURL                string    `json:"apiServerURL"`
	ClusterNamespace            string    `json:"clusterNamespace"`
	Internal                    *internal `json:"internal,omitempty"`
	SystemRegistrationNamespace string    `json:"systemRegistrationNamespace"`
	Token                       string    `json:"token"`
	TokenName                   string    `json:"tokenName"`
}

// internal is only there where the agent's namespace is not the usual one.
type internal struct {
	SystemNamespace string `json:"systemNamespace"`
}

func renderValues(token *fleet.ClusterRegistrationToken, settings config.Config, systemNamespace, credential string) (string, error) {
	v := values{
		APIServerCA:                 settings.APIServerCA,
		APIServerURL:                settings.APIServerURL,
		ClusterNamespace:            token.Namespace,
		SystemRegistrationNamespace: naming.RegistrationNamespace(systemNamespace),
		Token:                       credential,
		TokenName:                   token.Name,
	}
	if systemNamespace != naming.SystemNamespace {
		v.Internal = &internal{SystemNamespace: systemNamespace}
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("rendering values.yaml: %w", err)
	}
	return string(text), nil
}

// credentialIn returns the token in a values Secret, or "" if there is none.
func credentialIn(secret *corev1.Secret) string {
	var v values
	if err := yaml.Unmarshal(secret.Data[valuesKey], &v); err != nil {
		return "" // edited by hand; rendered anew
	}
	return v.Token
}
