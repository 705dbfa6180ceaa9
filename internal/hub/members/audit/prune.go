package audit

import (
	"slices"
	"time"

	"github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

// group identifies entries that compete for space: entries of one reason, by requests of one token.
type group struct {
	reason v1alpha1.AuditReason
	token  string
}

// expired returns the entries of a namespace to delete, and the time when the next entry becomes
// too old; zero if none ever does.
//
// Above the number, the hub deletes the oldest entry of the largest group. The holder of a token
// may register without end, but displaces only entries about this token. Grants to other tokens,
// displacements, approvals and revocations stay. A tenant can create many tokens, so all grants
// together get half of the room. Revocations are deleted last.
func expired(entries []*v1alpha1.AuditEntry, most settings.Audit, now time.Time) (remove []*v1alpha1.AuditEntry, next time.Time) {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b *v1alpha1.AuditEntry) int {
		if c := a.Spec.Time.Compare(b.Spec.Time.Time); c != 0 {
			return c
		}
		return compareNames(a, b)
	})
	groups := map[group][]*v1alpha1.AuditEntry{}
	left := 0
	for _, entry := range entries {
		if most.MaxAge > 0 && !now.Before(entry.Spec.Time.Add(most.MaxAge)) {
			remove = append(remove, entry)
			continue
		}
		of := group{entry.Spec.Reason, entry.Spec.Token}
		groups[of] = append(groups[of], entry)
		left++
	}
	// With a limit of 0 the hub writes no more entries; existing entries go by age.
	for ; most.MaxEntries > 0 && left > most.MaxEntries; left-- {
		of := largest(contenders(groups, most.MaxEntries))
		remove = append(remove, groups[of][0])
		groups[of] = groups[of][1:]
	}
	if most.MaxAge == 0 {
		return remove, next
	}
	for _, of := range groups {
		if len(of) > 0 {
			next = kube.Earlier(next, of[0].Spec.Time.Add(most.MaxAge))
		}
	}
	return remove, next
}

// contenders returns the groups to take an entry from. These are the groups of the reason with the
// most entries, if it exceeds its part of the room; else all groups. Revocations lose entries only
// if there are no others.
func contenders(groups map[group][]*v1alpha1.AuditEntry, room int) map[group][]*v1alpha1.AuditEntry {
	const part = 2
	counts := map[v1alpha1.AuditReason]int{}
	for of, entries := range groups {
		counts[of.reason] += len(entries)
	}
	var most v1alpha1.AuditReason
	others := 0
	for reason, count := range counts {
		if reason == v1alpha1.AuditRevoked {
			continue
		}
		others += count
		if count > room/part && count > counts[most] {
			most = reason
		}
	}
	found := map[group][]*v1alpha1.AuditEntry{}
	for of, entries := range groups {
		if of.reason == most || most == "" && (of.reason != v1alpha1.AuditRevoked || others == 0) {
			found[of] = entries
		}
	}
	return found
}

// largest returns the largest group; among equals, the group with the oldest entry.
func largest(groups map[group][]*v1alpha1.AuditEntry) group {
	var found group
	for of, entries := range groups {
		have := groups[found]
		if len(entries) > len(have) || len(entries) == len(have) && len(entries) > 0 && older(entries[0], have[0]) {
			found = of
		}
	}
	return found
}

func older(a, b *v1alpha1.AuditEntry) bool {
	if c := a.Spec.Time.Compare(b.Spec.Time.Time); c != 0 {
		return c < 0
	}
	return compareNames(a, b) < 0
}

func compareNames(a, b *v1alpha1.AuditEntry) int {
	switch {
	case a.Name < b.Name:
		return -1
	case a.Name > b.Name:
		return 1
	}
	return 0
}
