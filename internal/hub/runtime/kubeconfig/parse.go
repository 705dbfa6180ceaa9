package kubeconfig

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// Key is the key of the kubeconfig in a Secret.
const Key = "value"

// Kubeconfig is the parsed content of a Secret.
type Kubeconfig struct {
	Config *rest.Config
	Server string
	// Insecure turns the verification of the server's certificate off.
	Insecure bool
}

var lineOfError = regexp.MustCompile(`line \d+`)

// Parse reads the kubeconfig of a Secret. It refuses entries with programs or files of the hub, and
// entries without effect.
func Parse(secret string, data []byte, now time.Time) (Kubeconfig, *Problem) {
	if len(data) == 0 {
		return Kubeconfig{}, badInput(reasons.KubeconfigMissing, "Secret %s has no kubeconfig: put one under the key %s", secret, Key)
	}
	// The decoder's error would quote the kubeconfig.
	parsed, err := clientcmd.Load(data)
	if err != nil {
		where := ""
		if line := lineOfError.FindString(err.Error()); line != "" {
			where = " (" + line + ")"
		}
		return Kubeconfig{}, badInput(reasons.InvalidKubeconfig, "the key %s of Secret %s is not a kubeconfig in YAML or JSON%s",
			Key, secret, where)
	}
	name, p := chooseContext(secret, parsed)
	if p != nil {
		return Kubeconfig{}, p
	}
	chosen := parsed.Contexts[name]
	cluster, user := parsed.Clusters[chosen.Cluster], parsed.AuthInfos[chosen.AuthInfo]
	switch {
	case cluster == nil:
		return Kubeconfig{}, badInput(reasons.InvalidKubeconfig, "context %q of Secret %s names cluster %q, which the kubeconfig does not have",
			name, secret, chosen.Cluster)
	case user == nil:
		return Kubeconfig{}, badInput(reasons.InvalidKubeconfig, "context %q of Secret %s names user %q, which the kubeconfig does not have",
			name, secret, chosen.AuthInfo)
	}
	user.Token = strings.TrimSpace(user.Token) // many Secrets have it with the line break of a file
	for _, check := range []*Problem{
		checkCode(secret, chosen.AuthInfo, user), checkFiles(secret, cluster, user), checkServer(secret, cluster),
		checkCredential(secret, chosen.AuthInfo, user, now), checkCertificates(secret, chosen, cluster, user),
	} {
		if check != nil {
			return Kubeconfig{}, check
		}
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*parsed, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return Kubeconfig{}, badInput(reasons.InvalidKubeconfig, "the kubeconfig of Secret %s contradicts itself", secret)
	}
	return Kubeconfig{Config: config, Server: cluster.Server, Insecure: cluster.InsecureSkipTLSVerify}, nil
}

// chooseContext returns the current context, or the only one.
func chooseContext(secret string, parsed *clientcmdapi.Config) (string, *Problem) {
	names := make([]string, 0, len(parsed.Contexts))
	for name := range parsed.Contexts {
		names = append(names, fmt.Sprintf("%q", name))
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return "", badInput(reasons.ContextMissing, "the kubeconfig of Secret %s has no context", secret)
	case parsed.CurrentContext != "" && parsed.Contexts[parsed.CurrentContext] == nil:
		return "", badInput(reasons.ContextMissing, "current-context of the kubeconfig of Secret %s is %q, which it does not have; it has %s",
			secret, parsed.CurrentContext, strings.Join(names, ", "))
	case parsed.CurrentContext != "":
		return parsed.CurrentContext, nil
	case len(names) > 1:
		return "", badInput(reasons.ContextMissing, "the kubeconfig of Secret %s has the contexts %s and no current-context: set it",
			secret, strings.Join(names, ", "))
	}
	for name := range parsed.Contexts {
		return name, nil
	}
	return "", nil
}

func checkCode(secret, name string, user *clientcmdapi.AuthInfo) *Problem {
	if user.Exec == nil && user.AuthProvider == nil {
		return nil
	}
	kind := "exec"
	if user.Exec == nil {
		kind = "auth-provider"
	}
	return badInput(reasons.KubeconfigRunsCode, "user %q of the kubeconfig of Secret %s has an entry %s, which would run a program in the "+
		"hub: use a token or a client certificate", name, secret, kind)
}

