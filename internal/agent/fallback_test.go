package agent

import (
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/hubclient"
)

func TestTheAddressesOfAHubComeFromItsReport(t *testing.T) {
	ca, other := otherCA(t), otherCA(t)
	first := address{server: "https://one", ca: ca, mode: hubclient.TLSStrict}
	requested := func(fallbacks ...clusterv1beta1.HubFallback) *clusterv1beta1.HubAddress {
		return &clusterv1beta1.HubAddress{APIServerURL: "https://one", Fallbacks: fallbacks, FallbackAfterSeconds: 30}
	}
	for name, c := range map[string]struct {
		hub     *clusterv1beta1.HubAddress
		want    hubclient.Addresses
		problem string
	}{
		"a hub that names nothing":      {},
		"a hub with one address":        {hub: requested()},
		"fallbacks without a first one": {hub: &clusterv1beta1.HubAddress{Fallbacks: requested(clusterv1beta1.HubFallback{}).Fallbacks}},
		"fallbacks with and without a CA": {
			hub: requested(clusterv1beta1.HubFallback{APIServerURL: "https://two"},
				clusterv1beta1.HubFallback{APIServerURL: "https://three/", APIServerCA: string(other)}),
			want: hubclient.Addresses{AfterSeconds: 30, Report: "uid", List: []hubclient.Address{
				{Server: "https://one", CA: ca}, {Server: "https://two", CA: ca}, {Server: "https://three", CA: other},
			}},
		},
		"a fallback without TLS": {hub: requested(clusterv1beta1.HubFallback{APIServerURL: "http://two"}), problem: `the fallback "http://two"`},
		"a CA that is none": {
			hub:     requested(clusterv1beta1.HubFallback{APIServerURL: "https://two", APIServerCA: "hello"}),
			problem: "an unusable CA for the fallback https://two",
		},
	} {
		report := &clusterv1beta1.InternalMemberCluster{Spec: clusterv1beta1.InternalMemberClusterSpec{Hub: c.hub}}
		report.UID = "uid"
		got, err := knownAddresses(first, report, nil)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: got %v, want %q", name, err, c.problem)
		}
	}
}

func TestAFallbackIsTheSameHubWithTheSameOrAHigherTerm(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	check(t, err)
	_, another, err := ed25519.GenerateKey(nil)
	check(t, err)
	two := term.Sign(key, 2, "cluster")
	unsigned := term.Sign(key, 3, "cluster")
	unsigned.Signature = two.Signature
	for name, c := range map[string]struct {
		obeyed, offered *clusterv1beta1.HubTerm
		refusal         string
	}{
		"the same term":                       {two, two, ""},
		"a higher term, on another cluster":   {two, term.Sign(key, 3, "other"), ""},
		"a lower term":                        {two, term.Sign(key, 1, "cluster"), "this cluster obeys term 2"},
		"the same term on another cluster":    {two, term.Sign(key, 2, "other"), "this cluster obeys term 2"},
		"a higher term that it cannot sign":   {two, unsigned, "no valid signature"},
		"a higher term of another hub":        {two, term.Sign(another, 3, "cluster"), "does not have the key"},
		"a hub of an earlier version":         {two, nil, "does not have the key"},
		"a member that remembers no term yet": {nil, two, ""},
	} {
		report := &clusterv1beta1.InternalMemberCluster{Spec: clusterv1beta1.InternalMemberClusterSpec{HubTerm: c.offered}}
		got := (&terms{obeyed: c.obeyed}).fallbackRefusal(report)
		if (got == "") != (c.refusal == "") || !strings.Contains(got, c.refusal) {
			t.Errorf("%s: refused with %q, want %q", name, got, c.refusal)
		}
	}
}

func TestAgentsDoNotLeaveAnAddressInStep(t *testing.T) {
	known := hubclient.Addresses{AfterSeconds: 60}
	for spread, want := range map[float64]time.Duration{0: time.Minute, 0.5: 75 * time.Second, 1: 90 * time.Second} {
		if got := (&environment{spread: spread}).patience(known); got != want {
			t.Errorf("with spread %v: %s, want %s", spread, got, want)
		}
	}
	first, err := New(Options{Member: &rest.Config{Host: "https://unused"}, Namespace: "a"})
	check(t, err)
	second, err := New(Options{Member: &rest.Config{Host: "https://unused"}, Namespace: "a"})
	check(t, err)
	if first.spread == second.spread {
		t.Errorf("two agents have the spread %v", first.spread)
	}
}

func TestAFencedHubNamesNoAddresses(t *testing.T) {
	report := &clusterv1beta1.InternalMemberCluster{Spec: clusterv1beta1.InternalMemberClusterSpec{
		Hub: &clusterv1beta1.HubAddress{APIServerURL: "https://one", Fallbacks: []clusterv1beta1.HubFallback{{APIServerURL: "https://two"}}},
	}}
	if hub := masked(report).Spec.Hub; hub != nil {
		t.Errorf("it names %+v", hub)
	}
}
