package dashboard

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// jwt returns a token with its end and without a valid signature.
func jwt(subject string, ends time.Time) string {
	return encoded([]byte(`{"alg":"none"}`)) + "." + encoded(fmt.Appendf(nil, `{"sub":%q,"exp":%d}`, subject, ends.Unix())) + ".x"
}

func TestWhenATokenEnds(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		token string
		want  time.Time
	}{
		"a JWT":                            {jwt("a", now.Add(time.Minute)), now.Add(time.Minute)},
		"one that has ended by this clock": {jwt("a", now.Add(-time.Minute)), time.Time{}},
		"one without an end":               {"x." + encoded([]byte(`{"sub":"a"}`)) + ".x", time.Time{}},
		"one whose end is no number":       {"x." + encoded([]byte(`{"exp":"never"}`)) + ".x", time.Time{}},
		"one whose end is beyond all time": {"x." + encoded([]byte(`{"exp":1e300}`)) + ".x", time.Time{}},
		"a token that says nothing":        {"kubeconfig-u-abc:xyz", time.Time{}},
		"what is no JSON":                  {"a.b.c", time.Time{}},
		"a JWT whose end has a fraction":   {"x." + encoded(fmt.Appendf(nil, `{"exp":%d.5}`, now.Unix()+60)) + ".x", now.Add(time.Minute)},
	} {
		if got := endOf(c.token, now); !got.Equal(c.want) {
			t.Errorf("%s ends at %s, want %s", name, got, c.want)
		}
	}
}

// visitorsAt returns the visitors of a control plane, with a clock.
func (r rig) visitorsAt(clock *clocktesting.FakePassiveClock) *visitors {
	r.t.Helper()
	calls, err := rest.HTTPClientFor(r.Config)
	r.check(err)
	mapper, err := apiutil.NewDynamicRESTMapper(r.Config, calls)
	r.check(err)
	all := newVisitors(r.Config, mapper)
	all.clock = clock
	return all
}

func TestVisitorsAreForgottenOneByOneAndAtTheEndOfTheirTokens(t *testing.T) {
	r := newRig(t)
	admin, now := r.Account(t, "dashboard-admin", "cluster-admin"), time.Now()
	clock := clocktesting.NewFakePassiveClock(now)
	all := r.visitorsAt(clock)
	known := func(i int, at, ends time.Time) {
		all.known[sha256.Sum256(fmt.Append(nil, i))] = &welcomed{&visitor{name: fmt.Sprint(i), pace: flowcontrol.NewFakeAlwaysRateLimiter()}, at,
			ends}
	}
	for i := range mostVisitors { // the first came first
		known(i, now.Add(time.Duration(i-mostVisitors)*time.Second), time.Time{})
	}
	has := func(i int) bool { return all.known[sha256.Sum256(fmt.Append(nil, i))] != nil }
	comes := func() {
		t.Helper()
		delete(all.known, sha256.Sum256([]byte(admin)))
		_, err := all.by(t.Context(), addressIn("192.0.2.1"), admin)
		r.check(err)
	}
	comes()
	if n := len(all.known); n != mostVisitors {
		t.Errorf("when there is one more than there is room for, %d are known", n)
	}
	if has(0) || !has(1) || !has(mostVisitors-1) {
		t.Error("another one was forgotten than the one who had not come for longest")
	}
	known(1, now, now.Add(time.Minute))
	known(2, now, now.Add(10*time.Minute))
	clock.SetTime(now.Add(5 * time.Minute))
	if n := all.remembered(); n != mostVisitors-1 {
		t.Errorf("%d are counted although the token of one has ended", n)
	}
	comes()
	if has(1) || !has(2) || !has(3) {
		t.Error("when the token of one has ended, that one is known, or another is not")
	}
	clock.SetTime(now.Add(forgotten + time.Minute))
	comes()
	if got := len(all.known); got != 1 {
		t.Errorf("an hour after they came, %d are known", got)
	}
}

// TestATokenThatHasEndedIsAskedAboutAtOnce checks that the dashboard does not trust an earlier
// answer about an ended token. Otherwise it would admit the token's user for as long as it trusts
// an answer.
func TestATokenThatHasEndedIsAskedAboutAtOnce(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	clock := clocktesting.NewFakePassiveClock(now)
	all := r.visitorsAt(clock)
	ended := jwt("alice", now.Add(time.Second))
	stranger, err := all.welcome(t.Context(), sha256.Sum256([]byte("x")), addressIn("192.0.2.1"),
		r.Account(t, "dashboard-admin", "cluster-admin"))
	r.check(err)
	key := sha256.Sum256([]byte(ended))
	config := rest.AnonymousClientConfig(r.Config)
	config.BearerToken = ended // which the API server does not know
	stranger.Client, err = client.New(config, client.Options{Scheme: scheme, Mapper: all.mapper})
	r.check(err)
	all.known[key] = &welcomed{stranger, now, endOf(ended, now)}
	if _, err := all.by(t.Context(), addressIn("192.0.2.1"), ended); err != nil {
		t.Errorf("before its end: %v", err)
	}
	clock.SetTime(now.Add(2 * time.Second))
	if _, err := all.by(t.Context(), addressIn("192.0.2.1"), ended); err == nil || all.known[key] != nil {
		t.Errorf("after its end: %v", err)
	}
}

