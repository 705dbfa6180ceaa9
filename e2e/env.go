package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// env is the fleet of the scenarios: a hub and two members.
type env struct {
	root, work string
	clusters   []*cluster
	hub        *cluster
	one, two   *cluster
	// tag is the tag of the images in the charts.
	tag string
	// members is the expected output of states for a healthy fleet.
	members []string
	// from is the revision to upgrade a running fleet from; empty for the default.
	from string
}

// cluster is one cluster of localkube.
type cluster struct {
	name       string
	kubeconfig string
	up         *exec.Cmd
	ended      chan struct{}
	log        string
	// images are further images for its node, in localkube's format.
	images []string
}

func newEnv(source string) (*env, error) {
	root, err := filepath.Abs(source)
	if err != nil {
		return nil, fmt.Errorf("finding the checkout: %w", err)
	}
	e := &env{root: root, work: filepath.Join(root, ".e2e")}
	e.hub, e.one, e.two = e.newCluster("hub"), e.newCluster("one"), e.newCluster("two")
	e.members = []string{"my-cluster Ready", "cluster-", "member-1 True"}
	if e.tag, err = chartVersion(filepath.Join(root, "charts/fleet/Chart.yaml")); err != nil {
		return nil, err
	}
	e.two.images = []string{foreignRegistry + "/muster-agent:" + e.tag + "=" + e.foreignImage()}
	return e, isFile(e.bin("localkube"))
}

// newCluster returns a cluster before its start.
func (e *env) newCluster(name string) *cluster {
	c := &cluster{name: name, kubeconfig: filepath.Join(e.work, "clusters", name, "kubeconfig"), log: filepath.Join(e.work, name+".log")}
	e.clusters = append(e.clusters, c)
	return c
}

func chartVersion(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the chart: %w", err)
	}
	found := regexp.MustCompile(`(?m)^appVersion: "?([^"\s]+)`).FindSubmatch(data)
	if found == nil {
		return "", fmt.Errorf("%s has no appVersion", path)
	}
	return string(found[1]), nil
}

