package placement

import "testing"

func TestOnlyAnotherDefinitionOfAServedKindOutdatesWhatIsKnown(t *testing.T) {
	is := definition{uid: "1", generation: 1, served: true}
	for name, c := range map[string]struct {
		before, now definition
		want        bool
	}{
		"seen for the first time":             {definition{}, is, false},
		"as it was":                           {is, is, false},
		"served at last":                      {definition{uid: "1", generation: 1}, is, false},
		"changed":                             {is, definition{uid: "1", generation: 2, served: true}, true},
		"deleted and made again under a name": {is, definition{uid: "2", generation: 1, served: true}, true},
	} {
		if got := c.now.invalidates(c.before); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
