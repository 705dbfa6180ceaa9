package chartfetch

import (
	"strings"
	"testing"
)

// FuzzParseCredentials reads Secrets for chart repositories. No error quotes one.
func FuzzParseCredentials(f *testing.F) {
	const secret = "c2VjcmV0LXBhc3N3b3Jk"
	f.Add([]byte("user"), []byte(secret), []byte(`{"auths":{"registry.example":{"auth":"`+secret+`"}}}`), []byte(""))
	f.Add([]byte(""), []byte(""), []byte(`{"auths":{"https://x/v1/":null}}`), []byte("-----BEGIN CERTIFICATE-----"))
	f.Add([]byte(""), []byte("x"), []byte(`{"auths":[]}`), []byte("a"))
	f.Fuzz(func(t *testing.T, user, password, docker, ca []byte) {
		_, err := ParseCredentials(map[string][]byte{"username": user, "password": password, ".dockerconfigjson": docker, "cacerts": ca})
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error quotes a secret: %v", err)
		}
	})
}

// FuzzFiles unpacks an archive that a repository sent.
func FuzzFiles(f *testing.F) {
	f.Add([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		files, version, err := (&Archive{Data: data, From: "https://charts.example"}).Files()
		if err == nil && (version == "" || len(files) == 0) {
			t.Error("an archive without a chart is accepted")
		}
		for name := range files {
			if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "../") || strings.Contains(name, "/../") {
				t.Errorf("the file %q leads out of the chart", name)
			}
		}
	})
}
