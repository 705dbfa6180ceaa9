package kubenode

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

func TestPauseProgramWaitsUntilItIsKilled(t *testing.T) {
	program, err := pauseProgram(runtime.GOARCH)
	if err != nil || runtime.GOOS != "linux" {
		t.Skipf("there is no pause program to run here: %v", err)
	}
	path := filepath.Join(t.TempDir(), "pause")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	// It goes on waiting after a signal that does not end it.
	for _, signal := range []syscall.Signal{syscall.SIGCONT, syscall.SIGCHLD} {
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("it ended by itself: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v, want a kill", err)
	}
}

func TestUnknownArchitectureIsNamed(t *testing.T) {
	if _, err := pauseProgram("vax"); err == nil || err.Error() != "localkube has no pause image for vax" {
		t.Errorf("error %v", err)
	}
}

func TestNamesOfImages(t *testing.T) {
	for name, want := range map[string]string{
		"muster-hub":                    "docker.io/library/muster-hub",
		"muster-hub:v1":                 "docker.io/library/muster-hub:v1",
		"team/muster-hub":               "docker.io/team/muster-hub",
		"registry.example.com/hub:v1":   "registry.example.com/hub:v1",
		"localhost/hub":                 "localhost/hub",
		"registry.example.com:5000/hub": "registry.example.com:5000/hub",
	} {
		if got := fullName(name); got != want {
			t.Errorf("fullName(%s) = %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{"a/b:v1": "v1", "host:5000/b": "", "b": ""} {
		if _, tag := splitTag(name); tag != want {
			t.Errorf("the tag of %s is %q, want %q", name, tag, want)
		}
	}
}
