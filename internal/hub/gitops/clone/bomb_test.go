package clone

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-fleet/muster/internal/repository/scan"
	"github.com/muster-fleet/muster/internal/testgit"
)

// TestALargeFileThatPacksSmallIsRefused: zeros are a thousandth of their length in a pack. The
// other file is read.
func TestALargeFileThatPacksSmallIsRefused(t *testing.T) {
	source := testgit.New(t, "web.git")
	source.Write(map[string]string{"a.yaml": "1", "zeros.yaml": strings.Repeat("\x00", 40<<20)})
	commit := source.Push("main")
	_, address, ca := source.Web("", "")
	r := open(t, address, "main")
	r.CABundle = ca
	if text, err := textOf(t, r, commit, "a.yaml"); err != nil || text != "1" {
		t.Errorf("%q, %v", text, err)
	}
	_, err := textOf(t, r, commit, "zeros.yaml")
	if err == nil || !strings.Contains(err.Error(), "zeros.yaml has 40 MiB, and a Bundle may have 16 MiB") {
		t.Error(err)
	}
}

func TestAFileThatWouldFillTheMemoryIsRefusedBeforeItIsUnpacked(t *testing.T) {
	source := testgit.New(t, "web.git")
	source.Write(map[string]string{"a.yaml": "1", "zeros": strings.Repeat("\x00", maxObject+1)})
	commit := source.Push("main")
	_, address, ca := source.Web("", "")
	r := open(t, address, "main")
	r.CABundle = ca
	if _, err := textOf(t, r, commit, "a.yaml"); err == nil || !strings.Contains(err.Error(), "a file of the commit has more than 64 MiB") {
		t.Error(err)
	}
	source.Write(map[string]string{"zeros": "0"})
	commit = source.Push("main")
	if text, err := textOf(t, r, commit, "a.yaml"); err != nil || text != "1" {
		t.Errorf("without the file: %q, %v", text, err)
	}
}

// TestARepositoryWithTooManyFilesIsRefused: the files are one object, in a hundred directories.
func TestARepositoryWithTooManyFilesIsRefused(t *testing.T) {
	source := testgit.New(t, "web.git")
	files := make([]string, scan.MaxPaths+1)
	for i := range files {
		files[i] = fmt.Sprintf("%03d/%d.yaml", i/1000, i)
	}
	commit := source.PushMany("main", files, "a: 1\n")
	_, address, ca := source.Web("", "")
	r := open(t, address, "main")
	r.CABundle = ca
	err := r.Read(t.Context(), commit, func(scan.Tree) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "the repository has more than 100000 files: divide it") {
		t.Error(err)
	}
}
