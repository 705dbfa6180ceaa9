package hubclient

import (
	"encoding/base64"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func given(pairs ...string) *corev1.Secret {
	s := &corev1.Secret{Data: map[string][]byte{}}
	for i := 0; i < len(pairs); i += 2 {
		s.Data[pairs[i]] = []byte(pairs[i+1])
	}
	return s
}

func TestGivenTokenIsReadOrSaidToBeUnusable(t *testing.T) {
	for name, row := range map[string]struct {
		secret *corev1.Secret
		token  string
		err    string
	}{
		"a token":      {given("token", " eyJ.a.b\n"), "eyJ.a.b", ""},
		"no key":       {given("kubeconfig", "x"), "", "its key token is missing or empty"},
		"an empty key": {given("token", " \n"), "", "its key token is missing or empty"},
		"two tokens":   {given("token", "eyJ.s3cret.b eyJ"), "", "holds white space"},
		"base64 of a token": {given("token", base64.StdEncoding.EncodeToString([]byte("eyJ.s3cret.b"))),
			"", "holds base64 of a token: decode"},
		"a CA that is no CA":      {given("token", "eyJ.a.b", "ca.crt", "nonsense!"), "", "its key ca.crt is unusable"},
		"an empty CA is as if no": {given("token", "eyJ.a.b", "ca.crt", ""), "eyJ.a.b", ""},
	} {
		token, _, err := TokenFromSecret(row.secret)
		if token != row.token || (err == nil) != (row.err == "") ||
			err != nil && (!strings.Contains(err.Error(), row.err) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%s: got %q, %v", name, token, err)
		}
	}
}

func TestDigestChangesWithTokenAndCAOnly(t *testing.T) {
	first := DigestOfTokenSecret(given("token", "a", "ca.crt", "b"))
	for name, row := range map[string]struct {
		secret *corev1.Secret
		same   bool
	}{
		"another key":     {given("token", "a", "ca.crt", "b", "namespace", "c"), true},
		"another token":   {given("token", "c", "ca.crt", "b"), false},
		"another CA":      {given("token", "a", "ca.crt", "c"), false},
		"a shifted token": {given("token", "ab", "ca.crt", ""), false},
	} {
		if got := DigestOfTokenSecret(row.secret) == first; got != row.same {
			t.Errorf("%s: same digest: %t", name, got)
		}
	}
}
