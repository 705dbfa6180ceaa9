// Package hublogin reads an agent's identity on the hub from a kubeconfig, such as the identity of
// a cloud. The hub then needs no token for the agent.
//
// An administrator of the member writes the kubeconfig into a Secret in the agent's namespace. It
// may name a program or files in the agent's container. The hub itself refuses such kubeconfigs
// (internal/hub/runtime/kubeconfig).
//
// Its invariant: it runs a program only if it gets the identity, without a shell, and within a
// bounded time. It reads only bounded answers and files. No error contains a credential.
package hublogin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/redaction"
)

// Key is the key of the kubeconfig in the Secret.
const Key = "kubeconfig"

// maxFile bounds the bytes of a file or of a program's answer.
const maxFile = 1 << 20

// Login is a user of a kubeconfig, which is an identity on the hub.
type Login struct {
	// CA is the CA of the hub as PEM; empty if the kubeconfig has none.
	CA []byte

	name, context string
	cluster       *clientcmdapi.Cluster
	user          *clientcmdapi.AuthInfo
}

// Identity is a token or a client certificate, or both.
type Identity struct {
	Token       string
	Certificate *tls.Certificate
}

// Parse reads a kubeconfig. Context names the context to use; empty for the current context, or
// for the only one.
func Parse(kubeconfig []byte, context string) (*Login, error) {
	l, err := parse(kubeconfig, context)
	if err != nil {
		return nil, err
	}
	l.CA, err = l.readCA()
	return l, err
}

// Check checks a kubeconfig for an agent without reading the files in its container. It returns the
// address and the CA of the hub, as far as the kubeconfig itself has them.
func Check(kubeconfig []byte, context string) (server string, ca []byte, err error) {
	l, err := parse(kubeconfig, context)
	if err != nil {
		return "", nil, err
	}
	return l.cluster.Server, l.cluster.CertificateAuthorityData, nil
}

func parse(kubeconfig []byte, context string) (*Login, error) {
	if len(kubeconfig) == 0 {
		return nil, fmt.Errorf("its key %s is missing or empty: put a kubeconfig of the hub there", Key)
	}
	parsed, err := clientcmd.Load(kubeconfig)
	if err != nil { // the decoder's error would quote the kubeconfig
		return nil, fmt.Errorf("its key %s is not a kubeconfig in YAML or JSON", Key)
	}
	name, err := chooseContext(parsed, context)
	if err != nil {
		return nil, err
	}
	chosen := parsed.Contexts[name]
	user, cluster := parsed.AuthInfos[chosen.AuthInfo], parsed.Clusters[chosen.Cluster]
	switch {
	case user == nil:
		return nil, fmt.Errorf("the context %q of its kubeconfig names the user %q, which the kubeconfig does not have", name, chosen.AuthInfo)
	case cluster == nil:
		return nil, fmt.Errorf("the context %q of its kubeconfig names the cluster %q, which the kubeconfig does not have", name, chosen.Cluster)
	}
	l := &Login{name: chosen.AuthInfo, context: name, cluster: cluster, user: user}
	return l, errors.Join(l.checkCluster(), l.checkUser())
}

func chooseContext(parsed *clientcmdapi.Config, wanted string) (string, error) {
	names := slices.Sorted(maps.Keys(parsed.Contexts))
	switch {
	case len(names) == 0:
		return "", errors.New("its kubeconfig has no context")
	case wanted != "" && parsed.Contexts[wanted] == nil:
		return "", fmt.Errorf("its kubeconfig has no context %q, but %q", wanted, names)
	case wanted != "":
		return wanted, nil
	case parsed.CurrentContext != "" && parsed.Contexts[parsed.CurrentContext] == nil:
		return "", fmt.Errorf("the current-context of its kubeconfig is %q, and it has only %q", parsed.CurrentContext, names)
	case parsed.CurrentContext != "":
		return parsed.CurrentContext, nil
	case len(names) > 1:
		return "", fmt.Errorf("its kubeconfig has the contexts %q and no current-context: set current-context, or name the context in the "+
			"chart's value hubKubeconfig.context", names)
	}
	return names[0], nil
}

// checkCluster refuses entries that the agent would not follow.
func (l *Login) checkCluster() error {
	const without = "the cluster of the context %q of its kubeconfig has an entry %s, which the agent does not follow: remove it%s"
	switch {
	case l.cluster.InsecureSkipTLSVerify:
		return fmt.Errorf(without, l.context, "insecure-skip-tls-verify", ", and set certificate-authority-data")
	case l.cluster.ProxyURL != "":
		return fmt.Errorf(without, l.context, "proxy-url", ", and set proxy in the values of the agent's chart")
	case l.cluster.TLSServerName != "":
		return fmt.Errorf(without, l.context, "tls-server-name", ", and use an address that is in the hub's certificate")
	}
	return nil
}

