package join

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
)

// joiner has the registration token clusters/new-token, which expires at 4000.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func joiner(t *testing.T, change func(map[string]string)) *Joiner {
	t.Helper()
	data := map[string]string{"apiServerURL": "https://hub", "token": token}
	if change != nil {
		change(data)
	}
	b, err := ParseBootstrap(secret(data), false)
	if err != nil {
		t.Fatal(err)
	}
	return &Joiner{Member: &local.Cluster{Namespace: "ns"}, Bootstrap: b, Clock: clocktesting.NewFakeClock(now), Progress: func(string) {}}
}

func TestRefusedTokenIsNamedWithTheRemedy(t *testing.T) {
	const remedy = "create another ClusterRegistrationToken and install the chart with its values.yaml"
	for name, row := range map[string]struct {
		change func(map[string]string)
		now    int64
		want   string
	}{
		"an expired one tells when": {nil, 4000, "token clusters/new-token expired at 1970-01-01T01:06:40Z; " + remedy},
		"one that should still work was deleted": {nil, 3999,
			"the hub refuses token clusters/new-token, which has not expired: it was deleted or revoked, or is another hub's; " + remedy},
		"an unreadable one is named by its Secret": {func(d map[string]string) { d["token"], d["clusterNamespace"] = "opaque", "clusters" }, 0,
			"the hub does not know the token in secret ns/fleet-agent-bootstrap: copy it again from the values.yaml, or " + remedy},
	} {
		if got := joiner(t, row.change).badToken(time.Unix(row.now, 0)); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, row.want)
		}
	}
}

func TestForbiddenWorkspaceIsExplained(t *testing.T) {
	elsewhere := func(d map[string]string) { d["clusterNamespace"] = "elsewhere" }
	for name, row := range map[string]struct {
		change func(map[string]string)
		want   string
	}{
		"a token of another workspace": {elsewhere,
			"token clusters/new-token belongs to workspace clusters and may not register clusters in workspace elsewhere: " +
				"set clusterNamespace to clusters, or use a token of elsewhere"},
		"a workspace that is going": {nil,
			"token clusters/new-token may not register clusters in workspace clusters: the workspace is gone or being deleted, " +
				"or the hub has not given the token its right: is muster-hub running there?"},
	} {
		if got := joiner(t, row.change).badWorkspace(); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, row.want)
		}
	}
}

func TestRequest(t *testing.T) {
	key, err := credential.NewAnswerKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		change   func(map[string]string)
		labels   map[string]string
		hostname string
		want     fleet.ClusterRegistration
	}{
		"a token tells its name and its user": {
			hostname: "pod-1", labels: map[string]string{"env": "dev"},
			want: fleet.ClusterRegistration{
				ObjectMeta: metav1.ObjectMeta{
					GenerateName: "request-", Namespace: "clusters",
					Labels:      map[string]string{"fleet.cattle.io/registration-token": "new-token"},
					Annotations: map[string]string{"muster/requester": "system:serviceaccount:clusters:" + account},
				},
				Spec: fleet.ClusterRegistrationSpec{
					ClientID: "id", AnswerKey: key.Public(),
					ClusterLabels: map[string]string{"env": "dev", "fleet.cattle.io/created-by-agent-pod": "pod-1"},
				},
			},
		},
		"an opaque token tells nothing, and a host name that is no label value is left out": {
			change:   func(d map[string]string) { d["token"], d["clusterNamespace"] = "opaque", "w" },
			hostname: "-not a label-",
			want: fleet.ClusterRegistration{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "request-", Namespace: "w"},
				Spec:       fleet.ClusterRegistrationSpec{ClientID: "id", AnswerKey: key.Public(), ClusterLabels: map[string]string{}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := joiner(t, row.change)
			j.Hostname, j.Config.Labels = row.hostname, row.labels
			row.want.Spec.RequestedAt = new(metav1.NewMicroTime(now))
			got := j.request("id", key)
			if diff := cmp.Diff(&row.want, got, cmpopts.IgnoreFields(fleet.ClusterRegistrationSpec{}, "ClientRandom")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			random := got.Spec.ClientRandom
			if !regexp.MustCompile(`^[bcdfghjklmnpqrstvwxz2456789]{37}\.[0-9]{16}$`).MatchString(random) {
				t.Errorf("clientRandom is %q", random)
			}
			if at, timed := credential.NonceTime(random); !timed || !at.Equal(got.Spec.RequestedAt.Time) {
				t.Errorf("clientRandom has the time %s, want that of the request", at)
			}
		})
	}
}

func TestHubsAnswerIsRead(t *testing.T) {
	for name, row := range map[string]struct {
		status fleet.ClusterRegistrationStatus
		sealed string
		done   bool
		said   string
		denied string
	}{
		"nothing yet": {said: "request clusters/r waits for the hub"},
		"pending tells why": {
			status: fleet.ClusterRegistrationStatus{State: "Pending", Reason: "ApprovalRequired", Message: "run muster approve"},
			said:   "request clusters/r is Pending (ApprovalRequired): run muster approve",
		},
		"conflict tells why": {
			status: fleet.ClusterRegistrationStatus{State: fleet.RegistrationConflict, Reason: "HolderAlive", Message: "held by another"},
			said:   "request clusters/r is Conflict (HolderAlive): held by another",
		},
		"denied is final": {
			status: fleet.ClusterRegistrationStatus{State: fleet.RegistrationDenied, Reason: "EmptyClientID", Message: "clientID is empty"},
			done:   true, denied: "the hub denied request clusters/r (EmptyClientID): clientID is empty; this agent sends another request " +
				"when secret ns/fleet-agent-bootstrap or configmap ns/fleet-agent changes",
		},
		"granted has the answer": {
			status: fleet.ClusterRegistrationStatus{State: fleet.RegistrationGranted, Granted: true, Answer: []byte("sealed")},
			done:   true, sealed: "sealed",
		},
		"an upstream hub grants without an answer": {
			status: fleet.ClusterRegistrationStatus{Granted: true, ClusterName: "c"},
			said:   "the hub granted request clusters/r without an answer that this agent can read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			j := joiner(t, nil)
			j.Progress = func(sentence string) { said = sentence }
			w := waiter{Joiner: j, request: &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "r"}}}
			sealed, done, err := w.answer(row.status)
			if string(sealed) != row.sealed || done != row.done || !strings.HasPrefix(said, row.said) || (row.said == "") != (said == "") {
				t.Errorf("got %q, %v, %v, said %q", sealed, done, err, said)
			}
			var refusal *Refusal
			if errors.As(err, &refusal) != (row.denied != "") || refusal != nil && (refusal.Message != row.denied || !refusal.Final) {
				t.Errorf("got %v, want %q", err, row.denied)
			}
		})
	}
}

func TestVerdictsOnARequestAreWorded(t *testing.T) {
	hub, err := hubclient.Dial(hubclient.Target{Server: "https://hub"}, "t", clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	if got := joiner(t, nil).refused(hub, hubclient.NotFound, errors.New("x")); !strings.Contains(got,
		"workspace clusters does not exist on the hub at https://hub: set clusterNamespace") {
		t.Errorf("got %q", got)
	}
}
