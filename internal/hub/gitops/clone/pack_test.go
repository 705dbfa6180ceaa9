package clone

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
)

// packOf returns a pack with blobs of these contents, some of them as deltas.
func packOf(t testing.TB, contents ...string) []byte {
	t.Helper()
	storage, pack := memory.NewStorage(), &bytes.Buffer{}
	var hashes []plumbing.Hash
	for _, content := range contents {
		blob := &plumbing.MemoryObject{}
		blob.SetType(plumbing.BlobObject)
		_, err := blob.Write([]byte(content))
		hash, setErr := storage.SetEncodedObject(blob)
		if err := errors.Join(err, setErr); err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, hash)
	}
	if _, err := packfile.NewEncoder(pack, storage, false).Encode(hashes, 10); err != nil {
		t.Fatal(err)
	}
	return pack.Bytes()
}

// deflated returns data as zlib compresses it.
func deflated(t testing.TB, data []byte) []byte {
	t.Helper()
	out := &bytes.Buffer{}
	w := zlib.NewWriter(out)
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// upTo refuses objects of more bytes.
func upTo(limit int64) func(int64) error {
	return func(size int64) error {
		if size > limit {
			return errObject
		}
		return nil
	}
}

// written is the storage behind a pack that is checked.
type written struct{ bytes.Buffer }

func (*written) Close() error { return nil }

func TestOnePackAtATimeHasLargeObjects(t *testing.T) {
	pack := packOf(t, strings.Repeat("one two three\n", largeObject/14+2))
	first, held := &written{}, newChecked(t.Context(), &written{})
	if _, err := held.Write(pack); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	waits, small := newChecked(ctx, &written{}), newChecked(t.Context(), first)
	refused := make(chan error, 1)
	go func() {
		_, err := waits.Write(pack)
		refused <- errors.Join(err, waits.Close())
	}()
	if _, err := small.Write(packOf(t, "a")); err != nil || small.Close() != nil || first.Len() == 0 {
		t.Errorf("a pack without large objects waits: %v", err)
	}
	select {
	case err := <-refused:
		t.Errorf("the second does not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	end()
	if err := <-refused; !errors.Is(err, context.Canceled) {
		t.Errorf("the second one ends with %v", err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	after := newChecked(t.Context(), &written{})
	if _, err := after.Write(pack); err != nil || after.Close() != nil {
		t.Errorf("a third one does not get the turn: %v", err)
	}
}

func TestNothingOfARefusedObjectIsPassedOn(t *testing.T) {
	pack, passed := packOf(t, "a", strings.Repeat("\x00", maxObject+1)), &written{}
	c := newChecked(t.Context(), passed)
	_, err := c.Write(pack)
	if err = errors.Join(err, c.Close()); !errors.Is(err, errObject) || passed.Len() > 0 {
		t.Errorf("%d bytes are passed on: %v", passed.Len(), err)
	}
}

func TestAPackIsCheckedBeforeItIsUnpacked(t *testing.T) {
	const limit = 1 << 20
	long := strings.Repeat("one two three\n", limit/14)
	header := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01")
	reference := slices.Concat(header, []byte{0x75}, make([]byte, 20)) // a delta of five bytes
	whole := packOf(t, long, long+"four", "other")
	for name, c := range map[string]struct {
		pack []byte
		want error
	}{
		"nothing":                      {nil, nil},
		"objects and deltas":           {whole, nil},
		"a large object":               {packOf(t, long+long), errObject},
		"a large object after others":  {packOf(t, "a", long+long, "b"), errObject},
		"a delta with a large result":  {slices.Concat(reference, deflated(t, []byte{1, 0x80, 0x80, 0x80, 1})), errObject},
		"a delta with a small one":     {slices.Concat(reference, deflated(t, []byte{1, 2, 0, 0, 0})), nil},
		"data beyond the claimed size": {slices.Concat(header, []byte{0x31}, deflated(t, make([]byte, limit))), errBrokenPack},
		"data short of it":             {slices.Concat(header, []byte{0x3f}, deflated(t, []byte("a"))), errBrokenPack},
		"a size without an end":        {slices.Concat(header, bytes.Repeat([]byte{0xbf}, 20)), errBrokenPack},
		"a broken pack":                {whole[:len(whole)/2], errBrokenPack},
		"another file":                 {[]byte("<html>not found</html>"), errBrokenPack},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkPack(bytes.NewReader(c.pack), upTo(limit)); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// FuzzPack checks that no pack makes the program panic, and that one that is accepted has no
// larger object than allowed.
func FuzzPack(f *testing.F) {
	f.Add(packOf(f, "one", "one two", "three"))
	f.Add([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, pack []byte) {
		const limit = 1 << 10
		if checkPack(bytes.NewReader(pack), upTo(limit)) != nil {
			return
		}
		parser, err := packfile.NewParser(packfile.NewScanner(bytes.NewReader(pack)), observer{t, limit})
		if err == nil {
			_, _ = parser.Parse() // go-git may find other faults
		}
	})
}

// observer fails a test at each object of too many bytes.
type observer struct {
	t     *testing.T
	limit int64
}

func (o observer) OnHeader(uint32) error        { return nil }
func (o observer) OnFooter(plumbing.Hash) error { return nil }
func (o observer) OnInflatedObjectHeader(_ plumbing.ObjectType, size, _ int64) error {
	return o.check(size)
}

func (o observer) OnInflatedObjectContent(plumbing.Hash, int64, uint32, []byte) error { return nil }

func (o observer) check(size int64) error {
	if size > o.limit {
		o.t.Errorf("an object has %d bytes", size)
	}
	return nil
}
