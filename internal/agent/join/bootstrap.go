package join

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/hublogin"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/redaction"
)

// The keys of Secret fleet-agent-bootstrap.
const (
	keyServer    = "apiServerURL"
	keyCA        = "apiServerCA"
	keyToken     = "token"
	keyTokenName = "tokenName"
	keyWorkspace = "clusterNamespace"
	// keyConfigDigest is the digest of the chart's ConfigMap: Helm installs it together with the
	// Secret, a moment later.
	keyConfigDigest = "configDigest"
	// keyValues may hold all of them, as the values.yaml of a ClusterRegistrationToken.
	keyValues = "values"
	// keyConfig is the key of ConfigMap fleet-agent.
	keyConfig = "config"
)

var endsInUID = regexp.MustCompile(`^(.+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// Bootstrap is the content of Secret fleet-agent-bootstrap: the address of the hub, and the token
// for a registration request.
type Bootstrap struct {
	Server    string
	CA        []byte
	Token     string
	Claims    credential.Claims
	TokenName string
	Workspace string
	// ConfigDigest is the digest of the matching Config; empty if any Config matches.
	ConfigDigest string
	// JoinedWith overrides the digest of this Bootstrap in the credential; empty for no override.
	JoinedWith string
	// Login is the identity of a kubeconfig in place of Token; nil without one. LoginSecret names its
	// Secret.
	Login       *hublogin.Login
	LoginSecret string
}

// Reconnecting returns the Bootstrap for a cluster with an expired credential, to become the same
// member again.
func Reconnecting(c hubclient.Credential) Bootstrap {
	return Bootstrap{
		Server: c.Server, CA: c.CA, Token: c.Reconnect, Claims: credential.ClaimsOf(c.Reconnect), Workspace: c.Workspace,
		JoinedWith: c.JoinedWith,
	}
}

// AtStandby returns the Bootstrap for a cluster without its hub, to become the same member of the
// restored hub at a further address.
func AtStandby(c hubclient.Credential, at hubclient.Address) Bootstrap {
	return Bootstrap{
		Server: at.Server, CA: at.CA, Token: at.Token, Claims: credential.ClaimsOf(at.Token), Workspace: c.Workspace,
		JoinedWith: c.JoinedWith,
	}
}

// Digest changes with everything that makes a registration another one: the token, the hub, the
// workspace or the clientID.
func (b Bootstrap) Digest(clientID string) string {
	return naming.DigestOfParts(b.Token, b.Server, b.Workspace, clientID)
}

// DigestOfClientID changes when the clientID does.
func DigestOfClientID(clientID string) string { return naming.DigestOfParts(clientID) }

// IsOfAnotherChart reports whether a bootstrap Secret is an ordinary object of a Helm release, as
// in the chart of Rancher Fleet. Muster's chart creates the Secret as a hook.
//
// An ordinary Secret is for the agent of the other chart: it starts while the agent before it still
// runs.
func IsOfAnotherChart(secret *corev1.Secret) bool {
	return secret.Labels["app.kubernetes.io/managed-by"] == "Helm" && len(secret.Data[keyConfigDigest]) == 0
}

// ParseBootstrap reads the Secret. Its errors name the key and its remedy, and never quote a value,
// because it may be the token. A kubeconfig may take the place of the token.
func ParseBootstrap(secret *corev1.Secret, kubeconfig bool) (Bootstrap, error) {
	get, err := reader(secret)
	if err != nil {
		return Bootstrap{}, err
	}
	if get(keyServer) == "" {
		return Bootstrap{}, missing(keyServer, "the https URL of the hub's API server")
	}
	server, err := credential.ParseServer(get(keyServer))
	if err != nil {
		return Bootstrap{}, fmt.Errorf("its key %s is %q: %w", keyServer, redaction.Text(get(keyServer)), err)
	}
	ca, err := credential.ParseCA(get(keyCA))
	if err != nil {
		return Bootstrap{}, fmt.Errorf("its key %s is unusable: %w; set the certificate-authority-data of the hub's kubeconfig, or its PEM",
			keyCA, err)
	}
	token := get(keyToken)
	if token == "" && !kubeconfig {
		return Bootstrap{}, missing(keyToken, "the token out of the values.yaml of a ClusterRegistrationToken")
	}
	if strings.ContainsAny(token, " \t\r\n") {
		return Bootstrap{}, fmt.Errorf("its key %s holds white space, so it was cut or pasted together: copy it again from the values.yaml",
			keyToken)
	}
	claims := credential.ClaimsOf(token)
	b := Bootstrap{
		Server: server, CA: ca, Token: token, Claims: claims,
		TokenName: cmp.Or(get(keyTokenName), tokenName(claims.Account)),
		Workspace: cmp.Or(get(keyWorkspace), claims.Namespace), ConfigDigest: get(keyConfigDigest),
	}
	if token == "" && b.Workspace == "" {
		return Bootstrap{}, missing(keyWorkspace, "the namespace of the ClusterRegistrationToken, which a kubeconfig does not tell")
	}
	if token == "" && b.TokenName == "" {
		return Bootstrap{}, missing(keyTokenName, "the name of the ClusterRegistrationToken, which a kubeconfig does not tell")
	}
	if b.Workspace == "" {
		return Bootstrap{}, missing(keyWorkspace, "the namespace of the ClusterRegistrationToken, which this token does not tell")
	}
	return b, nil
}

// reader looks up keys of the Secret first and of the values.yaml in it second.
func reader(secret *corev1.Secret) (func(key string) string, error) {
	values := map[string]any{}
	if raw := secret.Data[keyValues]; len(raw) > 0 {
		if err := yaml.Unmarshal(raw, &values); err != nil {
			return nil, fmt.Errorf("its key %s is not the YAML of a values.yaml", keyValues)
		}
	}
	return func(key string) string {
		if value := strings.TrimSpace(string(secret.Data[key])); value != "" {
			return value
		}
		value, _ := values[key].(string) // a value other than text counts as missing
		return strings.TrimSpace(value)
	}, nil
}

// tokenName returns the name of the ClusterRegistrationToken of an account, named <token>-<uid>. It
// returns "" for other names, such as long, shortened ones.
func tokenName(account string) string {
	if match := endsInUID.FindStringSubmatch(account); match != nil {
		return match[1]
	}
	return ""
}

func missing(key, what string) error {
	return fmt.Errorf("its key %s is missing or empty: set %s, %s", key, key, what)
}

// Config is the content of ConfigMap fleet-agent.
type Config struct {
	// Labels become the labels of a new Cluster.
	Labels map[string]string
	// ClientID identifies the Cluster; empty for the UID of kube-system.
	ClientID string
	// Mode decides whether the agent trusts only the given CA.
	Mode hubclient.TLSMode
	// Digest is the digest of the whole text; empty without a ConfigMap.
	Digest string
}

// Trust returns the trust settings of this agent, with the names of the chart fleet-agent.
func (c Config) Trust() hubclient.Trust {
	return hubclient.Trust{Mode: c.Mode, Settings: hubclient.Settings{URL: keyServer, SetCA: "set " + keyCA + " to the CA of the hub"}}
}

// ParseConfig reads the ConfigMap. A nil ConfigMap and a missing key mean the defaults. Unknown
// keys are ignored.
func ParseConfig(configMap *corev1.ConfigMap) (Config, error) {
	var raw struct {
		Labels       map[string]string `json:"labels"`
		ClientID     string            `json:"clientID"`
		AgentTLSMode string            `json:"agentTLSMode"`
	}
	if configMap != nil && strings.TrimSpace(configMap.Data[keyConfig]) != "" {
		if err := json.Unmarshal([]byte(configMap.Data[keyConfig]), &raw); err != nil {
			return Config{}, fmt.Errorf("its key %s is not the JSON object that the agent expects: %s", keyConfig, describeJSON(err))
		}
	}
	mode, err := hubclient.ParseTLSMode(raw.AgentTLSMode)
	if err != nil {
		return Config{}, err
	}
	config := Config{Labels: raw.Labels, ClientID: raw.ClientID, Mode: mode}
	if configMap != nil {
		config.Digest = naming.Digest(configMap.Data[keyConfig])
	}
	return config, nil
}

// describeJSON describes an error in the JSON in words of the document instead of Go's types.
func describeJSON(err error) string {
	var wrongType *json.UnmarshalTypeError
	if !errors.As(err, &wrongType) {
		return err.Error()
	}
	where, want := wrongType.Field, "text in quotes"
	if where == "" {
		where = "the document"
	}
	if wrongType.Type.Kind() != reflect.String {
		want = "an object"
	}
	return fmt.Sprintf("%s: found a JSON %s where %s is wanted", where, wrongType.Value, want)
}
