package credential

import (
	"testing"
)

// FuzzReadClaims reads tokens that a member or a user sent.
func FuzzReadClaims(f *testing.F) {
	f.Add("a.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6ZmxlZXQ6YWdlbnQiLCJleHAiOjF9.b")
	f.Add("a.bnVsbA.b")
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		claims, err := ReadClaims(token)
		if err == nil && claims.Subject != subjectPrefix+claims.Namespace+":"+claims.Account {
			t.Errorf("subject %q became account %q in %q", claims.Subject, claims.Account, claims.Namespace)
		}
	})
}

// FuzzParseServer reads the hub's address in the values of an agent.
func FuzzParseServer(f *testing.F) {
	for _, seed := range []string{
		"https://hub.example:6443", "https://[::1]:6443/k8s/clusters/local", "http://hub", "https://u:p@hub", "https://",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		server, err := ParseServer(text)
		if err != nil {
			return
		}
		again, err := ParseServer(server)
		if err != nil || again != server {
			t.Errorf("%q became %q, and that %q (%v)", text, server, again, err)
		}
	})
}

// FuzzParseCA reads certificates in the values of an agent.
func FuzzParseCA(f *testing.F) {
	f.Add("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n")
	f.Add("LS0tLS1CRUdJTg==")
	f.Fuzz(func(t *testing.T, text string) {
		ca, err := ParseCA(text)
		if err != nil {
			return
		}
		if again, err := ParseCA(string(ca)); err != nil || string(again) != string(ca) {
			t.Errorf("a CA changes when it is read again: %v", err)
		}
	})
}

// FuzzOpenAnswer opens bytes that are no answer of a hub.
func FuzzOpenAnswer(f *testing.F) {
	key, err := NewAnswerKey()
	if err != nil {
		f.Fatal(err)
	}
	f.Add("uid", []byte("sealed"))
	f.Fuzz(func(t *testing.T, uid string, sealed []byte) {
		if _, err := key.Open(uid, sealed); err == nil {
			t.Error("bytes that the hub did not seal were opened")
		}
	})
}
