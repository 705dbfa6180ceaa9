package policy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// list is a file of names with the number of faults that each may have. The numbers may only
// shrink.
type list struct{ file, what, remedy string }

// check compares the found numbers of faults with the list. It reports the first fault of a name
// with too many, and a name with fewer faults than listed.
func (l list) check(t *testing.T, found map[string]int, first map[string]string) {
	t.Helper()
	if os.Getenv("MUSTER_LISTS") == "write" {
		l.write(t, found)
	}
	listed := l.read(t)
	for name, count := range found {
		if count > listed[name] {
			t.Errorf("%s: %d %s, want at most %d: %s", first[name], count, l.what, listed[name], l.remedy)
		}
	}
	for name, count := range listed {
		if found[name] < count {
			t.Errorf("%s: %d %s, and the list has %d: run MUSTER_LISTS=write go test ./internal/policy", name, found[name], l.what, count)
		}
	}
}

func (l list) read(t *testing.T) map[string]int {
	t.Helper()
	listed := map[string]int{}
	for line := range strings.Lines(string(read(t, l.file))) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		count, err := strconv.Atoi(number)
		if err != nil {
			t.Fatalf("%s: %v", l.file, err)
		}
		listed[name] = count
	}
	return listed
}

func (l list) write(t *testing.T, found map[string]int) {
	t.Helper()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&text, "%s %d\n", name, found[name])
	}
	if err := os.WriteFile(filepath.Join(root, l.file), []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
