package clone

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/muster-fleet/muster/internal/repository/scan"
	"github.com/muster-fleet/muster/internal/testgit"
)

// traffic counts the requests to a server, and the bytes of its answers.
type traffic struct{ requests, bytes atomic.Int64 }

// of counts the traffic of a handler.
func (t *traffic) of(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		t.requests.Add(1)
		handler.ServeHTTP(&metered{w, t}, request)
	})
}

// during returns the requests and bytes of a function.
func (t *traffic) during(do func()) (requests, bytes int64) {
	requests, bytes = t.requests.Load(), t.bytes.Load()
	do()
	return t.requests.Load() - requests, t.bytes.Load() - bytes
}

type metered struct {
	http.ResponseWriter
	of *traffic
}

func (m *metered) Write(p []byte) (int, error) {
	m.of.bytes.Add(int64(len(p)))
	return m.ResponseWriter.Write(p)
}

// noise returns text that nothing compresses.
func noise(t *testing.T, bytes int) string {
	t.Helper()
	data := make([]byte, bytes/2)
	if _, err := rand.Read(data); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(data)
}

// textOf reads a file of a commit.
func textOf(t *testing.T, r *Repository, commit, file string) (text string, err error) {
	t.Helper()
	err = r.Read(t.Context(), commit, func(tree scan.Tree) error {
		data, err := tree.Read(file)
		text = string(data)
		return err
	})
	return text, err
}

// TestANewCommitFetchesOnlyWhatIsMissing also prints what it cost.
func TestANewCommitFetchesOnlyWhatIsMissing(t *testing.T) {
	source := testgit.New(t, "web.git")
	source.Write(map[string]string{"a.yaml": "1", "large.yaml": noise(t, 4<<20)})
	commit := source.Push("main")
	seen := &traffic{}
	_, address, ca := source.Web("", "", seen.of)
	r := open(t, address, "main")
	r.CABundle, r.Cache, r.Owner = ca, &Cache{Directory: r.Directory}, "uid-1"
	read := func(want string) func() {
		return func() {
			t.Helper()
			if text, err := textOf(t, r, commit, "a.yaml"); err != nil || text != want {
				t.Fatalf("%q, %v", text, err)
			}
		}
	}
	_, whole := seen.during(read("1"))
	polls, polled := seen.during(func() {
		if head, err := r.Head(t.Context()); err != nil || head != commit {
			t.Fatalf("%s, %v", head, err)
		}
	})
	again, _ := seen.during(read("1"))
	var most int64
	for _, text := range []string{"2", "3", "4"} {
		source.Write(map[string]string{"a.yaml": text})
		commit = source.Push("main")
		_, part := seen.during(read(text))
		most = max(most, part)
	}
	t.Logf("the whole commit has %d bytes, a small change at most %d, a poll %d in %d request", whole, most, polled, polls)
	if whole < 2<<20 || most > 16<<10 || again != 0 || polls != 1 || polled > 2<<10 {
		t.Errorf("%d, %d, %d and %d bytes; %d requests for a commit that is there", whole, most, polls, polled, again)
	}

	// A file that an older commit had comes back.
	source.Write(map[string]string{"a.yaml": "1"})
	commit = source.Push("main")
	read("1")()

	// Objects that are damaged are fetched again.
	packs, err := filepath.Glob(filepath.Join(r.Directory, "*", "tip", "objects", "pack", "*.pack"))
	if err != nil || len(packs) == 0 {
		t.Fatalf("%v, %d packs", err, len(packs))
	}
	for _, size := range []int64{1 << 20, 32} {
		for _, pack := range packs {
			if info, err := os.Stat(pack); err == nil && info.Size() > size {
				if err := os.Truncate(pack, size); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := textOf(t, r, commit, "large.yaml"); err == nil && size == 1<<20 {
			t.Error("a damaged file was read")
		}
		read("1")()
		if text, err := textOf(t, r, commit, "large.yaml"); err != nil || len(text) != 4<<20 {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	}

	// The cache forgets what belongs to an owner who is gone.
	r.Cache.Drop("uid")
	if left, _ := os.ReadDir(r.Directory); len(left) != 1 {
		t.Errorf("%d directories", len(left))
	}
	r.Cache.Drop("uid-1")
	if left, _ := os.ReadDir(r.Directory); len(left) != 0 {
		t.Errorf("%d directories are left", len(left))
	}
}

func TestABranchThatWasRewrittenIsReadFromTheCache(t *testing.T) {
	source := testgit.New(t, "web.git")
	source.Write(map[string]string{"a.yaml": "1"})
	first := source.Push("main")
	address, key, known := source.SSH()
	r := open(t, address, "main")
	r.Cache, r.Owner = &Cache{Directory: r.Directory}, "uid"
	r.Credentials = &Credentials{PrivateKey: key, KnownHosts: known}
	if text, err := textOf(t, r, first, "a.yaml"); err != nil || text != "1" {
		t.Fatalf("%q, %v", text, err)
	}
	source.Write(map[string]string{"a.yaml": "2"})
	source.Push("main")
	other := testgit.New(t, "other.git") // a history without a common commit
	other.Write(map[string]string{"b.yaml": "3"})
	other.Push("main")
	source.Take(other, "main")
	head, err := r.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := textOf(t, r, head, "b.yaml"); err != nil || text != "3" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := textOf(t, r, strings.Repeat("a", 40), "b.yaml"); err == nil || !strings.Contains(err.Error(), "no commit aaaa") {
		t.Errorf("a commit that is gone: %v", err)
	}
}

// TestTheCacheHasALimit: the repository that was read last stays.
func TestTheCacheHasALimit(t *testing.T) {
	directory := t.TempDir()
	c := &Cache{Directory: directory, Limit: 250 << 10}
	for _, owner := range []string{"a", "b", "c"} {
		kept, done, free := c.take(owner, "https://git.example.com/x")
		if _, _, again := c.take(owner, "https://git.example.com/x"); again || !free {
			t.Errorf("%s: two use one directory", owner)
		}
		if err := os.MkdirAll(kept, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(kept, "pack"), make([]byte, 100<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		done(true)
	}
	left, err := os.ReadDir(directory)
	if err != nil || len(left) != 2 || !strings.HasPrefix(left[0].Name(), "b-") || !strings.HasPrefix(left[1].Name(), "c-") {
		t.Errorf("%v, %v", left, err)
	}
	if name("a", "https://one") == name("a", "https://other") {
		t.Error("two addresses have one directory")
	}
}

// TestAnEndedReadKeepsNothing: its objects may not be whole.
func TestAnEndedReadKeepsNothing(t *testing.T) {
	source := testgit.New(t, "web.git")
	source.Write(map[string]string{"a.yaml": "1"})
	commit := source.Push("main")
	_, address, ca := source.Web("", "")
	r := open(t, address, "main")
	r.CABundle, r.Cache, r.Owner = ca, &Cache{Directory: r.Directory}, "uid"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Read(ctx, commit, func(scan.Tree) error { return nil }); err == nil {
		t.Error("it was read")
	}
	if left, _ := os.ReadDir(r.Directory); len(left) != 0 {
		t.Errorf("%d directories are left", len(left))
	}
}
