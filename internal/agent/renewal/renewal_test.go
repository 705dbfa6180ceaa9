package renewal

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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
