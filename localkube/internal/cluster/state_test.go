package cluster

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func testDir(t *testing.T) Dir {
	t.Helper()
	dir, err := NewDir(t.TempDir(), "web")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one with %q", err, part)
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "web-1": true, "": false, "Web": false, "../x": false, "-a": false, "a-": false,
		strings.Repeat("a", 40): true, strings.Repeat("a", 41): false,
	} {
		if _, err := NewDir(t.TempDir(), name); (err == nil) != ok {
			t.Errorf("NewDir(%q): %v, want it accepted: %v", name, err, ok)
		}
	}
}

func TestStateIsKept(t *testing.T) {
	dir := testDir(t)
	first, err := dir.loadOrCreate(0, HostNode)
	if err != nil {
		t.Fatal(err)
	}
	second, err := dir.loadOrCreate(0, HostNode)
	if err != nil || first != second {
		t.Errorf("second start: %+v, %v; want %+v", second, err, first)
	}
	_, err = dir.loadOrCreate(first.Port+1, HostNode)
	wantError(t, err, "leave --port out")
	_, err = dir.loadOrCreate(0, KubeletNode)
	wantError(t, err, "was made with another --node")
}

func TestDirectoriesThatAreNotOursAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ file, content, want string }{
		"somebody's files":   {"thesis.tex", "x", "is not a localkube state directory (it has thesis.tex"},
		"another state.json": {"state.json", `{"lineage":"x"}`, "is not a state file of localkube"},
		"another version": {"state.json", `{"format":1,"kubernetes":"v1.2.3","id":"x"}`,
			"Kubernetes v1.2.3, state format 1; this one is Kubernetes " + KubernetesVersion},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testDir(t)
			if err := os.WriteFile(dir.file(test.file), []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			wantError(t, dir.check(), test.want)
		})
	}
}

func TestPortInUseIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("unexpected address %v", listener.Addr())
	}
	_, err = testDir(t).loadOrCreate(address.Port, NoNode)
	wantError(t, err, "is in use by another program; choose another --port")
}

func TestLockIsHeldOnceAndSeen(t *testing.T) {
	dir := testDir(t)
	lock, err := dir.lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.lock(); !errors.Is(err, errRunning) {
		t.Errorf("second lock: %v, want %v", err, errRunning)
	}
	if running, err := dir.running(); err != nil || !running {
		t.Errorf("running() = %v, %v; want true", running, err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if running, err := dir.running(); err != nil || running {
		t.Errorf("running() = %v, %v; want false", running, err)
	}
}

func TestCertificatesAreMadeOnce(t *testing.T) {
	p := pki{dir: filepath.Join(t.TempDir(), "pki"), address: loopback, node: "web-host-0"}
	if err := p.ensure(time.Now()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(p.cert("apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ensure(time.Now()); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(p.cert("apiserver"))
	if err != nil || string(before) != string(after) {
		t.Errorf("the certificate changed (%v)", err)
	}
	info, err := os.Stat(p.key("ca"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the CA's key has mode %v, %v; want 0600", info.Mode(), err)
	}
}
