package nearest

import "testing"

func TestTheNearestNameIsSuggested(t *testing.T) {
	names := []string{"clusters/web", "edge-1", "clusters/database"}
	for name, want := range map[string]string{
		"wbe": "clusters/web", "clusters/wep": "clusters/web", "edge1": "edge-1", "databases": "clusters/database", "x": "", "production": "",
	} {
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		if got := Question(name, names); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
