package chartfetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// archived is an archive with files of zeros, by their sizes.
func archived(t *testing.T, sizes ...int64) []byte {
	t.Helper()
	return tarball(t, func(files *tar.Writer) error {
		for i, size := range sizes {
			if err := files.WriteHeader(&tar.Header{Name: fmt.Sprintf("web/%d", i), Mode: 0o644, Size: size}); err != nil {
				return err
			}
			if _, err := io.CopyN(files, zeros{}, size); err != nil {
				return err
			}
		}
		return nil
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestAnArchiveThatWouldFillTheMemoryIsRefused(t *testing.T) {
	for name, row := range map[string]struct {
		data []byte
		// most is the maximum of allocated bytes, garbage included.
		most uint64
	}{
		"one large file":      {archived(t, MaxUnpacked+1), 16 << 20},
		"many files":          {archived(t, MaxUnpacked/2, MaxUnpacked/2, 1), 16 << 20},
		"many empty files":    {archived(t, make([]int64, MaxUnpacked/512)...), 512 << 20}, // a header takes a few KiB for a moment
		"a hole of 1,000 GiB": {sparse(t, 1000<<30), 16 << 20},
	} {
		before := allocated()
		_, _, err := (&Archive{Data: row.data, From: "web"}).Files()
		if err == nil || !strings.Contains(err.Error(), "unpacking chart web: its files have more than 32 MiB unpacked") {
			t.Errorf("%s: %v", name, err)
		}
		if used := allocated() - before; used > row.most {
			t.Errorf("%s: %d MiB are allocated before the refusal", name, used>>20)
		}
	}
	unpacked, err := (&Archive{Data: archived(t, MaxUnpacked-4096), From: "web"}).Unpack()
	if err != nil || len(unpacked) != 1 {
		t.Errorf("just below the limit: %d files, %v", len(unpacked), err)
	}
}

// sparse is an archive with a file that is a hole, as GNU tar writes it.
func sparse(t *testing.T, size int64) []byte {
	t.Helper()
	// The reader of archives takes the map of the file from these attributes. The writer refuses them
	// by their names.
	packed := tarball(t, func(files *tar.Writer) error {
		return files.WriteHeader(&tar.Header{Name: "web/hole", Mode: 0o644, Format: tar.FormatPAX, PAXRecords: map[string]string{
			"XXX.sparse.major": "0", "XXX.sparse.minor": "1", "XXX.sparse.size": fmt.Sprint(size),
			"XXX.sparse.numblocks": "1", "XXX.sparse.map": fmt.Sprintf("%d,0", size),
		}})
	})
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	zipped := gzip.NewWriter(&again)
	_, err = zipped.Write(bytes.ReplaceAll(plain, []byte("XXX."), []byte("GNU.")))
	if err := errors.Join(err, zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return again.Bytes()
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

func TestAChartWithAnExpensiveChartYAMLIsRefused(t *testing.T) {
	data := packedFiles(t, [2]string{"web/Chart.yaml", "version: 1.0.0\nkeywords: [" + strings.Repeat("[],", 200_000) + "]\n"})
	_, _, err := (&Archive{Data: data, From: "web"}).Files()
	if err == nil || !strings.Contains(err.Error(), "chart web: Chart.yaml: the document that begins at line 1: it has up to") {
		t.Error(err)
	}
}
