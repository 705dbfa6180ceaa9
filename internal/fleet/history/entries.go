package history

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// gatherPeriod is the longest time between two changes of a kind in one entry.
const gatherPeriod = time.Hour

// Append returns the history with further changes. A change joins the entry of its kind if the last
// change there is less than an hour old. Above the maximum, the oldest entry of the most frequent
// kind is dropped: a flapping member does not displace its revocation. Entries about denied
// requests stay, and do not count: the sender of requests does not displace any change.
func Append(recorded []clusterv1beta1.HistoryEntry, changes []Change, now time.Time) []clusterv1beta1.HistoryEntry {
	if len(changes) == 0 {
		return recorded
	}
	entries := slices.Clone(recorded)
	for _, change := range changes {
		at := metav1.NewTime(now.Truncate(time.Second)) // as the API server stores it
		index := lastOf(entries, change.Reason)
		if index < 0 || !now.Before(entries[index].Last().Add(gatherPeriod)) {
			entries = append(entries, clusterv1beta1.HistoryEntry{Time: at, Reason: change.Reason, Message: change.Message})
			continue
		}
		entry := entries[index]
		entry.Count, entry.LastTime, entry.Message = int32(entry.Changes()+1), &at, change.Message //nolint:gosec // one per change
		entries = append(slices.Delete(entries, index, index+1), entry)
	}
	for changes := counted(entries); changes > clusterv1beta1.MaxHistory; changes-- {
		index := surplus(entries)
		entries = slices.Delete(entries, index, index+1)
	}
	return entries
}

// counted returns the number of entries under the maximum.
func counted(entries []clusterv1beta1.HistoryEntry) (number int) {
	for i := range entries {
		if entries[i].Cause == "" {
			number++
		}
	}
	return number
}

// lastOf returns the index of the newest entry of a reason, or -1. The entries are in the order of
// their last changes.
func lastOf(entries []clusterv1beta1.HistoryEntry, reasons ...clusterv1beta1.HistoryReason) int {
	for i := range slices.Backward(entries) {
		if slices.Contains(reasons, entries[i].Reason) {
			return i
		}
	}
	return -1
}

// newest returns the reason of the newest entry with one of the reasons; "" if there is none.
func newest(entries []clusterv1beta1.HistoryEntry, reasons ...clusterv1beta1.HistoryReason) clusterv1beta1.HistoryReason {
	if index := lastOf(entries, reasons...); index >= 0 {
		return entries[index].Reason
	}
	return ""
}

// surplus returns the index of the entry to drop: the oldest one of the kind with the most entries.
func surplus(entries []clusterv1beta1.HistoryEntry) int {
	counts := map[clusterv1beta1.HistoryReason]int{}
	for i := range entries {
		if entries[i].Cause == "" {
			counts[entries[i].Reason]++
		}
	}
	found := -1
	for i := range entries {
		if entries[i].Cause == "" && (found < 0 || counts[entries[i].Reason] > counts[entries[found].Reason]) {
			found = i
		}
	}
	return found
}
