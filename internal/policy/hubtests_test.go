package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEachTestOfTheHubHasAnArea compares the files of internal/hub/test with its index.
func TestEachTestOfTheHubHasAnArea(t *testing.T) {
	dir := filepath.Join("..", "hub", "test")
	index, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(index), "| --- | --- |")
	used := map[string]bool{}
	for _, quoted := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(table, -1) {
		used[quoted[1]] = false
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), "_test.go")
		prefix := name
		for {
			if _, listed := used[prefix]; listed {
				used[prefix] = true
				break
			}
			cut := strings.LastIndexByte(prefix, '_')
			if cut < 0 {
				t.Errorf("no area in internal/hub/test/README.md has a file that begins with %s: add %q", name, strings.Split(name, "_")[0])
				break
			}
			prefix = prefix[:cut]
		}
	}
	for prefix, found := range used {
		if !found {
			t.Errorf("internal/hub/test/README.md names %s, and no file begins with it", prefix)
		}
	}
}