func checkFiles(secret string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) *Problem {
	for _, entry := range []struct{ name, path, instead string }{
		{"certificate-authority", cluster.CertificateAuthority, "certificate-authority-data"},
		{"client-certificate", user.ClientCertificate, "client-certificate-data"},
		{"client-key", user.ClientKey, "client-key-data"},
		{"tokenFile", user.TokenFile, "token"},
	} {
		if entry.path != "" {
			return badInput(reasons.KubeconfigReadsFiles, "the kubeconfig of Secret %s has an entry %s, which would read a file of "+
				"the hub: use %s, as \"kubectl config view --raw --minify --flatten\" prints it", secret, entry.name, entry.instead)
		}
	}
	return nil
}

func checkServer(secret string, cluster *clientcmdapi.Cluster) *Problem {
	server, err := url.Parse(cluster.Server)
	switch {
	case err != nil || server.Host == "" || server.User != nil || server.RawQuery != "" || server.ForceQuery || server.Fragment != "":
		return badInput(reasons.InvalidKubeconfig,
			"the server in the kubeconfig of Secret %s is no address of an API server: want https://host[:port][/path]", secret)
	case cluster.ProxyURL != "":
		return badInput(reasons.InvalidKubeconfig,
			"the kubeconfig of Secret %s has an entry proxy-url, which would redirect the hub's requests: remove it; the value proxy of the "+
				"chart fleet is for all imports", secret)
	case server.Scheme != "https":
		return badInput(reasons.InsecureEndpoint, "the server in the kubeconfig of Secret %s is %s: the hub sends credentials over https only",
			secret, server.Scheme+"://"+server.Host)
	}
	return nil
}

func checkCredential(secret, name string, user *clientcmdapi.AuthInfo, now time.Time) *Problem {
	expired := func(what string, end time.Time) *Problem {
		return badInput(reasons.CredentialExpired, "the %s of user %q in the kubeconfig of Secret %s expired at %s: put a new one into the "+
			"Secret",
			what, name, secret, end.UTC().Format(time.RFC3339))
	}
	switch {
	case user.Token != "" && user.Username != "":
		return badInput(reasons.InvalidKubeconfig, "user %q in the kubeconfig of Secret %s has both a token and a password: "+
			"take the password out", name, secret)
	case len(user.ClientCertificateData) > 0:
		block, _ := pem.Decode(user.ClientCertificateData)
		if block == nil {
			return badInput(reasons.InvalidKubeconfig, "client-certificate-data of user %q in the kubeconfig of Secret %s is not PEM", name, secret)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return badInput(reasons.InvalidKubeconfig, "client-certificate-data of user %q in the kubeconfig of Secret %s is no certificate",
				name, secret)
		}
		if now.After(certificate.NotAfter) {
			return expired("client certificate", certificate.NotAfter)
		}
	case user.Token != "":
		if strings.ContainsFunc(user.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return badInput(reasons.InvalidKubeconfig, "the token of user %q in the kubeconfig of Secret %s has a space, a line break or another "+
				"character that no token has", name, secret)
		}
		if claims, err := credential.ReadClaims(user.Token); err == nil && !claims.Expires.IsZero() && now.After(claims.Expires) {
			return expired("token", claims.Expires)
		}
	case user.Username != "":
		return badInput(reasons.CredentialMissing, "user %q in the kubeconfig of Secret %s has a password, which no API server takes since "+
			"Kubernetes 1.19: use a token or a client certificate", name, secret)
	default:
		return badInput(reasons.CredentialMissing, "user %q in the kubeconfig of Secret %s has neither a token nor a client certificate",
			name, secret)
	}
	return nil
}

// checkCertificates refuses unusable certificates and keys, and names the wrong entry.
func checkCertificates(secret string, chosen *clientcmdapi.Context, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) *Problem {
	ca := cluster.CertificateAuthorityData
	switch {
	case len(ca) > 0 && cluster.InsecureSkipTLSVerify:
		return badInput(reasons.InvalidKubeconfig, "cluster %q in the kubeconfig of Secret %s has both certificate-authority-data and "+
			"insecure-skip-tls-verify: take insecure-skip-tls-verify out", chosen.Cluster, secret)
	case len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca):
		return badInput(reasons.InvalidKubeconfig, "certificate-authority-data of cluster %q in the kubeconfig of Secret %s has no certificate "+
			"in PEM", chosen.Cluster, secret)
	case len(user.ClientCertificateData) > 0 && len(user.ClientKeyData) == 0:
		return badInput(reasons.InvalidKubeconfig, "user %q in the kubeconfig of Secret %s has client-certificate-data and no client-key-data",
			chosen.AuthInfo, secret)
	case len(user.ClientCertificateData) > 0:
		if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
			return badInput(reasons.InvalidKubeconfig, "client-key-data of user %q in the kubeconfig of Secret %s is not the key of "+
				"client-certificate-data", chosen.AuthInfo, secret)
		}
	}
	return nil
}
