package delivery

import (
	"strings"
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestAComparePatchNamesObjectsByPattern(t *testing.T) {
	for pattern, names := range map[string]map[string]bool{
		"":              {"app-1": true, "": true},
		"app-1":         {"app-1": true, "app-12": false, "my-app-1": false},
		"app.1":         {"app.1": true, "app-1": false},
		"app-.*":        {"app-1": true, "app-": true, "my-app-1": false, "app": false},
		"app-[0-9]+":    {"app-12": true, "app-x": false, "app-1-x": false},
		"a|b":           {"a": true, "b": true, "ab": false},
		"^app-1$":       {"app-1": true, "app-11": false},
		"system:(a|b).": {"system:ax": true, "system:a": false},
		"app-(":         {"app-(": true, "app-1": false},
		"x)|(?:.*":      {"app-1": false, "x": false},
	} {
		for name, want := range names {
			if got := MatchesName(fleet.ComparePatch{Name: pattern}, name); got != want {
				t.Errorf("%q matches %q: %t", pattern, name, got)
			}
		}
	}
	diff := &fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{{Name: "app-.*"}, {Name: "app-("}}}
	if err := CheckComparePatches(diff); err == nil || !strings.Contains(err.Error(), `diff.comparePatches[1].name "app-("`) {
		t.Errorf("it says %v", err)
	}
	diff.ComparePatches = diff.ComparePatches[:1]
	for _, right := range []*fleet.DiffOptions{nil, diff} {
		if err := CheckComparePatches(right); err != nil {
			t.Error(err)
		}
	}
}
