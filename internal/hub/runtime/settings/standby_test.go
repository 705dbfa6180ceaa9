package settings

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-fleet/muster/internal/fleet/standby"
)

// signed returns the text of a token that ends at a time. Its signature is worth nothing.
func signed(expires time.Time) string {
	payload := fmt.Sprintf(`{"sub":"system:serviceaccount:a:b","exp":%d}`, expires.Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".s3cret"
}

func TestATokenOfAStandbyIsUsedUntilItsEnd(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	for name, c := range map[string]struct {
		token   string
		missing bool
		usable  bool
		problem string
		next    time.Duration
	}{
		"a token of a year":       {signed(now.Add(standby.Life)), false, true, "", time.Hour},
		"near its end":            {signed(now.Add(20 * time.Minute)), false, true, "expires at 2001-09-09T02:06:40Z", 20 * time.Minute},
		"soon near its end":       {signed(now.Add(standby.WarnBefore + time.Minute)), false, true, "", time.Minute},
		"after its end":           {signed(now), false, false, "expired at 2001-09-09T01:46:40Z", time.Hour},
		"no Secret":               {"", true, false, "the hub has no Secret a", time.Hour},
		"a Secret without a key":  {"", false, false, "no token of a ServiceAccount in its key token", time.Hour},
		"a text that is no token": {"s3cret", false, false, "no token of a ServiceAccount", time.Hour},
	} {
		token := StandbyToken{Secret: "a", Key: standby.Key}
		token.read(&corev1.Secret{Data: map[string][]byte{standby.Key: []byte(c.token + "\n")}}, c.missing, now)
		if (token.Token() != "") != c.usable || (token.Problem == "") != (c.problem == "") || !strings.Contains(token.Problem, c.problem) {
			t.Errorf("%s: usable %t, %q", name, token.Token() != "", token.Problem)
		}
		config := Config{Fallbacks: Fallbacks{Tokens: []StandbyToken{{}, token}}}
		if next := config.nextRead(now); next != c.next {
			t.Errorf("%s: the next read is in %s, want %s", name, next, c.next)
		}
		if shown := fmt.Sprintf("%v %+v %#v", token, config, config); strings.Contains(shown, "s3cret") {
			t.Errorf("%s: the token is shown: %s", name, shown)
		}
	}
	if next := (Config{Fallbacks: Fallbacks{Tokens: []StandbyToken{{}}}}).nextRead(now); next != 0 {
		t.Errorf("without a token, the next read is in %s", next)
	}
}
