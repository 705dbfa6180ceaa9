package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// pinned returns a Cluster with the key of its agent.
func pinned() (*fleet.Cluster, []byte) {
	key := []byte("the public key of the member")
	cluster := marks(map[string]string{fleet.AnnotationAgentKey: credential.Fingerprint(key)})
	cluster.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
	return cluster, key
}

func deniedFor(name, reason string, key []byte, at time.Time) fleet.ClusterRegistration {
	r := fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{fleet.LabelRegistrationToken: "web"}},
		Spec:       fleet.ClusterRegistrationSpec{AgentKey: key},
	}
	at = at.Truncate(time.Second) // as the API server stores it
	r.Status = fleet.ClusterRegistrationStatus{State: fleet.RegistrationDenied, Reason: reason, DeniedAt: &metav1.Time{Time: at}}
	return r
}

func unknownUser(*fleet.ClusterRegistration) string { return "" }

// TestDeniedRequestsHaveOneEntryPerCause compares the entries about one denial of each kind.
func TestDeniedRequestsHaveOneEntryPerCause(t *testing.T) {
	cluster, own := pinned()
	other, at := []byte("another key"), noon.Add(-time.Minute)
	before := deniedFor("earlier", reasons.TokenExpired, other, noon.Add(-2*time.Hour))
	old := deniedFor("old", reasons.TokenExpired, other, at)
	old.Status.DeniedAt = nil // by an earlier hub
	granted := deniedFor("granted", reasons.Granted, own, at)
	granted.Status.State = fleet.RegistrationGranted
	refused := deniedFor("refused", fleet.ReasonNotApproved, other, at.Add(2*time.Second))
	refused.Annotations = map[string]string{fleet.AnnotationApprovalReason: "not ours"}
	bare := deniedFor("bare", reasons.TokenUnknown, nil, at.Add(3*time.Second))
	bare.Labels = nil
	entries, due := Denied(nil, []fleet.ClusterRegistration{
		deniedFor("forged", reasons.InvalidSignature, own, at), deniedFor("forged-again", reasons.InvalidSignature, own, at.Add(time.Second)),
		deniedFor("restarted", reasons.Superseded, own, at), deniedFor("copy", reasons.Replayed, own, at.Add(4*time.Second)),
		refused, bare, before, old, granted,
	}, cluster, noon, func(*fleet.ClusterRegistration) string { return "jane" })
	var got []string
	for i := range entries {
		if entries[i].Reason != clusterv1beta1.HistoryDenied {
			t.Errorf("entry %+v is no denial", entries[i])
		}
		got = append(got, fmt.Sprintf("%s x%d: %s", entries[i].Cause, entries[i].Changes(), entries[i].Message))
	}
	print := credential.Fingerprint(other)
	if diff := cmp.Diff([]string{
		"InvalidSignature x2: the hub denied a registration request for the member (InvalidSignature); it has a wrong signature and " +
			"registration token web: ClusterRegistration forged-again",
		"NotApproved x1: jane denied a registration request for the member (not ours); it has key " + print + " and registration token web: " +
			"ClusterRegistration refused",
		"TokenUnknown x1: the hub denied a registration request for the member (TokenUnknown); it has no key and no registration token: " +
			"ClusterRegistration bare",
		"Replayed x1: the hub denied a registration request for the member (Replayed); it has the key of the member and registration token " +
			"web: ClusterRegistration copy",
	}, got); diff != "" || !due.IsZero() {
		t.Errorf("due %s (-want +got):\n%s", due, diff)
	}
	again, _ := Denied(entries, []fleet.ClusterRegistration{refused, bare}, cluster, noon.Add(time.Hour), unknownUser)
	if diff := cmp.Diff(entries, again); diff != "" {
		t.Errorf("the same denials count again: %s", diff)
	}
}

// TestALoopOfDeniedRequestsIsCountedInFewWrites sends a thousand requests, one each second, to a
// member with a full history.
func TestALoopOfDeniedRequestsIsCountedInFewWrites(t *testing.T) {
	cluster, _ := pinned()
	var entries []clusterv1beta1.HistoryEntry
	for i := range clusterv1beta1.MaxHistory {
		reason := Reasons[3+i%3]
		entries = append(entries, clusterv1beta1.HistoryEntry{Time: metav1.NewTime(noon.Add(time.Duration(i-50) * time.Hour)), Reason: reason})
	}
	full := entries
	const requests = 1000
	var sent []fleet.ClusterRegistration
	writes, now := 0, noon
	for second := range requests + 700 {
		now = noon.Add(time.Duration(second) * time.Second)
		if second < requests {
			sent = append(sent, deniedFor(fmt.Sprint("r", second), reasons.InvalidSignature, []byte("thief"), now))
		}
		after, due := Denied(entries, sent, cluster, now, unknownUser)
		if after = Append(after, nil, now); cmp.Diff(entries, after) != "" {
			writes++
		}
		if entries = after; second == requests-1 && due.IsZero() {
			t.Error("requests are left, and nothing wakes the hub")
		}
	}
	last := entries[len(entries)-1]
	if writes > 3 || last.Changes() != requests || last.Last() != noon.Add((requests-1)*time.Second) || last.Time.Time != noon {
		t.Errorf("%d writes have led to %+v", writes, last)
	}
	if diff := cmp.Diff(full, entries[:len(entries)-1]); diff != "" || len(entries) != clusterv1beta1.MaxHistory+1 {
		t.Errorf("the denials displaced changes (-want +got):\n%s", diff)
	}
	entries = Append(entries, []Change{{Reason: clusterv1beta1.HistoryRevoked, Message: "revoked"}}, now)
	if len(entries) != clusterv1beta1.MaxHistory+1 || !strings.Contains(fmt.Sprint(entries), string(clusterv1beta1.HistoryDenied)) {
		t.Errorf("a change of a full history leads to %v", entries)
	}
}

// TestADenialIsCountedAfterItsSecond sends two requests in one second. The hub sees the second one
// later.
func TestADenialIsCountedAfterItsSecond(t *testing.T) {
	cluster, _ := pinned()
	one, two := deniedFor("one", reasons.TokenExpired, nil, noon), deniedFor("two", reasons.TokenExpired, nil, noon)
	entries, due := Denied(nil, []fleet.ClusterRegistration{one}, cluster, noon.Add(time.Second), unknownUser)
	if len(entries) > 0 || due != noon.Add(DenialSettles) {
		t.Fatalf("a second later: %v, due %s", entries, due)
	}
	entries, _ = Denied(nil, []fleet.ClusterRegistration{one, two}, cluster, due, unknownUser)
	if len(entries) != 1 || entries[0].Changes() != 2 {
		t.Errorf("the entries are %v", entries)
	}
}
