package hubclient

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hublogin"
	"github.com/muster-fleet/muster/internal/naming"
)

// The keys of the Secret, as upstream agents know them.
const (
	keyKubeconfig          = "kubeconfig"
	keyDeploymentNamespace = "deploymentNamespace"
	keyClusterNamespace    = "clusterNamespace"
	keyClusterName         = "clusterName"
	// keyToken holds the token of a Muster credential; the kubeconfig then has none.
	keyToken = "token"
	// keySequence is Muster's own key: the count of the hub's credentials for the account.
	keySequence = "sequence"
	// keyReconnect is Muster's own key for the token that lets the agent rejoin after its credential
	// has expired.
	keyReconnect = "reconnectToken"
	// keyMode and keyChartMode are Muster's own, if the hub requested a mode.
	keyMode      = "agentTLSMode"
	keyChartMode = "chartTLSMode"
	// keyJoinedWith and keyJoinedAs are Muster's own: digests of the agent's registration; see
	// join.Bootstrap.
	keyJoinedWith = "joinedWith"
	keyJoinedAs   = "joinedAs"
	// keyFormer is Muster's own key: the data of the replaced credential, encoded as JSON.
	keyFormer = "former"
	// keyAddresses is Muster's own key: the addresses of the hub, in the form of Addresses.
	keyAddresses = "hubAddresses"
)

// Credential is the agent's identity on the hub. The Secret fleet-agent holds a credential accepted
// by the hub at least once, under the keys that upstream agents use.
//
// An upstream agent can continue with its own credential from there. It cannot use a Muster
// credential, because it does not know the expiry, and registers again.
type Credential struct {
	// Server is the URL of the hub.
	Server string
	// CA is the hub's CA as PEM; empty if the system knows it.
	CA []byte
	// Token is the bearer token.
	Token string
	// MemberNamespace is the agent's namespace on the hub.
	MemberNamespace string
	// Workspace and Cluster name the Cluster. A MemberCluster has no workspace.
	Workspace, Cluster string
	// Mode is the agentTLSMode requested by the hub; empty if it requested none. Mode applies as long
	// as the chart's mode is ChartMode.
	Mode, ChartMode TLSMode
	// JoinedWith is the digest of the registration token, the hub, the workspace and the clientID of
	// the registration. JoinedAs is the digest of the clientID alone. Both are empty for a
	// MemberCluster, and after a registration by an agent without this feature.
	JoinedWith, JoinedAs string
	// Upstream is set if the hub made the credential for an agent of Rancher Fleet. It is never
	// renewed, and is stored in the form of Rancher Fleet's agent.
	Upstream bool
	// Sequence counts the credentials issued by the hub for the account; zero for the credential of
	// the registration.
	Sequence int64
	// Reconnect is a token to request the same membership again after Token has expired; "" if the hub
	// has issued none.
	Reconnect string
	// Former is the replaced credential of a membership that this cluster has not left yet; nil if
	// there is none. It has no Former itself.
	Former *Credential
	// Addresses are the addresses that the hub has named.
	Addresses Addresses
	// Login gets Token and Certificate from a kubeconfig of the user; nil for all other credentials.
	// Neither is ever stored.
	Login       *hublogin.Login
	Certificate *tls.Certificate
}

// WithIdentity returns the credential with the present identity of its Login.
func (c Credential) WithIdentity(ctx context.Context, now time.Time) (Credential, error) {
	if c.Login == nil {
		return c, nil
	}
	identity, err := c.Login.Identify(ctx, c.Server, now)
	c.Token, c.Certificate = identity.Token, identity.Certificate
	return c, err
}

// WithoutLogin returns the credential without the identity of a kubeconfig, for a token of the hub.
func (c Credential) WithoutLogin() Credential {
	c.Login, c.Certificate = nil, nil
	return c
}

// Account returns the UID of the token's account on the hub; empty if the token does not name it.
func (c Credential) Account() string { return credential.ClaimsOf(c.Token).AccountUID }

// Record returns the name of the Cluster or MemberCluster for messages.
func (c Credential) Record() string {
	if c.Workspace == "" {
		return "member " + c.Cluster
	}
	return c.Workspace + "/" + c.Cluster
}

