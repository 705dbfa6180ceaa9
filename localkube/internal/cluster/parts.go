package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/muster-fleet/muster/localkube/internal/component"
	"github.com/muster-fleet/muster/localkube/internal/process"
)

const (
	componentGrace = 15 * time.Second
	lastLines      = 20
	lastBytes      = 64 << 10
)

// spawn starts a component.
func (c *Cluster) spawn(name string, flags []string) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program to start %s: %w", name, err)
	}
	return c.launch(name, process.Spec{Path: executable, Arg0: "localkube", Args: append([]string{"component", name}, flags...)})
}

// launch starts a part of the cluster with a log of its own. It keeps the previous log beside it.
func (c *Cluster) launch(name string, spec process.Spec) error {
	path := c.logPath(name)
	if err := os.Rename(path, path+".1"); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("keeping the last log of %s: %w", name, err)
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", name, err)
	}
	spec.Name, spec.Dir, spec.Stdout, spec.Stderr = name, c.dir.Path, log, log
	spec.Env = environmentWithoutProxies()
	if c.real != nil {
		spec.Start, spec.Env = c.real.machine.Start, append(spec.Env, "PATH="+c.real.programs.Path)
	}
	started, err := c.group.Start(spec)
	// The child has its own descriptor.
	if err := errors.Join(err, log.Close()); err != nil {
		return err
	}
	c.running[name] = started
	go func() {
		<-started.Done()
		c.died <- name
	}()
	return nil
}

func (c *Cluster) logPath(name string) string { return c.dir.file("logs", name+".log") }

// environmentWithoutProxies: the components talk to this machine only.
func environmentWithoutProxies() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasSuffix(strings.ToUpper(name), "_PROXY")
	})
}

// await polls until the check passes or a part of the cluster dies.
func (c *Cluster) await(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case name := <-c.died:
			return c.death(name)
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s of cluster %s: %w; see the logs in %s", what, c.dir.Name, err, c.dir.file("logs"))
		}
	}
}

// death explains the end of a component with the end of its log.
func (c *Cluster) death(name string) error {
	dead := c.running[name]
	delete(c.running, name)
	lines, err := lastLinesOf(c.logPath(name))
	if err != nil {
		lines = []string{err.Error()}
	}
	return fmt.Errorf("%s of cluster %s ended: %s; the end of %s:\n  %s",
		name, c.dir.Name, dead.ExitText(), c.logPath(name), strings.Join(lines, "\n  "))
}

func lastLinesOf(path string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > lastBytes {
		if _, err := file.Seek(-lastBytes, io.SeekEnd); err != nil {
			return nil, fmt.Errorf("reading the log: %w", err)
		}
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	lines := strings.Split(string(bytes.TrimSpace(data)), "\n")
	return lines[max(0, len(lines)-lastLines):], nil
}

// stop ends the cluster in order. The pods end while there is an API server to report to. Then the
// API server and its clients end, and etcd last: an API server without etcd would ignore its
// SIGTERM for a minute.
func (c *Cluster) stop() error {
	var problems []error
	if c.options.ReadyFile != "" {
		if err := os.Remove(c.options.ReadyFile); err != nil && !os.IsNotExist(err) {
			problems = append(problems, fmt.Errorf("removing the ready file: %w", err))
		}
	}
	c.stopHostNode()
	grace := componentGrace
	if c.running[component.Etcd] == nil {
		grace = 0
	}
	clients := []string{component.APIServer, component.Scheduler, component.ControllerManager, component.Kubelet, component.Proxy, containerd}
	for _, name := range clients {
		if running := c.running[name]; running != nil {
			problems = append(problems, running.Signal(syscall.SIGTERM))
		}
	}
	for _, name := range append(clients, component.Etcd) {
		if running := c.running[name]; running != nil {
			problems = append(problems, running.Stop(grace, c.options.Hurry))
		}
	}
	if c.real != nil && c.real.machine != nil {
		problems = append(problems, c.real.machine.Halt())
	}
	if _, err := c.group.KillLeftovers(); err != nil {
		problems = append(problems, err)
	}
	if err := os.Remove(c.dir.file("owner.json")); err != nil && !os.IsNotExist(err) {
		problems = append(problems, fmt.Errorf("removing the file of the owner: %w", err))
	}
	c.say("stopped")
	return errors.Join(problems...)
}
