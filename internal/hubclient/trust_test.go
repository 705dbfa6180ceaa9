package hubclient

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestMode(t *testing.T) {
	for in, want := range map[string]TLSMode{"": TLSSystemStore, "system-store": TLSSystemStore, "strict": TLSStrict} {
		if got, err := ParseTLSMode(in); got != want || err != nil {
			t.Errorf("%q: got %s, %v", in, got, err)
		}
	}
	if _, err := ParseTLSMode("lax"); err == nil || !strings.Contains(err.Error(), `agentTLSMode is "lax": want strict or system-store`) {
		t.Errorf("got %v", err)
	}
}

// authority makes a self-signed CA.
func authority(t *testing.T, name string, from, to time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, NotBefore: from, NotAfter: to,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func dial(t *testing.T, url string, roots roots) error {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: roots.TLS()}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(url)
	if err == nil {
		_ = response.Body.Close() // only the handshake matters
	}
	return err
}

func TestExplanationNamesWhatWasSeenAndWhatIsTrusted(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	certificate := server.Certificate()
	sum := sha256.Sum256(certificate.Raw)
	now := time.Now()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
	other := authority(t, "another", now.Add(-time.Hour), now.Add(time.Hour))

	for name, row := range map[string]struct {
		mode TLSMode
		ca   []byte
		url  string
		want []string
	}{
		"the right CA is enough when strict":         {TLSStrict, own, server.URL, nil},
		"the right CA is enough beside the system's": {TLSSystemStore, own, server.URL, nil},
		"another CA is not, and both sides are named": {TLSStrict, other, server.URL, []string{
			"O=Acme Co (SHA-256 " + hex.EncodeToString(sum[:6]), "issued by O=Acme Co", "trusted: CN=another (SHA-256 ", "set apiServerCA"}},
		"the system's certificates are named": {
			TLSSystemStore, other, server.URL, []string{"trusted: CN=another", ", the system's certificates;"},
		},
		"no CA leaves the system's": {TLSSystemStore, nil, server.URL, []string{"trusted: the system's certificates;"}},
		"another name than that of the certificate is said": {TLSStrict, own, strings.Replace(server.URL, "127.0.0.1", "localhost", 1),
			[]string{"O=Acme Co", "example.com", "not localhost", "use a name in apiServerURL"}},
	} {
		t.Run(name, func(t *testing.T) {
			roots, err := newRoots(policy(row.mode), row.ca)
			if err != nil {
				t.Fatal(err)
			}
			err = dial(t, row.url, roots)
			sentence, ok := roots.Explain(err)
			if ok != (row.want != nil) || (row.want == nil) != (err == nil) {
				t.Fatalf("got error %v, explanation %q", err, sentence)
			}
			for _, part := range row.want {
				if !strings.Contains(sentence, part) {
					t.Errorf("%q does not say %q", sentence, part)
				}
			}
		})
	}
}

func TestStrictNeedsACA(t *testing.T) {
	if _, err := newRoots(policy(TLSStrict), nil); err == nil ||
		!strings.Contains(err.Error(), "set apiServerCA, or agentTLSMode to system-store") {
		t.Errorf("got %v", err)
	}
}

func TestDamagedCAIsRefused(t *testing.T) {
	for name, ca := range map[string]string{
		"no certificate in it": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
		"a cut one":            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		if _, err := newRoots(policy(TLSStrict), []byte(ca)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func policy(mode TLSMode) Trust {
	return Trust{Mode: mode, Settings: Settings{URL: "apiServerURL", SetCA: "set apiServerCA to the CA of the hub"}}
}

func TestOnlyInsecureSkipsVerification(t *testing.T) {
	for mode, want := range map[TLSMode]bool{TLSSystemStore: false, TLSStrict: false, TLSInsecure: true, "": false} {
		roots, err := newRoots(policy(mode), authority(t, "another", time.Now(), time.Now().Add(time.Hour)))
		if err != nil {
			t.Fatal(err)
		}
		if got := roots.TLS().InsecureSkipVerify; got != want {
			t.Errorf("mode %q: verification is skipped: %t", mode, got)
		}
	}
	if _, err := ParseTLSMode("insecure"); err == nil {
		t.Error("agentTLSMode may be insecure")
	}
}
