package clone

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the format of known_hosts
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"golang.org/x/crypto/ssh"
)

// keysOf returns the keys of a server in a text in the format of known_hosts; see sshd(8).
func keysOf(knownHosts []byte, address *url.URL) ([]ssh.PublicKey, error) {
	name := strings.ToLower(address.Hostname())
	if port := portOf(address); port != "22" {
		name = "[" + name + "]:" + port
	}
	var keys []ssh.PublicKey
	for rest := knownHosts; ; {
		marker, hosts, key, _, after, err := ssh.ParseKnownHosts(rest)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading the known hosts: %w", err)
		}
		if rest = after; marker == "" && matches(hosts, name) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("the known hosts have no key of %s: add the output of ssh-keyscan to key %s of the Secret, or to ConfigMap "+
			"known-hosts of the system namespace", address.Host, KnownHosts)
	}
	return keys, nil
}

// matches reports whether an entry is for a host. An entry with a matching negated pattern is not.
func matches(patterns []string, name string) bool {
	found := false
	for _, pattern := range patterns {
		negated := strings.HasPrefix(pattern, "!")
		pattern = strings.TrimPrefix(pattern, "!")
		if !hashed(pattern, name) && !like(strings.ToLower(pattern), name) {
			continue
		}
		if negated {
			return false
		}
		found = true
	}
	return found
}

// like compares a name with a pattern of * and ?, where brackets have no special meaning.
func like(pattern, name string) bool {
	escaped := strings.NewReplacer("[", `\[`, "]", `\]`).Replace(pattern)
	is, err := path.Match(escaped, name)
	return err == nil && is
}

// hashed reports whether a pattern is the hash of a name: |1|salt|hash.
func hashed(pattern, name string) bool {
	parts := strings.Split(pattern, "|")
	if len(parts) != 4 || parts[1] != "1" {
		return false
	}
	salt, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil {
		return false
	}
	want, err := base64.StdEncoding.DecodeString(parts[3])
	if err != nil {
		return false
	}
	mac := hmac.New(sha1.New, salt)
	mac.Write([]byte(name))
	return hmac.Equal(mac.Sum(nil), want)
}
