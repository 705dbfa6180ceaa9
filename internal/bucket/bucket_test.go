package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/muster-fleet/muster/internal/testbucket"
)

// forWriting are the rights of an account that only writes backups.
var forWriting = []string{"s3:ListBucket", "s3:PutObject", "s3:AbortMultipartUpload"}

// setEnvironment sets the variables of an account, and no others of AWS.
func setEnvironment(t *testing.T, variables map[string]string) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

func serve(t *testing.T) *testbucket.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs an S3 server")
	}
	return testbucket.Start(t)
}

// of returns a client with the variables of an account.
func of(t *testing.T, s *testbucket.Server, variables map[string]string) *Client {
	t.Helper()
	setEnvironment(t, variables)
	c, err := New(Settings{Endpoint: s.Endpoint, CAFile: s.CAFile})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// write uploads a text, and aborts after an error as a backup does.
func write(ctx context.Context, c *Client, o Object, text []byte) error {
	u, err := c.Create(ctx, o)
	if err != nil {
		return err
	}
	if _, err = u.Write(text); err == nil {
		_, err = u.Commit()
	}
	if err != nil {
		err = errors.Join(err, u.Abort())
	}
	return err
}

func TestAnUploadIsWholeAndReplacesNothing(t *testing.T) {
	s := serve(t)
	writer := of(t, s, s.Environment("writer", "hub/", forWriting...))
	reader := of(t, s, s.Environment("reader", "hub/", "s3:GetObject"))
	ctx := context.Background()
	for name, size := range map[string]int{
		"hub/none.age": 0, "hub/small.age": 100, "hub/part.age": partSize, "hub/large.age": 2*partSize + 1,
	} {
		o, text := Object{Bucket: testbucket.Name, Key: name}, make([]byte, size)
		_, _ = rand.Read(text) // it returns no error
		if err := write(ctx, writer, o, text); err != nil {
			t.Fatalf("writing %d bytes: %v", size, err)
		}
		var got bytes.Buffer
		if err := reader.Download(ctx, o, &got); err != nil || !bytes.Equal(got.Bytes(), text) {
			t.Errorf("%s has %d bytes of %d: %v", name, got.Len(), size, err)
		}
		if err := write(ctx, writer, o, []byte("other")); !errors.Is(err, ErrExists) {
			t.Errorf("%s is replaced: %v", name, err)
		}
		if err := writer.Download(ctx, o, &got); err == nil || !strings.Contains(err.Error(), "have no right to do this") {
			t.Errorf("an account that only writes reads %s: %v", name, err)
		}
	}
}

// TestOfTwoUploadsToOneNameTheFirstStays creates both before either is complete, so that only the
// server can refuse the second. Credentials without the right to list have no other protection.
func TestOfTwoUploadsToOneNameTheFirstStays(t *testing.T) {
	s := serve(t)
	ctx := context.Background()
	for name, actions := range map[string][]string{"lists": forWriting, "puts": {"s3:PutObject", "s3:AbortMultipartUpload"}} {
		c := of(t, s, s.Environment(name, "", actions...))
		for kind, size := range map[string]int{"whole": 10, "parts": partSize + 10} {
			o := Object{Bucket: testbucket.Name, Key: name + "-" + kind}
			first, err := c.Create(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			second, err := c.Create(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			for i, u := range []*Upload{first, second} {
				_, err := u.Write(bytes.Repeat([]byte{byte(i)}, size))
				if err == nil {
					_, err = u.Commit()
				}
				if i == 0 && err != nil || i == 1 && !errors.Is(err, ErrExists) {
					t.Errorf("%s: upload %d returns %v", o, i+1, err)
				}
			}
			if err := second.Abort(); err != nil {
				t.Errorf("%s: removing the parts: %v", o, err)
			}
			var got bytes.Buffer
			object, err := s.Root.GetObject(ctx, o.Bucket, o.Key, minio.GetObjectOptions{})
			if err == nil {
				_, err = got.ReadFrom(object)
			}
			if err != nil || !bytes.Equal(got.Bytes(), make([]byte, size)) {
				t.Errorf("%s has not the content of the first upload: %v", o, err)
			}
		}
	}
	if keys := s.Keys(); len(keys) != 4 {
		t.Errorf("the bucket has %q", keys)
	}
}

func TestAFailedUploadLeavesNothing(t *testing.T) {
	s := serve(t)
	c := of(t, s, s.Environment("writer", "", forWriting...))
	o := Object{Bucket: testbucket.Name, Key: "hub.age"}
	ctx, cancel := context.WithCancel(context.Background())
	u, err := c.Create(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Write(make([]byte, partSize+5)); err != nil {
		t.Fatal(err)
	}
	if keys := s.Keys(); !slices.Equal(keys, []string{"hub.age (unfinished)"}) {
		t.Fatalf("before the failure, the bucket has %q", keys)
	}
	cancel() // as of a signal
	if _, err := u.Commit(); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled upload returns %v", err)
	}
	if err := u.Abort(); err != nil {
		t.Error(err)
	}
	if keys := s.Keys(); len(keys) != 0 {
		t.Errorf("after the failure, the bucket has %q", keys)
	}
}

// TestTheMemoryOfAnUploadIsBounded writes 20 parts: the heap never holds a third of them.
func TestTheMemoryOfAnUploadIsBounded(t *testing.T) {
	s := serve(t)
	c := of(t, s, s.Environment("writer", "", forWriting...))
	u, err := c.Create(context.Background(), Object{Bucket: testbucket.Name, Key: "hub.age"})
	if err != nil {
		t.Fatal(err)
	}
	const parts = 20
	text, highest := make([]byte, 1<<20), uint64(0)
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // whatever the environment says
	runtime.GC()                                      // what earlier tests have left
	for range parts * partSize / len(text) {
		if _, err := u.Write(text); err != nil {
			t.Fatal(err)
		}
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		highest = max(highest, memory.HeapInuse)
	}
	size, err := u.Commit()
	if err != nil || size != parts*partSize {
		t.Errorf("%d bytes are written: %v", size, err)
	}
	if limit := uint64(6 * partSize); highest > limit {
		t.Errorf("the heap had %d bytes, more than %d, for %d bytes", highest, limit, size)
	}
}