func TestWhoHasNoTokenIsNobody(t *testing.T) {
	r := newRig(t)
	admin := r.Account(t, "dashboard-admin", "cluster-admin")
	address := r.shared()
	for name, header := range map[string]string{
		"two spaces": "Bearer  " + admin, "two spaces before something else": "Bearer  x", "nothing": "Bearer ", "a tab": "Bearer \t" + admin,
		"a word behind it":          "Bearer " + admin + " x",
		"letters that no token has": "Bearer \u00e4\u00f6", "another scheme": "Basic " + admin,
	} {
		if got := r.ask(http.MethodGet, address+"/", "", "", "Authorization", header); got.status != http.StatusSeeOther {
			t.Errorf("%s: %d", name, got.status)
		}
	}
	for name, header := range map[string]string{"a token": "Bearer " + admin, "a scheme in small letters": "bearer " + admin} {
		if got := r.ask(http.MethodGet, address+"/", "", "", "Authorization", header); got.status != http.StatusOK {
			t.Errorf("%s: %d", name, got.status)
		}
	}
	for _, token := range []string{"", "two words"} {
		if got := r.ask(http.MethodPost, address+"/sign-in", "", "token="+token); got.status != http.StatusUnauthorized {
			t.Errorf("who signs in with %q: %d", token, got.status)
		}
	}
	all := r.visitorsAt(clocktesting.NewFakePassiveClock(time.Now()))
	_, err := all.welcome(t.Context(), [sha256.Size]byte{}, addressIn("192.0.2.1"), "")
	if !errors.Is(err, errNoVisitor) || len(all.known) > 0 {
		t.Errorf("who is anonymous for the API server: %v", err)
	}
}

func TestWhichAddressARequestIsFrom(t *testing.T) {
	for name, c := range map[string]struct {
		trusted   string
		remote    string
		forwarded []string
		want      string
	}{
		"without a proxy":                         {"", "192.0.2.1:4711", nil, "192.0.2.1"},
		"a header of somebody who is not trusted": {"", "192.0.2.1:4711", []string{"198.51.100.1"}, "192.0.2.1"},
		"another one's header":                    {"10.0.0.0/8", "192.0.2.1:4711", []string{"198.51.100.1"}, "192.0.2.1"},
		"a proxy":                                 {"10.0.0.0/8", "10.1.2.3:4711", []string{"198.51.100.1"}, "198.51.100.1"},
		"a proxy that says nothing":               {"10.0.0.0/8", "10.1.2.3:4711", nil, "10.1.2.3"},
		"what the browser said before the proxy":  {"10.0.0.0/8", "10.1.2.3:4711", []string{"203.0.113.9, 198.51.100.1"}, "198.51.100.1"},
		"two proxies": {
			"10.0.0.0/8", "10.1.2.3:4711", []string{"203.0.113.9, 198.51.100.1, 10.9.9.9"}, "198.51.100.1",
		},
		"two headers": {
			"10.0.0.0/8", "10.1.2.3:4711", []string{"203.0.113.9", "198.51.100.1,10.9.9.9"}, "198.51.100.1",
		},
		"a browser among the proxies":              {"10.0.0.0/8", "10.1.2.3:4711", []string{"10.7.7.7, 10.9.9.9"}, "10.7.7.7"},
		"rubbish before a proxy":                   {"10.0.0.0/8", "10.1.2.3:4711", []string{"198.51.100.1, unknown, 10.9.9.9"}, "10.9.9.9"},
		"nothing but rubbish":                      {"10.0.0.0/8", "10.1.2.3:4711", []string{"what is this"}, "10.1.2.3"},
		"addresses with ports":                     {"10.0.0.0/8", "10.1.2.3:4711", []string{"198.51.100.1:5555, 10.9.9.9:80"}, "198.51.100.1"},
		"IPv6":                                     {"fd00::/8", "[fd00::1]:4711", []string{"2001:db8::7"}, "2001:db8::7"},
		"IPv6 with a port":                         {"fd00::/8", "[fd00::1]:4711", []string{"[2001:db8::7]:80"}, "2001:db8::7"},
		"a proxy of IPv4 on a socket of IPv6":      {"10.0.0.0/8", "[::ffff:10.1.2.3]:4711", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		"one of several trusted networks":          {"10.0.0.0/8,192.168.0.0/16", "192.168.1.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		"what is no address":                       {"10.0.0.0/8", "@", []string{"198.51.100.1"}, "invalid IP"},
		"the one address of a proxy, without bits": {"10.1.2.3", "10.1.2.3:1", []string{"198.51.100.1"}, "198.51.100.1"},
	} {
		trusted, err := proxiesOf(c.trusted)
		if err != nil {
			t.Fatal(err)
		}
		got := trusted.addressOf(&http.Request{RemoteAddr: c.remote, Header: http.Header{"X-Forwarded-For": c.forwarded}})
		if diff := cmp.Diff(c.want, got.String()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	for _, wrong := range []string{"10.0.0.0/40", "proxy.example.com", "10.0.0.1/8"} {
		if trusted, err := proxiesOf(wrong); err == nil {
			t.Errorf("%s are the proxies %v", wrong, trusted)
		}
	}
}
