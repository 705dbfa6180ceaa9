// Package bootstrap holds the values for the registration of an agent. They are in the values
// Secret of a token, and in a part of the values of the chart fleet-agent.
package bootstrap

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Bootstrap holds the address and the token for a registration. The values Secret of a token has
// nothing else.
type Bootstrap struct {
	APIServerURL                string `json:"apiServerURL"`
	APIServerCA                 string `json:"apiServerCA"`
	Token                       string `json:"token,omitempty"`
	TokenName                   string `json:"tokenName,omitempty"`
	ClusterNamespace            string `json:"clusterNamespace,omitempty"`
	SystemRegistrationNamespace string `json:"systemRegistrationNamespace,omitempty"`
	// Internal is nil if the agent's namespace is the usual one. Values has a field of the same name
	// with precedence.
	Internal *Internal `json:"internal,omitempty"`
}

// ValuesKey is the key of a values Secret.
const ValuesKey = "values"

// ReadBootstrap returns the content of a values Secret; empty if a manual edit has made the Secret
// undecodable.
func ReadBootstrap(secret *corev1.Secret) Bootstrap {
	var b Bootstrap
	if err := yaml.Unmarshal(secret.Data[ValuesKey], &b); err != nil {
		return Bootstrap{}
	}
	return b
}

// Internal holds values not meant for users.
type Internal struct {
	SystemNamespace string `json:"systemNamespace"`
	Generation      string `json:"generation,omitempty"`
}
