package naming

import (
	"strings"
	"testing"
)

// TestReleaseNamesAreThoseOfUpstream has the vector of the wire facts, and what
// follows from their rule.
func TestReleaseNamesAreThoseOfUpstream(t *testing.T) {
	for _, c := range []struct{ name, deployment, want string }{
		{"a plain one", "web", "web"},
		{"one with dots", "dotted.name.v1", "dotted-name-v1-9fca4717"},
		{"one with double dashes", "a--b", "a-b"},
		{"one with slashes", "a/b", "a-b"},
		{"one with upper case", "Web", "web-c6e190b2"},
		{"one with upper case behind a slash", "a/B", "a-b-0c0b5638"},
		{"one with several strange characters", "Web_1.2", "web-1-2-66a4eb33"},
		{"one with dashes at its ends", "-web-", "web"},
		{"one that just fits", strings.Repeat("a", 53), strings.Repeat("a", 53)},
		{"one that is too long", strings.Repeat("a", 54), strings.Repeat("a", 47) + "-eced9"},
		{"a long one with a dash where it is cut", strings.Repeat("a", 46) + "-" + strings.Repeat("b", 10), strings.Repeat("a", 46) + "-feb21"},
		{"a long one with a dot", "a." + strings.Repeat("b", 60), "a-" + strings.Repeat("b", 45) + "-f1b02"},
		{"one of which only the digest is left", "...", "2f43b42f"},
		{"one of which nothing is left", "---", "9efc314b65237d5d646e1b81"},
		{"a slash", "/", "6666cd76f96956469e7be39d"},
	} {
		if got := Release(c.deployment); got != c.want || len(got) > maxReleaseName {
			t.Errorf("%s: got %q (%d characters), want %q", c.name, got, len(got), c.want)
		}
	}
}