// prepare creates the working directory. The commands of the guides work there as printed: fleet/
// has the charts and the scripts.
func (e *env) prepare() error {
	for _, file := range []string{e.bin("kubectl"), e.bin("helm"), e.image("muster-hub"), e.image("muster-agent")} {
		if err := isFile(file); err != nil {
			return err
		}
	}
	if err := e.removeClusters(); err != nil {
		return fmt.Errorf("removing the leftovers of an earlier run: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(e.work, "fleet"), 0o700); err != nil {
		return fmt.Errorf("making a working directory: %w", err)
	}
	if err := writeImage(e.foreignImage(), foreignRegistry+"/muster-agent:"+e.tag, foreignProgram()); err != nil {
		return err
	}
	for name, target := range map[string]string{
		"charts": "charts", "hack": "hack", "fleet": "charts/fleet", "fleet-crd": "charts/fleet-crd", "fleet-agent": "charts/fleet-agent",
	} {
		if err := os.Symlink(filepath.Join(e.root, target), filepath.Join(e.work, "fleet", name)); err != nil {
			return fmt.Errorf("making a working directory: %w", err)
		}
	}
	variables := "export PATH=" + e.root + "/bin:$PATH KUBECONFIG=" + e.kubeconfigs() + "\ncd " + e.work + "\n"
	return os.WriteFile(filepath.Join(e.work, "env"), []byte(variables), 0o600)
}

func (e *env) image(name string) string { return filepath.Join(e.root, "images", name+".tar") }

func (e *env) kubeconfigs() string {
	var paths []string
	for _, c := range e.clusters {
		paths = append(paths, c.kubeconfig)
	}
	return strings.Join(paths, ":")
}

func (e *env) cleanUp() error {
	if err := e.removeClusters(); err != nil {
		return err
	}
	fmt.Println("Nothing is left but the programs in bin/ and the archives in images/.")
	return nil
}

func (e *env) removeClusters() error {
	var problems []error
	for _, c := range e.clusters {
		directory := filepath.Dir(c.kubeconfig)
		if _, err := os.Stat(directory); err == nil {
			output, err := e.command(context.Background(), nil, e.bin("localkube"), "delete", c.name,
				"--dir", filepath.Dir(directory)).CombinedOutput()
			if err != nil {
				problems = append(problems, fmt.Errorf("deleting cluster %s: %w: %s", c.name, err, output))
			}
		}
		if c.up != nil {
			<-c.ended
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return os.RemoveAll(e.work)
}

// start starts a cluster and waits until it is ready.
func (e *env) start(ctx context.Context, c *cluster) error {
	log, err := os.Create(c.log)
	if err != nil {
		return fmt.Errorf("making a log: %w", err)
	}
	defer log.Close()
	ready := filepath.Join(e.work, c.name+".ready")
	// The cluster outlives the scenario and the terminal's Ctrl-C.
	c.up = e.command(context.WithoutCancel(ctx), nil, e.bin("localkube"), "up", c.name,
		"--node=kubelet", "--dir", filepath.Join(e.work, "clusters"),
		"--ready-file", ready, "--image", "muster-hub:"+e.tag+"="+e.image("muster-hub"),
		"--image", "muster-agent:"+e.tag+"="+e.image("muster-agent"))
	for _, image := range c.images {
		c.up.Args = append(c.up.Args, "--image", image)
	}
	c.up.Stdout, c.up.Stderr = log, log
	c.up.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.up.Start(); err != nil {
		return fmt.Errorf("starting cluster %s: %w", c.name, err)
	}
	c.ended = make(chan struct{})
	go func(command *exec.Cmd, ended chan<- struct{}) {
		_ = command.Wait() // The log has the reason.
		close(ended)
	}(c.up, c.ended)
	return eventually(ctx, "cluster "+c.name+" is ready", func() error {
		select {
		case <-c.ended:
			said, err := os.ReadFile(c.log)
			return errors.Join(fmt.Errorf("it ended: %s", said), err)
		default:
		}
		_, err := os.Stat(ready)
		return err
	})
}

// command returns a command in the working directory, on the given cluster if there is one, else
// with the contexts of all.
func (e *env) command(ctx context.Context, c *cluster, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, args...)
	command.WaitDelay = time.Second
	if _, err := os.Stat(e.work); err == nil {
		command.Dir = e.work
	}
	kubeconfig := e.kubeconfigs()
	if c != nil {
		kubeconfig = c.kubeconfig
	}
	command.Env = append(slices.Clone(os.Environ()), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Join(e.root, "bin")+":"+os.Getenv("PATH"),
		"HELM_CACHE_HOME="+e.work+"/helm/cache", "HELM_CONFIG_HOME="+e.work+"/helm/config", "HELM_DATA_HOME="+e.work+"/helm/data")
	return command
}

// sh runs commands as printed in a guide, on a cluster; nil means all contexts. It returns their
// standard output.
func (e *env) sh(ctx context.Context, c *cluster, script string) (string, error) {
	command := e.command(ctx, c, "bash", "-euo", "pipefail", "-c", script)
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s%s", strings.TrimSpace(script), err, &out, &complaints)
	}
	return strings.TrimSpace(out.String()), nil
}

// expect runs a script until its output contains all the given texts.
func (e *env) expect(ctx context.Context, c *cluster, script string, texts ...string) error {
	return eventually(ctx, script+" says "+strings.Join(texts, ", "), func() error {
		out, err := e.sh(ctx, c, script)
		if err != nil {
			return err
		}
		for _, text := range texts {
			if !strings.Contains(out, text) {
				return fmt.Errorf("it says\n%s", out)
			}
		}
		return nil
	})
}

// diagnosis returns the state of the clusters after a failure.
func (e *env) diagnosis() string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var out strings.Builder
	for _, c := range e.clusters {
		if _, err := os.Stat(c.kubeconfig); err != nil {
			continue
		}
		said, _ := e.sh(ctx, c, `
kubectl get pods -A -o wide
kubectl get events -A --field-selector type=Warning | tail -n 8
for namespace in cattle-fleet-system fleet-system; do
  for pod in $(kubectl -n $namespace get pods -o name); do echo "$pod"; kubectl -n $namespace logs --tail=8 $pod; done
done 2>&1
kubectl get clusterregistrations,clusters.fleet.cattle.io,memberclusters -A 2>/dev/null || true`)
		fmt.Fprintf(&out, "--- %s\n%s\n", c.name, said)
	}
	return out.String()
}
