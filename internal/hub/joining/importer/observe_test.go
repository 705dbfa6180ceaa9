package importer

import "testing"

func TestAKubeconfigOfARestoredHubIsLookedAtAgain(t *testing.T) {
	for _, c := range []struct {
		name, seen, used string
		changed          bool
	}{
		{"there is no Secret", "", "100", false},
		{"the Secret that was used", "100", "100", false},
		{"a newer one", "101", "100", true},
		{"one that was restored into a new etcd, and changed there", "7", "100", true},
		{"a hub of an earlier version wrote no version", "7", "", true},
	} {
		if got := secretChanged(c.seen, c.used); got != c.changed {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
