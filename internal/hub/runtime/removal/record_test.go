package removal

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheLastRemovalsAreRecorded(t *testing.T) {
	var all []string
	for i := range mostRecorded {
		all = append(all, fmt.Sprint("uid-", i))
	}
	full := strings.Join(all, " ")
	for name, row := range map[string]struct {
		recorded, uid, want string
		changed             bool
	}{
		"the first":                      {"", "a", "a", true},
		"another":                        {"a b", "c", "a b c", true},
		"one again":                      {"a b", "a", "a b", false},
		"one too many":                   {full, "new", strings.Join(all[1:], " ") + " new", true},
		"one again of as many as may be": {full, "uid-0", full, false},
	} {
		if got, changed := record(row.recorded, row.uid); got != row.want || changed != row.changed {
			t.Errorf("%s: %q, %t", name, got, changed)
		}
	}
}
