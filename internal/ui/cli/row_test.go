package cli

import (
	"testing"
	"time"

	"github.com/muster-fleet/muster/internal/ui/view"
)

func TestEachKindHasRowsAsWideAsItsTable(t *testing.T) {
	h := newAccess()
	for _, k := range kinds {
		for _, list := range k.lists("") {
			o, err := h.emptyOf(list)
			if err != nil {
				t.Fatal(err)
			}
			if row := view.Row(o, time.Now()); len(row) != len(k.columns) {
				t.Errorf("%s: %d columns of %T, %d in the table", k.name, len(row), o, len(k.columns))
			}
		}
	}
}
