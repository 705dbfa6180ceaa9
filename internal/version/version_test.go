package version

import "testing"

func TestAVersionIsOneThatHelmTakes(t *testing.T) {
	for described, want := range map[string]string{
		"v1.2.3": "1.2.3", "1.2.3": "1.2.3", "v0.1.0-5-gabc1234": "0.1.0-5-gabc1234", "75d8a85": "0.0.0-g75d8a85",
		"0123456-dirty": "0.0.0-g0123456-dirty",
	} {
		if got := Semantic(described); got != want {
			t.Errorf("%s: %s, not %s", described, got, want)
		}
	}
}
