package history

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// DenialSettles is the time until a denial enters the history. By then all concurrent denials of
	// its second are in the hub's cache, so the hub counts each exactly once.
	DenialSettles = 5 * time.Second
	// denialPace is the shortest time between two changes of the entry of a cause. The sender of
	// requests causes one write per cause in this time, and the number of causes is fixed.
	denialPace = 10 * time.Minute
)

// Denied adds the denied requests for a Cluster to its history: one entry for each cause, with
// their number. It returns the time when the next denial is due; zero if none is. who returns the
// user behind a denial; "" if unknown.
func Denied(recorded []clusterv1beta1.HistoryEntry, requests []fleet.ClusterRegistration, cluster *fleet.Cluster, now time.Time,
	who func(*fleet.ClusterRegistration) string) (entries []clusterv1beta1.HistoryEntry, due time.Time) {
	entries = recorded
	for cause, denials := range denialsOf(requests, cluster) {
		index := slices.IndexFunc(entries, func(entry clusterv1beta1.HistoryEntry) bool { return entry.Cause == cause })
		entry := clusterv1beta1.HistoryEntry{Reason: clusterv1beta1.HistoryDenied, Cause: cause}
		var next time.Time
		if index >= 0 {
			entry = entries[index]
			next = entry.Last().Add(denialPace)
		}
		fresh := denials[:0]
		for _, r := range denials {
			at := r.Status.DeniedAt.Time
			if index >= 0 && !at.After(entry.Last()) {
				continue
			}
			if wait := latest(next, at.Add(DenialSettles)); now.Before(wait) {
				due = earliest(due, wait)
				continue
			}
			fresh = append(fresh, r)
		}
		if len(fresh) == 0 {
			continue
		}
		entries = slices.Clone(entries)
		if index >= 0 {
			entries = slices.Delete(entries, index, index+1)
		}
		entries = append(entries, counting(entry, fresh, index >= 0, cluster, who))
		slices.SortStableFunc(entries, func(a, b clusterv1beta1.HistoryEntry) int { return a.Last().Compare(b.Last()) })
	}
	return entries, due
}

// denialsOf returns the denied requests for a Cluster, by cause. An older request of the member's
// own agent is no attempt to take it over.
func denialsOf(requests []fleet.ClusterRegistration, cluster *fleet.Cluster) map[string][]*fleet.ClusterRegistration {
	causes := map[string][]*fleet.ClusterRegistration{}
	for i := range requests {
		r := &requests[i]
		at := r.Status.DeniedAt
		if at == nil || r.Status.State != fleet.RegistrationDenied || at.Before(&cluster.CreationTimestamp) {
			continue
		}
		if r.Status.Reason == reasons.Superseded && hasKeyOf(r, cluster) {
			continue
		}
		causes[r.Status.Reason] = append(causes[r.Status.Reason], r)
	}
	return causes
}

// counting returns the entry of a cause with further denials.
func counting(entry clusterv1beta1.HistoryEntry, denials []*fleet.ClusterRegistration, counted bool, cluster *fleet.Cluster,
	who func(*fleet.ClusterRegistration) string) clusterv1beta1.HistoryEntry {
	slices.SortFunc(denials, func(a, b *fleet.ClusterRegistration) int { return a.Status.DeniedAt.Compare(b.Status.DeniedAt.Time) })
	newest, count := denials[len(denials)-1], len(denials)
	if counted {
		count += entry.Changes()
	} else {
		entry.Time = *denials[0].Status.DeniedAt
	}
	entry.Message = kube.Clip(denial(newest, cluster, who), maxMessage-len("..."))
	if count > 1 {
		at := metav1.NewTime(newest.Status.DeniedAt.Time)
		entry.Count, entry.LastTime = int32(count), &at //nolint:gosec // one per request
	}
	return entry
}

// denial describes a denied request: who denied it, and where it came from as far as known.
func denial(r *fleet.ClusterRegistration, cluster *fleet.Cluster, who func(*fleet.ClusterRegistration) string) string {
	verdict := "the hub denied a registration request for the member (" + r.Status.Reason + ")"
	if r.Status.Reason == fleet.ReasonNotApproved {
		verdict = named(who(r)) + " denied a registration request for the member" + membership.DecidedBecause(r)
	}
	from := "no registration token"
	if token := r.Labels[fleet.LabelRegistrationToken]; token != "" {
		from = "registration token " + kube.Clip(token, maxToken)
	}
	key := "no key"
	switch {
	case r.Status.Reason == reasons.InvalidSignature:
		key = "a wrong signature"
	case hasKeyOf(r, cluster):
		key = "the key of the member"
	case len(r.Spec.AgentKey) > 0:
		key = "key " + credential.Fingerprint(r.Spec.AgentKey)
	}
	return fmt.Sprintf("%s; it has %s and %s: ClusterRegistration %s", verdict, key, from, r.Name)
}

// maxToken bounds the name of a token in a message.
const maxToken = 63

// hasKeyOf reports whether a request has the key pinned to a Cluster.
func hasKeyOf(r *fleet.ClusterRegistration, cluster *fleet.Cluster) bool {
	return len(r.Spec.AgentKey) > 0 && credential.Fingerprint(r.Spec.AgentKey) == cluster.Annotations[fleet.AnnotationAgentKey]
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earliest returns the earlier of two times; a zero time does not count.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
