// Package bootstrap has the values with which an agent registers: the values Secret of a token, and part of the values of the
// chart fleet-agent.
package bootstrap

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Bootstrap is what an agent needs to register: where, and with which token. The values Secret of a token has nothing else.
type Bootstrap struct {
	APIServerURL                string `json:"apiServerURL"`
	APIServerCA                 string `json:"apiServerCA"`
	Token                       string `json:"token,omitempty"`
	TokenName                   string `json:"tokenName,omitempty"`
	ClusterNamespace            string `json:"clusterNamespace,omitempty"`
	SystemRegistrationNamespace string `json:"systemRegistrationNamespace,omitempty"`
	// Internal is nil if the agent's namespace is the usual one. Values has a field of that name, which takes precedence.
	Internal *Internal `json:"internal,omitempty"`
}

// ValuesKey is the key of a values Secret.
const ValuesKey = "values"

// ReadBootstrap returns what a values Secret says; empty if the Secret was edited by hand so that it cannot be decoded.
func ReadBootstrap(secret *corev1.Secret) Bootstrap {
	var b Bootstrap
	if err := yaml.Unmarshal(secret.Data[ValuesKey], &b); err != nil {
		return Bootstrap{}
	}
	return b
}

// Internal are values that no user sets.
type Internal struct {
	SystemNamespace string `json:"systemNamespace"`
	Generation      string `json:"generation,omitempty"`
}
