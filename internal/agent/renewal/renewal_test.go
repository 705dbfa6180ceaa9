package renewal

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"
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

// store is where an agent keeps its token.
type store struct{ token atomic.Pointer[string] }

func stores(token string) *store {
	s := &store{}
	s.keep(token)
	return s
}

func (s *store) keep(token string) { s.token.Store(&token) }
func (s *store) inUse() string     { return *s.token.Load() }

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
		// Issued 20 min ago by our clock, which is behind the hub's: now, by the hub's.
		stored := stores(token(now(), now().Add(life)))
		renewer := Renewer{
			Token: stored.inUse,
			Request: func(_ context.Context, l time.Duration) (string, error) {
				if failures--; failures >= 0 {
					return "", errors.New("the hub is away")
				}
				if l != life {
					t.Errorf("asked for %s, want %s", l, life)
				}
				return token(now(), now().Add(life)), nil
			},
			Keep: func(_ context.Context, token string) error {
				stored.keep(token)
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

func TestATokenThatTheHubHasReplacedMeanwhileIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const life = 3 * time.Hour
		stored := stores(token(time.Now(), time.Now().Add(life)))
		requested := make(chan time.Time, 1)
		start := time.Now()
		renewer := Renewer{
			Token: stored.inUse,
			Request: func(context.Context, time.Duration) (string, error) {
				requested <- time.Now()
				return "", errors.New("forbidden")
			},
			Explain: func(err error) string { return err.Error() }, Now: time.Now, Clock: clock.RealClock{},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			renewer.Run(ctx)
		}()
		time.Sleep(time.Hour) // of fake time
		stored.keep(token(time.Now(), time.Now().Add(life)))
		if after := (<-requested).Sub(start); after < 2*time.Hour+45*time.Minute {
			t.Errorf("another token was requested after %s", after)
		}
		cancel()
		<-done
	})
}
