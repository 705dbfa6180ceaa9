package agent

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// Keys of the ConfigMap with the hub's address for the agent of a MemberCluster.
const (
	keyServer     = "apiServerURL"
	keyCA         = "apiServerCA"
	keyMode       = "agentTLSMode"
	keyConfigured = "configured"
)

// configuredDigest changes with the user's configuration.
func configuredDigest(configured hubclient.Credential) string {
	return naming.DigestOfParts([]byte(configured.Server), configured.CA)[:16]
}

func sameAddress(a, b hubclient.Credential) bool {
	return a.Server == b.Server && a.Mode == b.Mode && bytes.Equal(a.CA, b.CA)
}

// addressConfigMap returns the stored form of an address from the hub, with a digest of the
// configuration at the time.
func addressConfigMap(namespace string, moved, configured hubclient.Credential) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: naming.LearnedHubConfigMap, Namespace: namespace},
		Data: map[string]string{
			keyServer: moved.Server, keyCA: string(moved.CA), keyMode: string(moved.Mode), keyConfigured: configuredDigest(configured),
		},
	}
}

// adoptedAddress returns the credential with the stored address. A later change of the
// configuration, or a damaged ConfigMap, discards the address: the hub requests it again.
func adoptedAddress(configMap *corev1.ConfigMap, configured hubclient.Credential) (hubclient.Credential, bool) {
	if configMap == nil || configMap.Data[keyConfigured] != configuredDigest(configured) {
		return hubclient.Credential{}, false
	}
	server, err := credential.ParseServer(configMap.Data[keyServer])
	if err != nil {
		return hubclient.Credential{}, false
	}
	ca, err := credential.ParseCA(configMap.Data[keyCA])
	if err != nil {
		return hubclient.Credential{}, false
	}
	moved := configured
	moved.Server, moved.CA, moved.Mode = server, ca, hubclient.TLSMode(configMap.Data[keyMode])
	return moved, true
}
