package agent

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// The keys of the ConfigMap with the address at which a hub asked the agent of a MemberCluster to reach it.
const (
	keyServer     = "apiServerURL"
	keyCA         = "apiServerCA"
	keyMode       = "agentTLSMode"
	keyConfigured = "configured"
)

// configuredDigest changes when what the user configured does.
func configuredDigest(configured hubclient.Credential) string {
	return naming.DigestOfParts([]byte(configured.Server), configured.CA)[:16]
}

func sameAddress(a, b hubclient.Credential) bool {
	return a.Server == b.Server && a.Mode == b.Mode && bytes.Equal(a.CA, b.CA)
}

// addressConfigMap is the form in which an address from the hub is stored, with what was configured then.
func addressConfigMap(namespace string, moved, configured hubclient.Credential) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: naming.LearnedHubConfigMap, Namespace: namespace},
		Data: map[string]string{
			keyServer: moved.Server, keyCA: string(moved.CA), keyMode: string(moved.Mode), keyConfigured: configuredDigest(configured),
		},
	}
}

// adoptedAddress returns the credential with the stored address. An address counts unless the user has configured something else since; then,
// or if the ConfigMap is damaged, there is none: the hub asks for its address again.
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
