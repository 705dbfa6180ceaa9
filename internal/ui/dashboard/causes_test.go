package dashboard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMembersAreGroupedByTheirProblem(t *testing.T) {
	targets := []target{
		{Name: "w/a", Path: "/members/w/a", State: "ErrApplied", Text: "quota"}, {Name: "w/b", Path: "/members/w/b", State: "Ready"},
		{Name: "w/c", State: "NotReady", Text: "w/c is not ready"}, {Name: "w/d", State: "NotReady", Text: "w/d is not ready"},
		{Name: "w/e", State: "NotReady", Text: "w/e is not ready"}, {Name: "w/f", Path: "/members/w/f", State: "ErrApplied", Text: "quota"},
		{Name: "w/g", State: "ErrApplied", Text: "a single one"},
	}
	want := []sharedCause{
		{State: "NotReady", Text: "the member is not ready", Count: 3, Members: []link{{Name: "w/c"}, {Name: "w/d"}, {Name: "w/e"}}},
		{State: "ErrApplied", Text: "quota", Count: 2, Members: []link{{"w/a", "/members/w/a"}, {"w/f", "/members/w/f"}}},
	}
	if diff := cmp.Diff(want, causesOf(targets)); diff != "" {
		t.Error(diff)
	}
}