// CredentialFromSecret reads the stored credential of a Muster or an upstream agent.
func CredentialFromSecret(secret *corev1.Secret) (Credential, error) {
	for _, key := range []string{keyKubeconfig, keyDeploymentNamespace, keyClusterNamespace, keyClusterName} {
		if len(secret.Data[key]) == 0 {
			return Credential{}, fmt.Errorf("it has no key %s", key)
		}
	}
	config, err := clientcmd.Load(secret.Data[keyKubeconfig])
	if err != nil {
		// The error of the parser may quote the input, including the token.
		return Credential{}, errors.New("its key kubeconfig is not a kubeconfig")
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return Credential{}, fmt.Errorf("its kubeconfig has no context %q", config.CurrentContext)
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil || cluster.Server == "" || user.Token == "" && len(secret.Data[keyToken]) == 0 {
		return Credential{}, errors.New("its kubeconfig has no server, or it has no token")
	}
	token, own := user.Token, len(secret.Data[keyToken]) > 0 || len(secret.Data[keyJoinedWith]) > 0
	if len(secret.Data[keyToken]) > 0 {
		token = string(secret.Data[keyToken])
	}
	claims := credential.ClaimsOf(token)
	sequence, _ := strconv.ParseInt(string(secret.Data[keySequence]), 10, 64) // absent from the credential of a registration
	return Credential{
		Sequence:        sequence,
		Reconnect:       string(secret.Data[keyReconnect]),
		Server:          cluster.Server,
		CA:              cluster.CertificateAuthorityData,
		Token:           token,
		Upstream:        !own && claims.AccountUID != "" && claims.Lasting(),
		MemberNamespace: string(secret.Data[keyDeploymentNamespace]),
		Workspace:       string(secret.Data[keyClusterNamespace]),
		Cluster:         string(secret.Data[keyClusterName]),
		Mode:            askedMode(secret.Data[keyMode]),
		ChartMode:       askedMode(secret.Data[keyChartMode]),
		JoinedWith:      string(secret.Data[keyJoinedWith]),
		JoinedAs:        string(secret.Data[keyJoinedAs]),
		Addresses:       ParseAddresses(secret.Data[keyAddresses]),
		Former:          formerOf(secret.Data[keyFormer]),
	}, nil
}

// formerOf decodes a replaced credential. An unreadable one counts as none: the present credential
// does not depend on it.
func formerOf(encoded []byte) *Credential {
	secret := &corev1.Secret{}
	if len(encoded) == 0 || json.Unmarshal(encoded, &secret.Data) != nil {
		return nil
	}
	delete(secret.Data, keyFormer)
	former, err := CredentialFromSecret(secret)
	if err != nil {
		return nil
	}
	return &former
}

// Outdated reports whether an upstream agent would mistake the Muster credential in a Secret for
// its own. Earlier versions wrote such Secrets.
func Outdated(secret *corev1.Secret) bool {
	c, err := CredentialFromSecret(secret)
	return err == nil && !c.Upstream && len(secret.Data[keyToken]) == 0
}

// askedMode returns a mode permitted in a hub's request. It ignores all others, such as a mode
// without verification.
func askedMode(raw []byte) TLSMode {
	if mode := TLSMode(raw); mode == TLSStrict || mode == TLSSystemStore {
		return mode
	}
	return ""
}

// Secret returns the credential as stored in the agent's namespace.
func (c Credential) Secret(namespace string) (*corev1.Secret, error) {
	user := &clientcmdapi.AuthInfo{}
	if c.Upstream {
		user.Token = c.Token
	}
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"cluster": {Server: c.Server, CertificateAuthorityData: c.CA}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"user": user},
		Contexts:       map[string]*clientcmdapi.Context{"default": {Cluster: "cluster", AuthInfo: "user", Namespace: c.MemberNamespace}},
		CurrentContext: "default",
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of %s: %w", c.Record(), err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: naming.AgentSecret, Namespace: namespace},
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			keyKubeconfig:          kubeconfig,
			keyDeploymentNamespace: []byte(c.MemberNamespace),
			keyClusterNamespace:    []byte(c.Workspace),
			keyClusterName:         []byte(c.Cluster),
		},
	}
	if !c.Upstream {
		secret.Data[keyToken] = []byte(c.Token)
	}
	if c.Sequence > 0 {
		secret.Data[keySequence] = []byte(strconv.FormatInt(c.Sequence, 10))
	}
	if c.Reconnect != "" {
		secret.Data[keyReconnect] = []byte(c.Reconnect)
	}
	if c.Mode != "" {
		secret.Data[keyMode], secret.Data[keyChartMode] = []byte(c.Mode), []byte(c.ChartMode)
	}
	if c.JoinedWith != "" {
		secret.Data[keyJoinedWith], secret.Data[keyJoinedAs] = []byte(c.JoinedWith), []byte(c.JoinedAs)
	}
	if encoded := c.Addresses.Encode(); encoded != nil {
		secret.Data[keyAddresses] = encoded
	}
	if c.Former != nil {
		former, err := c.Former.Secret(namespace)
		if err != nil {
			return nil, err
		}
		delete(former.Data, keyFormer)
		encoded, err := json.Marshal(former.Data)
		if err != nil {
			return nil, fmt.Errorf("encoding the replaced credential of %s: %w", c.Former.Record(), err)
		}
		secret.Data[keyFormer] = encoded
	}
	return secret, nil
}
