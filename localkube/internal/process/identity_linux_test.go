package process

import (
	"strings"
	"testing"
)

func TestParseStartTime(t *testing.T) {
	rest := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	for name, test := range map[string]struct {
		stat string
		want string
	}{
		"a plain name":                          {"12 (sh)" + rest, "4711"},
		"a name with spaces and parentheses":    {"12 (a) b) S)" + rest, "4711"},
		"a process that has ended is not alive": {"12 (sh)" + strings.Replace(rest, "S", "Z", 1), ""},
		"a line that is cut off":                {"12 (sh) S 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStartTime([]byte(test.stat))
			if got != test.want || (err != nil) != (test.want == "") {
				t.Errorf("parseStartTime() = %q, %v; want %q", got, err, test.want)
			}
		})
	}
}
