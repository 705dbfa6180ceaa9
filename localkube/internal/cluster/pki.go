package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	certificateLife = 10 * 365 * 24 * time.Hour
	// admin is the user of the kubeconfig for a person.
	admin = "admin"
)

// authority signs certificates. There are three, so that a client certificate signed by the cluster
// on request opens neither etcd nor the host node.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

type subject struct {
	file         string
	commonName   string
	organization string
	names        []string
	addresses    []string
}

// pki knows the files of a cluster's keys and certificates.
type pki struct {
	dir string
	// address is the address of API server and node, node the node's name.
	address, node string
}

func (p pki) cert(name string) string { return filepath.Join(p.dir, name+".crt") }
func (p pki) key(name string) string  { return filepath.Join(p.dir, name+".key") }

// tokens returns the path of the API server's file of tokens and their users.
func (p pki) tokens() string { return filepath.Join(p.dir, "tokens.csv") }

// certificates lists the certificates of each authority.
func (p pki) certificates() map[string][]subject {
	return map[string][]subject{
		"ca": {
			{file: "apiserver", commonName: "kube-apiserver", addresses: []string{loopback, p.address, firstServiceAddress},
				names: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}},
			{file: "host-node", commonName: "localkube-host-node", organization: "system:masters"},
			{file: "controller-manager", commonName: "system:kube-controller-manager"},
			{file: "scheduler", commonName: "system:kube-scheduler"},
			{file: "kubelet", commonName: "system:node:" + p.node, organization: "system:nodes"},
			{file: "kube-proxy", commonName: "system:kube-proxy"},
		},
		"etcd-ca": {
			{file: "etcd", commonName: "etcd", names: []string{"localhost"}, addresses: []string{loopback}},
			{file: "etcd-client", commonName: "kube-apiserver"},
		},
		"node-ca": {
			{file: "node", commonName: p.node, addresses: []string{p.address}},
			{file: "node-client", commonName: "kube-apiserver"},
		},
	}
}

// ensure makes missing files. It writes the marker last, so that after a crash it makes all keys
// again.
func (p pki) ensure(now time.Time) error {
	marker := filepath.Join(p.dir, "complete")
	if _, err := os.Stat(marker); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for certificates: %w", err)
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fmt.Errorf("creating the certificate directory: %w", err)
	}
	for name, subjects := range p.certificates() {
		ca, err := p.makeAuthority(name, now)
		if err != nil {
			return err
		}
		for _, s := range subjects {
			if err := p.makeCertificate(ca, s, now); err != nil {
				return err
			}
		}
	}
	if _, err := p.makeKey("service-account"); err != nil {
		return err
	}
	return writeFile(marker, nil)
}

// ensureToken returns the token of the administrator, and makes it once. The API server verifies a
// client certificate with each request, at a higher cost than many requests themselves. It only
// compares a token.
func (p pki) ensureToken() (string, error) {
	path := filepath.Join(p.dir, admin+".token")
	token, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		token = []byte(rand.Text())
		err = writeFile(path, token)
	}
	if err != nil {
		return "", fmt.Errorf("the token of the administrator: %w", err)
	}
	line := fmt.Sprintf("%s,localkube-admin,localkube-admin,system:masters\n", token)
	return string(token), writeFile(p.tokens(), []byte(line))
}

func (p pki) makeAuthority(name string, now time.Time) (authority, error) {
	key, err := p.makeKey(name)
	if err != nil {
		return authority{}, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "localkube-" + name},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certificateLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	certificate, err := p.sign(name, template, authority{certificate: template, key: key}, key)
	return authority{certificate: certificate, key: key}, err
}

func (p pki) makeCertificate(ca authority, s subject, now time.Time) error {
	key, err := p.makeKey(s.file)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: s.commonName},
		DNSNames:    s.names,
		NotBefore:   now.Add(-time.Hour),
		NotAfter:    now.Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if s.organization != "" {
		template.Subject.Organization = []string{s.organization}
	}
	for _, address := range s.addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	if len(s.addresses) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	_, err = p.sign(s.file, template, ca, key)
	return err
}

func (p pki) makeKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making key %s: %w", name, err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding key %s: %w", name, err)
	}
	return key, writeFile(p.key(name), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

func (p pki) sign(name string, template *x509.Certificate, ca authority, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, &key.PublicKey, ca.key)
	if err != nil {
		return nil, fmt.Errorf("signing certificate %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading certificate %s: %w", name, err)
	}
	return certificate, writeFile(p.cert(name), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
