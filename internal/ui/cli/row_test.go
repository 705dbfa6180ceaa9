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

func TestSuggestions(t *testing.T) {
	names := []string{"clusters/web", "edge-1", "clusters/database"}
	for name, want := range map[string]string{
		"wbe": "clusters/web", "clusters/wep": "clusters/web", "edge1": "edge-1", "databases": "clusters/database", "x": "", "production": "",
	} {
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		if got := suggestion(name, names); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
