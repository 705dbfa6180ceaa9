package credential

import (
	"encoding/base64"
	"strings"
	"testing"
)

// testCA is a self-signed certificate made for this test; its key was thrown away.
const testCA = `-----BEGIN CERTIFICATE-----
MIIBiDCCAS+gAwIBAgIUXA4lvw+bWdR501yqACkdtFAUgekwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwObXVzdGVyIHRlc3QgQ0EwIBcNMjYxMTIwMjAzOTQwWhgPMjEy
NjEwMjcyMDM5NDBaMBkxFzAVBgNVBAMMDm11c3RlciB0ZXN0IENBMFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAEjFunVF5qhtx1EWhmTt+zbsVPBLnoazEVhcXRE3Ua
duaQTbobkjqai5taBnCdMAZKmqhldOKVKxxx1+PUA/L5u6NTMFEwHQYDVR0OBBYE
FMuqF8CgDGYrjGh8vKwdDNi7wKcnMB8GA1UdIwQYMBaAFMuqF8CgDGYrjGh8vKwd
DNi7wKcnMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgd/6qWl1j
0YoEWGN2q7h/K9QnCiAeuWse1uv6TaqKzV0CIHntHY/1SA1iLrN3EtTbjqdSgycT
eFdjFtHs/dJDjNul
-----END CERTIFICATE-----
`

func TestParseCA(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(testCA))
	for _, c := range []struct {
		name, text, want, problem string
	}{
		{name: "PEM", text: testCA, want: testCA},
		{name: "base64 of PEM, as in a kubeconfig", text: encoded, want: testCA},
		{name: "base64 with line breaks", text: encoded[:64] + "\n" + encoded[64:] + "\n", want: testCA},
		{name: "indented PEM", text: "  " + strings.ReplaceAll(testCA, "\n", "\n  "), want: testCA},
		{name: "PEM with Windows line ends", text: strings.ReplaceAll(testCA, "\n", "\r\n"), want: testCA},
		{name: "two certificates", text: testCA + testCA, want: testCA + testCA},
		{name: "PEM with text around it", text: testCA + "# the old one\n" + testCA, want: testCA + testCA},
		{name: "nothing", text: " \n", want: ""},
		{name: "neither", text: "hello!", problem: "neither PEM nor base64"},
		{name: "base64 of something else", text: base64.StdEncoding.EncodeToString([]byte("hello")), problem: "no certificate"},
		{name: "a key", text: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", problem: "no certificate"},
		{
			name: "a broken certificate", text: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
			problem: "certificate 1 of the CA bundle",
		},
	} {
		got, err := ParseCA(c.text)
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: got error %v, want one with %q", c.name, err, c.problem)
			}
			continue
		}
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v", c.name, got, err)
		}
	}
}

// TestCAHashIsUpstreams has the golden vectors of the wire facts.
func TestCAHashIsUpstreams(t *testing.T) {
	for bundle, want := range map[string]string{
		"CA": "92daeba0b87f5b214bc92b74d8b4b1602bb14d44890257dc4ffd636e",
		"":   "a7408a8b23aff882d8b95165eb24c3a6b519468539eb2b3072f529cb",
	} {
		if got := CAHash([]byte(bundle)); got != want {
			t.Errorf("%q: got %s, want %s", bundle, got, want)
		}
	}
}
