package naming

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzNames derives names from texts of other systems. Each is a name that Kubernetes and Helm
// accept, and stays as it is when it is derived again.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"", "repo/apps/Web_1", "a.b", "-", "ÄÖ/ü", "a" + strings.Repeat("-", maxName) + "b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for what, derive := range map[string]func(string) string{"Release": Release, "CleanCluster": CleanCluster} {
			name := derive(text)
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
				t.Errorf("%s(%q) is %q: %v", what, text, name, problems)
			}
			if again := derive(name); again != name {
				t.Errorf("%s(%q) is %q", what, name, again)
			}
		}
		if name := Release(text); len(name) > maxReleaseName {
			t.Errorf("Release(%q) has %d characters", text, len(name))
		}
	})
}