func (l *Login) checkUser() error {
	u := l.user
	switch {
	case u.AuthProvider != nil:
		return fmt.Errorf("user %q of its kubeconfig has an entry auth-provider, which Kubernetes 1.26 dropped: use exec", l.name)
	case u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0:
		return fmt.Errorf("user %q of its kubeconfig acts as another user (as): use the identity itself", l.name)
	case u.Username != "" || u.Password != "":
		return fmt.Errorf("user %q of its kubeconfig has a password, which no API server takes since Kubernetes 1.19", l.name)
	case u.Exec != nil:
		return l.checkExec()
	case u.Token == "" && u.TokenFile == "" && len(u.ClientCertificateData) == 0 && u.ClientCertificate == "":
		return fmt.Errorf("user %q of its kubeconfig has neither exec, nor a token, nor a client certificate", l.name)
	}
	return nil
}

// readCA returns the CA of the kubeconfig, also from a file.
func (l *Login) readCA() ([]byte, error) {
	data := l.cluster.CertificateAuthorityData
	if len(data) == 0 && l.cluster.CertificateAuthority != "" {
		var err error
		if data, err = l.readFile("certificate-authority", l.cluster.CertificateAuthority); err != nil {
			return nil, err
		}
	}
	ca, err := credential.ParseCA(string(data))
	if err != nil {
		return nil, fmt.Errorf("the certificate authority in its kubeconfig is unusable: %w", err)
	}
	return ca, nil
}

// String names the identity in messages.
func (l *Login) String() string { return fmt.Sprintf("user %q of the kubeconfig", l.name) }

// Identify returns the present identity. It runs the program of the kubeconfig, or reads its
// files, if there are any.
func (l *Login) Identify(ctx context.Context, server string, now time.Time) (Identity, error) {
	var identity Identity
	var err error
	if l.user.Exec != nil {
		identity, err = l.run(ctx, server, now)
	} else {
		identity, err = l.read()
	}
	if err != nil {
		return Identity{}, err
	}
	if expires := credential.ExpiryOf(identity.Token); !expires.IsZero() && now.After(expires) {
		return Identity{}, l.expired("token", expires)
	}
	if c := identity.Certificate; c != nil && c.Leaf != nil && now.After(c.Leaf.NotAfter) {
		return Identity{}, l.expired("client certificate", c.Leaf.NotAfter)
	}
	return identity, nil
}

func (l *Login) expired(what string, at time.Time) error {
	return fmt.Errorf("the %s of %s expired at %s: replace it", what, l, at.UTC().Format(time.RFC3339))
}

// read returns the identity of a user without a program.
func (l *Login) read() (identity Identity, err error) {
	identity.Token = l.user.Token
	if identity.Token == "" && l.user.TokenFile != "" {
		token, err := l.readFile("tokenFile", l.user.TokenFile)
		if err != nil {
			return Identity{}, err
		}
		identity.Token = string(token)
	}
	certificate, key := l.user.ClientCertificateData, l.user.ClientKeyData
	if len(certificate) == 0 && l.user.ClientCertificate != "" {
		if certificate, err = l.readFile("client-certificate", l.user.ClientCertificate); err != nil {
			return Identity{}, err
		}
	}
	if len(key) == 0 && l.user.ClientKey != "" {
		if key, err = l.readFile("client-key", l.user.ClientKey); err != nil {
			return Identity{}, err
		}
	}
	return l.identity(identity.Token, certificate, key)
}

// identity verifies the form of a credential.
func (l *Login) identity(token string, certificate, key []byte) (Identity, error) {
	identity := Identity{Token: strings.TrimSpace(token)}
	if strings.ContainsFunc(identity.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Identity{}, fmt.Errorf("the token of %s has a space, a line break or another character that no token has", l)
	}
	if len(certificate) > 0 {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return Identity{}, fmt.Errorf("the client certificate and its key of %s do not match, or are not PEM", l)
		}
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return Identity{}, fmt.Errorf("the client certificate of %s is unusable", l)
		}
		identity.Certificate = &pair
	}
	if identity.Token == "" && identity.Certificate == nil {
		return Identity{}, fmt.Errorf("%s has no token and no client certificate", l)
	}
	return identity, nil
}

// readFile reads a file in the agent's container.
func (l *Login) readFile(entry, path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // an administrator of the member names it
	if err == nil {
		defer file.Close()
		var data []byte
		data, err = io.ReadAll(io.LimitReader(file, maxFile+1))
		if err == nil && len(data) > maxFile {
			return nil, fmt.Errorf("the entry %s of its kubeconfig names the file %q, which has more than %d bytes", entry, path, maxFile)
		}
		if err == nil {
			return data, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the entry %s of its kubeconfig names the file %q, which does not exist in the agent's container: mount it with "+
			"extraVolumes and extraVolumeMounts, or put its content into the kubeconfig", entry, path)
	}
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	return nil, fmt.Errorf("the entry %s of its kubeconfig names the file %q, which cannot be read: %w", entry, path, err)
}

// clipped returns the end of a program's output without secrets.
func clipped(output string) string {
	output = redaction.Text(strings.TrimSpace(output))
	return strings.ToValidUTF8(output[max(0, len(output)-maxShown):], "")
}
