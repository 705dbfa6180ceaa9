package yamlcheck

import (
	"bytes"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// FuzzCheck splits and measures YAML of strangers. No byte is lost, and a parser survives each
// accepted text.
func FuzzCheck(f *testing.F) {
	f.Add([]byte("a: &a [x]\nb: *a\n---\n# c\n...\n%YAML 1.2\n---\nd\n"))
	f.Add([]byte("&a [*a]"))
	f.Add([]byte("a: &a {<<: *a}\n"))
	f.Add(bytes.Repeat([]byte("["), 20_000))
	f.Fuzz(func(t *testing.T, text []byte) {
		if joined := slices.Concat(slices.Collect(Documents(text))...); !bytes.Equal(joined, text) {
			t.Errorf("%q becomes %q", text, joined)
		}
		if Check(text) == nil {
			var value any
			_ = yaml.Unmarshal(text, &value)
		}
	})
}
