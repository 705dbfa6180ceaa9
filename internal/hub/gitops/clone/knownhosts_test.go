package clone

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // the format of known_hosts
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestTheKnownHostsOfAServer(t *testing.T) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	entry := " " + string(ssh.MarshalAuthorizedKey(key))
	hash := func(name string) string {
		mac := hmac.New(sha1.New, []byte("salt"))
		mac.Write([]byte(name))
		return "|1|" + base64.StdEncoding.EncodeToString([]byte("salt")) + "|" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	for hosts, want := range map[string]map[string]bool{
		"git.example.com": {"ssh://git.example.com/a": true, "ssh://git.example.com:2222/a": false,
			"ssh://example.com/a": false},
		"[git.example.com]:2222":            {"ssh://git.example.com/a": false, "ssh://git.example.com:2222/a": true},
		"*.example.com,!bad.example.com":    {"ssh://git.example.com/a": true, "ssh://bad.example.com/a": false},
		"GIT.example.com":                   {"ssh://git.EXAMPLE.com/a": true},
		"other.example.com,git.example.com": {"ssh://git.example.com/a": true},
		hash("git.example.com"):             {"ssh://git.example.com/a": true, "ssh://bad.example.com/a": false},
		hash("[git.example.com]:2222"):      {"ssh://git.example.com/a": false, "ssh://git.example.com:2222/a": true},
		"@revoked git.example.com":          {"ssh://git.example.com/a": false},
	} {
		for address, found := range want {
			parsed, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			keys, err := keysOf([]byte(hosts+entry), parsed)
			if (len(keys) == 1) != found || (err == nil) != found {
				t.Errorf("%s for %s: %d keys, %v", hosts, address, len(keys), err)
			}
		}
	}
	_, err = keysOf([]byte("git.example.com no-key\n"), &url.URL{Scheme: "ssh", Host: "git.example.com"})
	if err == nil || !strings.Contains(err.Error(), "known hosts") {
		t.Errorf("an entry that is none: %v", err)
	}
}
