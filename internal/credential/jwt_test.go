package credential

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func token(payload string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

func TestReadClaims(t *testing.T) {
	for _, c := range []struct {
		name, token string
		want        Claims
		problem     string
	}{
		{name: "a token that expires",
			token: token(`{"sub":"system:serviceaccount:clusters:new-token-u","iat":100,"exp":200,"kubernetes.io":{"serviceaccount":{"uid":"u"}}}`),
			want: Claims{
				Subject: "system:serviceaccount:clusters:new-token-u", Namespace: "clusters", Account: "new-token-u", AccountUID: "u",
				Issued: time.Unix(100, 0), Expires: time.Unix(200, 0),
			}},
		{name: "a token without an end",
			token: token(`{"sub":"system:serviceaccount:a:b","kubernetes.io/serviceaccount/service-account.uid":"u"}`),
			want:  Claims{Subject: "system:serviceaccount:a:b", Namespace: "a", Account: "b", AccountUID: "u"}},
		{name: "a token that is stored in a Secret",
			token: token(
				`{"sub":"system:serviceaccount:a:b",` +
					`"kubernetes.io/serviceaccount/service-account.uid":"u","kubernetes.io/serviceaccount/secret.name":"s"}`,
			),
			want: Claims{Subject: "system:serviceaccount:a:b", Namespace: "a", Account: "b", AccountUID: "u", Secret: "s"}},
		{name: "a token that is bound to a Secret",
			token: token(
				`{"sub":"system:serviceaccount:a:b",` +
					`"iat":100,"exp":200,"kubernetes.io":{"serviceaccount":{"uid":"u"},"secret":{"name":"s","uid":"v"}}}`,
			),
			want: Claims{
				Subject: "system:serviceaccount:a:b", Namespace: "a", Account: "b", AccountUID: "u", Secret: "s", SecretUID: "v",
				Issued: time.Unix(100, 0), Expires: time.Unix(200, 0),
			}},
		{name: "a token of a person", token: token(`{"sub":"jane"}`), problem: `its subject is "jane"`},
		{name: "no token", token: "s3cret", problem: "1 parts instead of 3"},
		{name: "a payload that is not base64", token: "a.!.c", problem: "not base64"},
		{name: "a payload that is not JSON", token: token("x"), problem: "not JSON"},
	} {
		got, err := ReadClaims(c.token)
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: got error %v, want one with %q", c.name, err, c.problem)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: the error tells the token: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
