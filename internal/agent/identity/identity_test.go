package identity

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/credential"
)

// token is what a ServiceAccount's token looks like to one that cannot verify it.
func token(issued, expires time.Time) string {
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:m:agent","iat":%d,"exp":%d}`, issued.Unix(), expires.Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestRenewalTime(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	for name, row := range map[string]struct {
		claims credential.Claims
		spread float64
		want   time.Time
	}{
		"two thirds of the life":                {claims: credential.Claims{Issued: at(1000), Expires: at(4000)}, want: at(3000)},
		"at most five percent of it earlier":    {claims: credential.Claims{Issued: at(1000), Expires: at(4000)}, spread: -1, want: at(2850)},
		"at most five percent of it later":      {claims: credential.Claims{Issued: at(1000), Expires: at(4000)}, spread: 1, want: at(3150)},
		"never without an expiry":               {claims: credential.Claims{Issued: at(1000)}},
		"never if it does not say when issued":  {claims: credential.Claims{Expires: at(1000)}},
		"never if it expires before its issued": {claims: credential.Claims{Issued: at(1000), Expires: at(500)}},
	} {
		if got := renewAt(row.claims, row.spread); !got.Equal(row.want) {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}

func TestCredentialSurvivesItsSecret(t *testing.T) {
	want := Credential{
		Server: "https://hub:6443", CA: []byte("-----BEGIN"), Token: "t", MemberNamespace: "cluster-x", Workspace: "clusters", Cluster: "my-cluster",
	}
	secret, err := want.Secret("cattle-fleet-system")
	if err != nil {
		t.Fatal(err)
	}
	got, err := FromSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestGarbageInTheSecretIsNamedButNotQuoted(t *testing.T) {
	good, err := (Credential{Server: "https://hub", Token: "s3cret", MemberNamespace: "m", Workspace: "w", Cluster: "c"}).Secret("n")
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		change func(map[string][]byte)
		want   string
	}{
		"a missing key": {func(d map[string][]byte) { delete(d, "clusterName") }, "no key clusterName"},
		"no kubeconfig": {func(d map[string][]byte) { d["kubeconfig"] = []byte("s3cret: [") }, "not a kubeconfig"},
		"no context":    {func(d map[string][]byte) { d["kubeconfig"] = []byte("current-context: x") }, `no context "x"`},
		"no token in a user": {func(d map[string][]byte) {
			d["kubeconfig"] = []byte(strings.ReplaceAll(string(d["kubeconfig"]), "token: s3cret", "username: s3cret"))
		}, "no token"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := good.DeepCopy()
			row.change(secret.Data)
			_, err := FromSecret(&corev1.Secret{Data: secret.Data})
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want it to say %q", err, row.want)
			}
		})
	}
}

func TestTokenIsRenewedByTheHubsClockAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const life, ahead = time.Hour, 20 * time.Minute
		now := func() time.Time { return time.Now().Add(ahead) }
		start := time.Now()
		renewed := make(chan time.Duration, 1)
		failures := 2
		renewer := Renewer{
			// Issued 20 min ago by our clock, which is behind the hub's: now, by the hub's.
			Token: token(now(), now().Add(life)),
			Request: func(_ context.Context, l time.Duration) (string, error) {
				if failures--; failures >= 0 {
					return "", errors.New("the hub is away")
				}
				if l != life {
					t.Errorf("asked for %s, want %s", l, life)
				}
				return token(now(), now().Add(life)), nil
			},
			Keep: func(context.Context, string) error {
				renewed <- time.Since(start)
				return nil
			},
			Explain: func(err error) string { return err.Error() },
			Now:     now, Clock: clock.RealClock{},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			renewer.Run(ctx)
		}()
		if after := <-renewed; after < 37*time.Minute || after > 45*time.Minute {
			t.Errorf("renewed after %s, want about 40 min", after)
		}
		cancel()
		<-done
	})
}
