package agent

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/trust"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

// The keys of the ConfigMap with what a hub told the agent of a MemberCluster.
const (
	keyServer     = "apiServerURL"
	keyCA         = "apiServerCA"
	keyMode       = "agentTLSMode"
	keyConfigured = "configured"
)

// configuredDigest changes when what the user configured does.
func configuredDigest(configured identity.Credential) string {
	server, ca := sha256.Sum256([]byte(configured.Server)), sha256.Sum256(configured.CA)
	sum := sha256.Sum256(append(server[:], ca[:]...))
	return hex.EncodeToString(sum[:8])
}

// learnedAddress is the form in which an address from the hub is kept, with what was configured then.
func learnedAddress(namespace string, learned, configured identity.Credential) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: naming.LearnedHubConfigMap, Namespace: namespace},
		Data: map[string]string{
			keyServer: learned.Server, keyCA: string(learned.CA), keyMode: string(learned.Mode), keyConfigured: configuredDigest(configured),
		},
	}
}

// recall returns the credential with the address that the hub told. It counts unless the user has configured something else since, and
// then, or if it is damaged, there is none: the hub tells it again.
func recall(configMap *corev1.ConfigMap, configured identity.Credential) (identity.Credential, bool) {
	if configMap == nil || configMap.Data[keyConfigured] != configuredDigest(configured) {
		return identity.Credential{}, false
	}
	server, err := credential.ParseServer(configMap.Data[keyServer])
	if err != nil {
		return identity.Credential{}, false
	}
	ca, err := credential.ParseCA(configMap.Data[keyCA])
	if err != nil {
		return identity.Credential{}, false
	}
	learned := configured
	learned.Server, learned.CA, learned.Mode = server, ca, trust.Mode(configMap.Data[keyMode])
	return learned, true
}
