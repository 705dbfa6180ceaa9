package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// roleVariable makes the test binary act as one of the processes under test.
const roleVariable = "PROCESS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "sleeper":
		fmt.Println(os.Getpid())
		time.Sleep(time.Hour)
	case "parent":
		// Starts a sleeper and then waits to be killed.
		group, err := NewGroup(os.Getenv("PROCESS_TEST_DIR"), os.Getenv("PROCESS_TEST_MARK"))
		if err == nil {
			_, err = group.Start(Spec{Name: "sleeper", Path: os.Args[0], Env: []string{roleVariable + "=sleeper"}, Stdout: os.Stdout})
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		time.Sleep(time.Hour)
	case "stray":
		// Starts a sleeper in a session of its own and ends.
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), roleVariable+"=sleeper")
		command.Stdout = os.Stdout
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := command.Start(); err != nil {
			os.Exit(1)
		}
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// readPID reads the first line, which is the sleeper's pid.
func readPID(t *testing.T, from io.Reader) int {
	t.Helper()
	line, err := bufio.NewReader(from).ReadString('\n')
	if err != nil {
		t.Fatalf("reading a pid: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the process said %q, not a pid", line)
	}
	return pid
}

func awaitEnd(t *testing.T, id Identity) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); id.Alive(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("pid %d still runs", id.PID)
		}
	}
}

func mustIdentify(t *testing.T, pid int) Identity {
	t.Helper()
	id, err := identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestChildDiesWithItsKilledParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), roleVariable+"=parent", "PROCESS_TEST_DIR="+t.TempDir(), "PROCESS_TEST_MARK=dies")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	child := mustIdentify(t, readPID(t, out))
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, child)
	if err := parent.Wait(); err == nil {
		t.Error("the killed parent ended without an error")
	}
}

func TestStraysEndWithTheProcessThatStartedThem(t *testing.T) {
	group, err := NewGroup(t.TempDir(), "strays")
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := group.Start(Spec{Name: "stray", Path: os.Args[0], Env: []string{roleVariable + "=stray"}, Stdout: writer})
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	// The sleeper may have been killed before it could say its pid: what
	// counts is that nothing holds the pipe.
	if _, err := io.ReadAll(reader); err != nil {
		t.Fatal(err)
	}
	if code, signal := p.Exit(); code != 3 || signal != 0 {
		t.Errorf("Exit() = %d, %v; want 3 and no signal", code, signal)
	}
}

func TestLeftoversAreKilledAndStrangersAreNot(t *testing.T) {
	dir := t.TempDir()
	group, err := NewGroup(dir, "left")
	if err != nil {
		t.Fatal(err)
	}
	leftover, _ := sleeper(t, markVariable+"=left/abc")
	stranger, _ := sleeper(t, markVariable+"=leftish")
	// A reused pid: recorded with another start time.
	record := fmt.Sprintf(`{"pid":%d,"start":"some-boot/1"}`, stranger.PID)
	if err := os.WriteFile(dir+"/"+strconv.Itoa(stranger.PID), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := group.KillLeftovers()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{fmt.Sprintf("pid %d", leftover.PID)}, names); diff != "" {
		t.Errorf("killed (-want +got):\n%s", diff)
	}
	if leftover.Alive() {
		t.Error("the leftover still runs")
	}
	if !stranger.Alive() {
		t.Error("a process with a reused pid was killed")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("records left: %v, %v", entries, err)
	}
}

func sleeper(t *testing.T, env string) (Identity, *exec.Cmd) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = []string{roleVariable + "=sleeper", env}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // It may be the one that was to be killed.
		_ = command.Wait()         // Its end by a signal is no news.
	})
	return mustIdentify(t, readPID(t, out)), command
}

func TestStopKillsAfterTheGracePeriod(t *testing.T) {
	group, err := NewGroup(t.TempDir(), "stop")
	if err != nil {
		t.Fatal(err)
	}
	// SIGTERM is ignored by a shell that traps it.
	p, err := group.Start(Spec{Name: "stubborn", Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; while :; do sleep 1; done"}})
	if err != nil {
		t.Fatal(err)
	}
	cut := make(chan struct{})
	close(cut)
	if err := p.Stop(time.Hour, cut); err != nil {
		t.Fatal(err)
	}
	if _, signal := p.Exit(); signal != syscall.SIGKILL && signal != syscall.SIGTERM {
		t.Errorf("ended by %v, want a signal", signal)
	}
}
