package clone

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
)

// KnownHosts is the key with known hosts of a Secret, and of the ConfigMap of the system namespace.
const KnownHosts = "known_hosts"

// Credentials are the content of a Secret for Git.
type Credentials struct {
	// Secret is its name, for errors.
	Secret string
	// Username and Password are for https.
	Username, Password string
	// PrivateKey is a PEM for ssh; KnownHosts are the accepted keys of servers.
	PrivateKey, KnownHosts []byte
	// App is a GitHub App; see Apps.Login.
	App *App
}

// ParseCredentials reads a Secret of type kubernetes.io/basic-auth or kubernetes.io/ssh-auth, or
// one with a GitHub App. The author of a GitRepo chooses the server, and gets no other Secret sent
// there.
func ParseCredentials(secret *corev1.Secret, knownHosts []byte) (*Credentials, error) {
	c := &Credentials{Secret: secret.Name, KnownHosts: knownHosts}
	switch secret.Type {
	case corev1.SecretTypeBasicAuth:
		c.Username, c.Password = string(secret.Data[corev1.BasicAuthUsernameKey]), string(secret.Data[corev1.BasicAuthPasswordKey])
		if c.Password == "" {
			return nil, fmt.Errorf("secret %s has no %s", secret.Name, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		c.PrivateKey = secret.Data[corev1.SSHAuthPrivateKey]
		if own := secret.Data[KnownHosts]; len(own) > 0 {
			c.KnownHosts = own
		}
		if len(c.PrivateKey) == 0 {
			return nil, fmt.Errorf("secret %s has no %s", secret.Name, corev1.SSHAuthPrivateKey)
		}
	default:
		app, err := parseApp(secret)
		if err == nil && app == nil {
			err = fmt.Errorf("secret %s is of type %s: credentials for Git are of type %s or %s, or have the key %s of a GitHub App", secret.Name,
				secret.Type, corev1.SecretTypeBasicAuth, corev1.SecretTypeSSHAuth, keyApp)
		}
		c.App = app
		return c, err
	}
	return c, nil
}

// method returns the authentication for the library; nil for a public repository.
func (c *Credentials) method(address *url.URL) (transport.AuthMethod, error) {
	switch {
	case address.Scheme == "ssh" && (c == nil || len(c.PrivateKey) == 0):
		return nil, errors.New("a repository by ssh needs a key: name a Secret of type kubernetes.io/ssh-auth in spec.clientSecretName")
	case address.Scheme == "ssh":
		return c.byKey(address)
	case c == nil:
		return nil, nil
	case c.Password == "":
		return nil, fmt.Errorf("secret %s holds a key for ssh, and spec.repo begins with %s", c.Secret, address.Scheme)
	case address.Scheme == "http":
		return nil, errors.New("spec.repo begins with http, and credentials would travel in clear text: use https")
	}
	user := c.Username
	if user == "" {
		user = c.Password // the token alone is a user too
	}
	return &githttp.BasicAuth{Username: user, Password: c.Password}, nil
}

func (c *Credentials) byKey(address *url.URL) (transport.AuthMethod, error) {
	user := address.User.Username()
	if user == "" {
		user = "git"
	}
	keys, err := gitssh.NewPublicKeys(user, c.PrivateKey, "")
	if err != nil {
		return nil, fmt.Errorf("secret %s: its %s is no PEM of a private key without a passphrase", c.Secret, corev1.SSHAuthPrivateKey)
	}
	accepted, err := keysOf(c.KnownHosts, address)
	if err != nil {
		return nil, err
	}
	keys.HostKeyCallback = func(_ string, _ net.Addr, key ssh.PublicKey) error {
		for _, known := range accepted {
			if bytes.Equal(known.Marshal(), key.Marshal()) {
				return nil
			}
		}
		return fmt.Errorf("%s has the key %s, which is not among the known hosts: the server is another one, or has a new key. Compare "+
			"the key with its owner's before you add it",
			address.Host, ssh.FingerprintSHA256(key))
	}
	return hostKeys{keys, algorithms(accepted)}, nil
}

// hostKeys requests a key of a known kind from the server.
type hostKeys struct {
	*gitssh.PublicKeys
	algorithms []string
}

// ClientConfig is the configuration of a connection.
func (h hostKeys) ClientConfig() (*ssh.ClientConfig, error) {
	config, err := h.PublicKeys.ClientConfig()
	if err == nil {
		config.HostKeyAlgorithms, config.Timeout = h.algorithms, dialTimeout
	}
	return config, err
}

func algorithms(keys []ssh.PublicKey) (all []string) {
	for _, key := range keys {
		if key.Type() == ssh.KeyAlgoRSA {
			all = append(all, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		all = append(all, key.Type())
	}
	return all
}
