package testkube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// while stops the control plane, changes its etcd directory and starts the control plane again. It
// discards one that does not start, so that only this test fails.
func (e *entry) while(t testing.TB, change func(data string) error) {
	t.Helper()
	e.halt()
	if err := errors.Join(change(filepath.Join(e.cluster.Dir, "etcd")), e.resume()); err != nil {
		Discard(e.cluster.Name())
		t.Fatalf("control plane %s: %v", e.cluster.Name(), err)
	}
}

// Snapshot copies the whole storage of a control plane, and returns a function to restore it. As
// with a restore from a backup, resource versions also go back. Each call stops the control plane
// for some seconds, so no other test may use it.
func Snapshot(t testing.TB, name string) (restore func()) {
	t.Helper()
	e, copied := entryOf(name), filepath.Join(t.TempDir(), "etcd")
	e.while(t, func(data string) error { return os.CopyFS(copied, os.DirFS(data)) })
	return func() {
		t.Helper()
		e.while(t, func(data string) error { return errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(copied))) })
	}
}

// Restore gives a control plane the storage and the keys of another one, as after the restore of a
// snapshot on other machines. It keeps its address, and loses its own data. Both control planes
// stop for some seconds, so no other test may use them. The last one is discarded after the test.
func Restore(t testing.TB, from, onto string) Cluster {
	t.Helper()
	copied, source, target := t.TempDir(), entryOf(from), entryOf(onto)
	parts := []string{"etcd", "pki"}
	source.while(t, func(string) error {
		var failures []error
		for _, part := range parts {
			failures = append(failures, os.CopyFS(filepath.Join(copied, part), os.DirFS(filepath.Join(source.cluster.Dir, part))))
		}
		return errors.Join(failures...)
	})
	t.Cleanup(func() { Discard(onto) })
	target.while(t, func(string) error {
		var failures []error
		for _, part := range parts {
			failures = append(failures, os.RemoveAll(filepath.Join(target.cluster.Dir, part)))
		}
		return errors.Join(append(failures, os.CopyFS(target.cluster.Dir, os.DirFS(copied)))...)
	})
	if err := target.connect(); err != nil {
		t.Fatalf("connecting to control plane %s: %v", onto, err)
	}
	return target.cluster
}

// SmallDisk gives the etcd of a control plane a disk of its own until the test ends, with a size in
// the format of mount(8). fill uses up its free space, free releases the space again. The test is
// skipped where it cannot mount.
func SmallDisk(t testing.TB, name, size string) (fill, free func()) {
	t.Helper()
	disk, e := t.TempDir(), entryOf(name)
	if output, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "muster-test", disk).CombinedOutput(); err != nil {
		t.Skipf("it needs a small disk, which cannot be mounted here: %v: %s", err, output)
	}
	stored, filler := filepath.Join(disk, "etcd"), filepath.Join(disk, "filler")
	free = func() {
		t.Helper()
		if err := os.RemoveAll(filler); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		free()
		e.while(t, func(data string) error { return errors.Join(os.Remove(data), os.CopyFS(data, os.DirFS(stored))) })
		if output, err := exec.Command("umount", disk).CombinedOutput(); err != nil {
			t.Errorf("unmounting %s: %v: %s", disk, err, output)
		}
	})
	e.while(t, func(data string) error {
		return errors.Join(os.CopyFS(stored, os.DirFS(data)), os.RemoveAll(data), os.Symlink(stored, data))
	})
	fill = func() {
		t.Helper()
		file, err := os.OpenFile(filler, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for page := make([]byte, 4096); err == nil; {
			_, err = file.Write(page)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	return fill, free
}

// Compact makes a control plane forget all versions before the given one, as it otherwise does
// after five to ten minutes. The control plane stops for some seconds, so no other test may use it.
func Compact(t testing.TB, name string, version int64) {
	t.Helper()
	// A message CompactionRequest: the revision, and the flag to wait for it.
	message := append(binary.AppendUvarint([]byte{0x08}, uint64(version)), 0x10, 0x01)
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	e := entryOf(name)
	callEtcd(t, e.cluster.Dir, "etcdserverpb.KV/Compact", frame)
	e.while(t, func(string) error { return nil }) // the API server answers from memory until it is restarted
}

// Messages AlarmRequest of etcd, in the encoding of gRPC, to raise or disarm the alarm NOSPACE.
const (
	raise  = "\x00\x00\x00\x00\x04\x08\x01\x18\x01"
	disarm = "\x00\x00\x00\x00\x04\x08\x02\x18\x01"
)

// RefuseWrites raises the alarm that etcd raises itself at its quota, until accept is called or the
// test ends. The control plane then serves reads, but no writes.
func RefuseWrites(t testing.TB, name string) (accept func()) {
	t.Helper()
	dir := entryOf(name).cluster.Dir
	alarm := func(message string) {
		t.Helper()
		callEtcd(t, dir, "etcdserverpb.Maintenance/Alarm", []byte(message))
	}
	alarm(raise)
	t.Cleanup(func() { alarm(disarm) })
	return func() {
		t.Helper()
		alarm(disarm)
	}
}

// callEtcd calls a gRPC method of etcd by a plain request of HTTP/2.
func callEtcd(t testing.TB, dir, method string, message []byte) {
	t.Helper()
	address, err := os.ReadFile(filepath.Join(dir, "etcd-url"))
	if err != nil {
		t.Fatal(err)
	}
	pki := filepath.Join(dir, "pki")
	own, err := tls.LoadX509KeyPair(filepath.Join(pki, "etcd-client.crt"), filepath.Join(pki, "etcd-client.key"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(pki, "etcd-ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{own}}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, strings.TrimSpace(string(address))+"/"+method,
		bytes.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	if status := response.Trailer.Get("grpc-status"); status != "0" {
		t.Fatalf("etcd answers %s, gRPC status %q: %s", response.Status, status, response.Header.Get("grpc-message"))
	}
}
