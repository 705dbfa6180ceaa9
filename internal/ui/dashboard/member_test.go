package dashboard

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestLittleMemoryIsNotShownAsNone(t *testing.T) {
	for of, want := range map[string]string{
		"0": "0", "10m": "10m", "48Mi": "48 MiB", "1023Mi": "1023 MiB", "1Gi": "1.0 GiB", "24068Mi": "23.5 GiB",
	} {
		if got := readable(resource.MustParse(of)); got != want {
			t.Errorf("%s: %s, want %s", of, got, want)
		}
	}
}
