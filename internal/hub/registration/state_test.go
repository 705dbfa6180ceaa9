package registration

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/membership"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// asked is a request with nothing wrong about it.
func asked(change ...func(*observed)) observed {
	o := observed{workspace: "clusters", created: start, clientID: "id", native: true, tokenName: "t", token: tokenValid, newName: "cluster-1"}
	for _, c := range change {
		c(&o)
	}
	return o
}

func matching(c clusterView) func(*observed) {
	return func(o *observed) { o.matches = append(o.matches, c) }
}

func TestDecide(t *testing.T) {
	ready := clusterView{name: "c", prepared: true, namespace: membership.NamespaceOurs, memberNamespace: "ns"}
	with := func(change func(*clusterView)) clusterView {
		c := ready
		change(&c)
		return c
	}
	const (
		waiting  = fleet.RegistrationWaiting
		conflict = fleet.RegistrationConflict
		deniedAs = fleet.RegistrationDenied
		granted  = fleet.RegistrationGranted
	)
	for _, c := range []struct {
		name string
		seen observed
		// after is how old the request is.
		after time.Duration
		want  decision
		// says must be in the message; the rest of it is not compared.
		says string
	}{
		{name: "an unknown client ID gets a new Cluster", seen: asked(),
			want: decision{state: waiting, reason: "Preparing", cluster: "cluster-1", action: createCluster, quiet: true, wake: start.Add(quietWait)}},
		{name: "and says so if that takes long", seen: asked(), after: quietWait,
			want: decision{state: waiting, reason: "Preparing", cluster: "cluster-1", action: createCluster, wake: start.Add(time.Hour)}, says: "being created"},
		{name: "a Cluster with a member namespace is granted", seen: asked(matching(ready)),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "a Cluster without one is waited for", seen: asked(matching(with(func(c *clusterView) { c.prepared = false }))),
			want: decision{state: waiting, reason: "Preparing", cluster: "c", quiet: true, wake: start.Add(quietWait)}},
		{name: "a namespace that has not been seen yet is waited for", seen: asked(matching(with(func(c *clusterView) { c.namespace = membership.NamespaceAbsent }))),
			want: decision{state: waiting, reason: "Preparing", cluster: "c", quiet: true, wake: start.Add(quietWait)}},
		{name: "a namespace of somebody else is told at once", seen: asked(matching(with(func(c *clusterView) { c.namespace = membership.NamespaceTaken }))),
			want: decision{state: waiting, reason: "NamespaceTaken", cluster: "c", wake: start.Add(time.Hour)}, says: "namespace ns exists"},
		{name: "a namespace that is going is waited for", seen: asked(matching(with(func(c *clusterView) { c.namespace = membership.NamespaceTerminating }))),
			want: decision{state: waiting, reason: "NamespaceTerminating", cluster: "c", wake: start.Add(time.Hour)}, says: "ns is being deleted"},
		{name: "a Cluster that is leaving is waited for", seen: asked(matching(with(func(c *clusterView) { c.deleting = true }))),
			want: decision{state: waiting, reason: "ClusterLeaving", cluster: "c", wake: start.Add(time.Hour)}, says: "being deleted"},
		{name: "two Clusters with the client ID are a conflict", seen: asked(matching(with(func(c *clusterView) { c.name = "b" })), matching(with(func(c *clusterView) { c.name = "a" }))),
			want: decision{state: conflict, reason: "AmbiguousClientID", wake: start.Add(time.Hour)}, says: "Clusters a and b"},
		{name: "a derived name that another client ID has is a conflict", seen: asked(func(o *observed) { o.newNameTaken = true }),
			want: decision{state: conflict, reason: "NameTaken", cluster: "cluster-1", wake: start.Add(time.Hour)}, says: "Cluster clusters/cluster-1 exists"},
		{name: "an empty client ID matches nothing", seen: asked(func(o *observed) { o.clientID = "" }, matching(ready)),
			want: decision{state: deniedAs, reason: "ClientIDMissing", wake: start.Add(time.Hour)}, says: "spec.clientID is empty"},
		{name: "a client ID of 5 kB is refused", seen: asked(func(o *observed) { o.clientID = strings.Repeat("x", 5000) }),
			want: decision{state: deniedAs, reason: "ClientIDTooLong", wake: start.Add(time.Hour)}, says: "5000 characters, at most 4096"},
		{name: "a label that Kubernetes refuses is refused", seen: asked(func(o *observed) { o.labelProblem = "label a has" }),
			want: decision{state: deniedAs, reason: "InvalidLabels", wake: start.Add(time.Hour)}, says: "label a has"},
		{name: "but labels do not matter to a Cluster that exists", seen: asked(matching(ready), func(o *observed) { o.labelProblem = "label a has" }),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "a key that is none is refused", seen: asked(func(o *observed) { o.keyProblem = "no key" }),
			want: decision{state: deniedAs, reason: "InvalidAnswerKey", wake: start.Add(time.Hour)}, says: "no key"},
		{name: "a token that is gone is refused", seen: asked(matching(ready), func(o *observed) { o.token = tokenMissing }),
			want: decision{state: deniedAs, reason: "TokenNotFound", wake: start.Add(time.Hour)}, says: "clusters/t does not exist"},
		{name: "a token that has expired is refused", seen: asked(matching(ready), func(o *observed) { o.token = tokenExpired }),
			want: decision{state: deniedAs, reason: "TokenExpired", wake: start.Add(time.Hour)}, says: "clusters/t has expired"},
		{name: "a token that the hub made to import a Cluster registers that", seen: asked(matching(ready), func(o *observed) { o.tokenCluster = "c" }),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "and no other", seen: asked(matching(ready), func(o *observed) { o.tokenCluster = "d" }),
			want: decision{state: deniedAs, reason: "TokenBoundElsewhere", wake: start.Add(time.Hour)}, says: "registers Cluster d only"},
		{name: "nor a new one, if it was deleted meanwhile", seen: asked(func(o *observed) { o.tokenCluster = "d" }),
			want: decision{state: deniedAs, reason: "TokenBoundElsewhere", wake: start.Add(time.Hour)}, says: "or is gone"},
		{name: "a native agent has to name its token", seen: asked(matching(ready), func(o *observed) { o.token = tokenUnnamed }),
			want: decision{state: deniedAs, reason: "TokenUnknown", wake: start.Add(time.Hour)}, says: "names no ClusterRegistrationToken"},
		{name: "an upstream agent need not", seen: asked(matching(ready), func(o *observed) { o.token, o.native = tokenUnnamed, false }),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "a newer request supersedes", seen: asked(matching(ready), func(o *observed) { o.newer = "request-2" }),
			want: decision{state: deniedAs, reason: "Superseded", wake: start.Add(time.Hour)}, says: "clusters/request-2"},
		{name: "after an hour an unfinished request is removed", seen: asked(func(o *observed) { o.newNameTaken = true }), after: time.Hour, want: decision{action: remove}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := decide(c.seen, start.Add(c.after))
			if !strings.Contains(got.message, c.says) {
				t.Errorf("message %q does not say %q", got.message, c.says)
			}
			got.message = ""
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnOwedTokenAndAFailureAreSaidWithinSecondsAndNotBefore(t *testing.T) {
	o := asked(matching(clusterView{name: "c"}))
	secret := types.NamespacedName{Namespace: "ns", Name: "agent-token"}
	end := start.Add(time.Hour)
	owed := decision{state: fleet.RegistrationWaiting, reason: "TokenNotIssued", cluster: "c", wake: end}
	broken := decision{state: fleet.RegistrationWaiting, reason: "Failed", cluster: "c"}
	quiet := func(d decision, wake time.Time) decision {
		d.quiet, d.wake = true, wake
		return d
	}
	cause := errors.New("creating Cluster clusters/c: it is forbidden")
	long := errors.New(strings.Repeat("ä", 1000))
	for _, c := range []struct {
		name      string
		got, want decision
		says      string
	}{
		{"a token that was just asked for is awaited in silence", awaitToken(o, secret, start, start), quiet(owed, start.Add(5*time.Second)), ""},
		{"after 5 s it is said what has to run", awaitToken(o, secret, start, start.Add(5*time.Second)), owed, "Secret ns/agent-token: that does the token controller of the hub cluster's kube-controller-manager"},
		{"a failure of a new request may be over in a moment", failed(decision{cluster: "c"}, start, cause, start), quiet(broken, time.Time{}), ""},
		{"one that lasts is said", failed(decision{cluster: "c"}, start, cause, start.Add(5*time.Second)), broken, "creating Cluster clusters/c: it is forbidden; the hub tries again"},
		{"but not at any length", failed(decision{cluster: "c"}, start, long, start.Add(5*time.Second)), broken, strings.Repeat("ä", 256) + "...; the hub tries again"},
	} {
		if !strings.Contains(c.got.message, c.says) || len(c.got.message) > 600 {
			t.Errorf("%s: message %q does not say %q", c.name, c.got.message, c.says)
		}
		c.got.message = ""
		if diff := cmp.Diff(c.want, c.got, cmp.AllowUnexported(decision{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestNoMessageTellsTheClientID(t *testing.T) {
	secret := strings.Repeat("s3cret", 1000)
	for _, o := range []observed{
		asked(func(o *observed) { o.clientID = secret }),
		asked(func(o *observed) { o.clientID, o.newNameTaken = "s3cret", true }),
		asked(func(o *observed) { o.clientID, o.newer = "s3cret", "r" }),
		asked(func(o *observed) { o.clientID = "s3cret" }, matching(clusterView{name: "a"}), matching(clusterView{name: "b"})),
	} {
		if d := decide(o, start); strings.Contains(d.message, "s3cret") {
			t.Errorf("%s: %q", d.reason, d.message)
		}
	}
}

func TestAcceptLabels(t *testing.T) {
	accepted, dropped := acceptLabels(map[string]string{
		"env": "dev", "fleet.cattle.io/cluster": "x", "management.cattle.io/y": "z", "kubernetes-fleet.io/a": "b", fleet.LabelCreatedByAgentPod: "pod",
	})
	if diff := cmp.Diff(map[string]string{"env": "dev", fleet.LabelCreatedByAgentPod: "pod"}, accepted); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"fleet.cattle.io/cluster", "kubernetes-fleet.io/a", "management.cattle.io/y"}, dropped); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
}

func TestLabelProblem(t *testing.T) {
	for _, c := range []struct {
		name   string
		labels map[string]string
		says   string
	}{
		{"good labels", map[string]string{"env": "dev", "example.com/a": ""}, ""},
		{"a value with a space", map[string]string{"env": "a b"}, `label env has the value "a b"`},
		{"a value that is too long", map[string]string{"env": strings.Repeat("x", 64)}, "label env has the value"},
		{"a key with a space", map[string]string{"a b": "c"}, `label key "a b"`},
	} {
		if got := labelProblem(c.labels); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: got %q, want %q in it", c.name, got, c.says)
		}
	}
}
