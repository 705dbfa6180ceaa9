package join

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// FuzzParseBootstrap reads the values of an agent. No error quotes the token.
func FuzzParseBootstrap(f *testing.F) {
	f.Add("apiServerURL: https://hub:6443\napiServerCA: ''\ntoken: " + seedToken + "\nclusterNamespace: clusters\n")
	f.Add("token: [a, b]\napiServerURL: {a: b}\n")
	f.Add("a: &a [*a]\ntoken: " + seedToken)
	f.Fuzz(func(t *testing.T, values string) {
		secret := &corev1.Secret{Data: map[string][]byte{keyValues: []byte(values)}}
		b, err := ParseBootstrap(secret, false)
		switch {
		case err != nil && strings.Contains(values, seedToken) && strings.Contains(err.Error(), seedToken):
			t.Errorf("the error quotes the token: %v", err)
		case err == nil && (b.Server == "" || b.Token == "" || b.Workspace == ""):
			t.Errorf("values are accepted without a server, a token or a workspace: %q", values)
		}
	})
}

const seedToken = "a.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6ZmxlZXQ6YWdlbnQifQ.secret"

// FuzzParseConfig reads the ConfigMap of an agent.
func FuzzParseConfig(f *testing.F) {
	f.Add(`{"labels":{"env":"dev"},"clientID":"a","agentTLSMode":"strict"}`)
	f.Add(`{"labels":{"env":1}}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, text string) {
		config, err := ParseConfig(&corev1.ConfigMap{Data: map[string]string{keyConfig: text}})
		if err == nil && config.Digest == "" {
			t.Error("a ConfigMap has no digest")
		}
	})
}
