package bundle

import (
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// TestOnlyOtherNamesOfCopiesAreLookedFor spares lists of copies when only their content changes.
func TestOnlyOtherNamesOfCopiesAreLookedFor(t *testing.T) {
	one := []fleet.DownstreamResource{{Kind: kindSecret, Name: "a"}}
	other := []fleet.DownstreamResource{{Kind: kindConfigMap, Name: "a"}}
	first := copiesGeneration(one, naming.Digest("first"))
	for what, row := range map[string]struct {
		before, after int64
		differs       bool
	}{
		"no copies before":          {0, first, false},
		"other content":             {first, copiesGeneration(one, naming.Digest("second")), false},
		"another kind":              {first, copiesGeneration(other, naming.Digest("first")), true},
		"no copies any more":        {first, 0, true},
		"the same, of another hub":  {first, first, false},
		"a number of Rancher Fleet": {2, first, true},
	} {
		if got := otherCopies(row.before, row.after); got != row.differs {
			t.Errorf("%s: %t", what, got)
		}
	}
	if first >= 1<<53 {
		t.Errorf("JSON rounds %d", first)
	}
}
