package gitops

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatAKilledProcessLeftIsRemoved(t *testing.T) {
	top := t.TempDir()
	left, others := filepath.Join(top, "commits", "clone-1"), filepath.Join(top, "other")
	for _, directory := range []string{left, others} {
		if err := os.MkdirAll(directory, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	commits, err := emptied(top)
	if err != nil || commits != filepath.Join(top, "commits") {
		t.Fatalf("%s, %v", commits, err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
	if _, err := os.Stat(others); err != nil {
		t.Errorf("another directory: %v", err)
	}
	if commits, err := emptied(""); err != nil || commits != "" {
		t.Errorf("%s, %v", commits, err)
	}
}
