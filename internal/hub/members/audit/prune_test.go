package audit

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// entry is one that is so many hours old.
func entry(name string, hours int, reason v1alpha1.AuditReason, token string) *v1alpha1.AuditEntry {
	return &v1alpha1.AuditEntry{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AuditEntrySpec{
		Time: metav1.NewTime(noon.Add(-time.Duration(hours) * time.Hour)), Reason: reason, Token: token,
	}}
}

func TestOldAndSurplusEntriesGo(t *testing.T) {
	granted := func(name string, hours int) *v1alpha1.AuditEntry {
		return entry(name, hours, v1alpha1.AuditGranted, "a")
	}
	for _, c := range []struct {
		name    string
		entries []*v1alpha1.AuditEntry
		most    settings.Audit
		remove  []string
		next    time.Duration
	}{
		{"none", nil, settings.Audit{MaxAge: time.Hour, MaxEntries: 1}, nil, 0},
		{
			"the oldest decides when to look again", []*v1alpha1.AuditEntry{granted("new", 1), granted("old", 3)},
			settings.Audit{MaxAge: 5 * time.Hour, MaxEntries: 2}, nil, 2 * time.Hour,
		},
		{
			"one of just that age goes", []*v1alpha1.AuditEntry{granted("new", 1), granted("old", 5)},
			settings.Audit{MaxAge: 5 * time.Hour, MaxEntries: 2}, []string{"old"}, 4 * time.Hour,
		},
		{"without an age none is too old", []*v1alpha1.AuditEntry{granted("old", 5000)}, settings.Audit{MaxEntries: 2}, nil, 0},
		{
			"of too many the oldest goes", []*v1alpha1.AuditEntry{granted("b", 2), granted("a", 3), granted("c", 1)},
			settings.Audit{MaxEntries: 2}, []string{"a"}, 0,
		},
		{
			"of the same second the first by name", []*v1alpha1.AuditEntry{granted("b", 2), granted("a", 2)},
			settings.Audit{MaxEntries: 1}, []string{"a"}, 0,
		},
		{
			"what is too old makes room", []*v1alpha1.AuditEntry{granted("a", 9), granted("b", 2)},
			settings.Audit{MaxAge: 5 * time.Hour, MaxEntries: 1}, []string{"a"}, 3 * time.Hour,
		},
		{
			"with auditing off what is there goes by age", []*v1alpha1.AuditEntry{granted("a", 9), granted("b", 2)},
			settings.Audit{MaxAge: 5 * time.Hour}, []string{"a"}, 3 * time.Hour,
		},
		{
			"one token's grants push out neither another's nor what is not a grant",
			[]*v1alpha1.AuditEntry{
				entry("displaced", 9, v1alpha1.AuditDisplaced, "a"), entry("other", 8, v1alpha1.AuditGranted, "b"),
				entry("revoked", 7, v1alpha1.AuditRevoked, ""),
				granted("1", 3), granted("2", 2), granted("3", 1),
			},
			settings.Audit{MaxEntries: 4}, []string{"1", "2"}, 0,
		},
	} {
		before := fmt.Sprint(c.entries)
		remove, next := expired(c.entries, c.most, noon)
		var names []string
		for _, one := range remove {
			names = append(names, one.Name)
		}
		if diff := cmp.Diff(c.remove, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if want := noon.Add(c.next); c.next == 0 && !next.IsZero() || c.next != 0 && !next.Equal(want) {
			t.Errorf("%s: looks again at %s", c.name, next)
		}
		if fmt.Sprint(c.entries) != before {
			t.Errorf("%s: the list was changed, which is the cache's", c.name)
		}
	}
}

// TestAFloodOfGrantsPushesOutNothingElse keeps a namespace full as grants of one token arrive.
func TestAFloodOfGrantsPushesOutNothingElse(t *testing.T) {
	most := settings.Audit{MaxEntries: 100}
	var kept []*v1alpha1.AuditEntry
	for i := range 20 {
		kept = append(kept, entry(fmt.Sprintf("displaced-%d", i), 100+i, v1alpha1.AuditDisplaced, "flooding"),
			entry(fmt.Sprintf("good-%d", i), 100+i, v1alpha1.AuditGranted, "good"))
	}
	for i := range 1000 {
		flood := entry(fmt.Sprintf("flood-%d", i), 0, v1alpha1.AuditGranted, "flooding")
		flood.Spec.Time = metav1.NewTime(noon.Add(time.Duration(i) * time.Second))
		kept = append(kept, flood)
		remove, _ := expired(kept, most, noon)
		gone := map[string]bool{}
		for _, one := range remove {
			gone[one.Name] = true
		}
		var left []*v1alpha1.AuditEntry
		for _, one := range kept {
			if !gone[one.Name] {
				left = append(left, one)
			}
		}
		kept = left
	}
	counts := map[string]int{}
	for _, one := range kept {
		counts[one.Spec.Token+" "+string(one.Spec.Reason)]++
	}
	if diff := cmp.Diff(map[string]int{"flooding Displaced": 20, "good Granted": 20, "flooding Granted": 60}, counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManyTokensPushOutNothingButGrants has a tenant with as many tokens as there is room for
// entries, each with one grant.
func TestManyTokensPushOutNothingButGrants(t *testing.T) {
	const room = 100
	var entries []*v1alpha1.AuditEntry
	for i := range 20 {
		entries = append(entries, entry(fmt.Sprintf("revoked-%d", i), 100+i, v1alpha1.AuditRevoked, ""),
			entry(fmt.Sprintf("displaced-%d", i), 100+i, v1alpha1.AuditDisplaced, "good"))
	}
	for i := range 200 {
		entries = append(entries, entry(fmt.Sprintf("granted-%d", i), i, v1alpha1.AuditGranted, fmt.Sprint(i)))
	}
	counts := func(entries []*v1alpha1.AuditEntry, room int) map[v1alpha1.AuditReason]int {
		left := map[v1alpha1.AuditReason]int{}
		for _, one := range entries {
			left[one.Spec.Reason]++
		}
		remove, _ := expired(entries, settings.Audit{MaxEntries: room}, noon)
		for _, one := range remove {
			left[one.Spec.Reason]--
		}
		return left
	}
	want := map[v1alpha1.AuditReason]int{v1alpha1.AuditRevoked: 20, v1alpha1.AuditDisplaced: 20, v1alpha1.AuditGranted: room - 40}
	if diff := cmp.Diff(want, counts(entries, room)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left := counts(entries, 10)[v1alpha1.AuditRevoked]; left != 10 {
		t.Errorf("%d revocations are kept where there is room for 10 entries", left)
	}
}
