// Package cluster runs the control plane of one Kubernetes cluster as child processes of this one,
// and its node.
//
// It is for trying, developing and testing, never for data to keep. etcd does not sync its writes
// to the disk, everything runs with the rights of the user, and nothing is redundant. Everything
// that a cluster keeps is in its state directory. One process holds the lock of the directory while
// the cluster runs.
//
// A cluster with a host node, as part of this process, listens on loopback only and needs no
// rights. A cluster with a node of containers needs root and Linux. It has a machine of its own
// (package machine), reachable only from this machine and other such clusters.
//
// A node of containers has kubelet, containerd, a pod network, Services by kube-proxy and volumes
// of the node. It also has logs, exec, Pod Security and the rest of admission. It has no cluster
// DNS (10.96.0.10 does not answer), metrics-server, load balancers or provisioned volumes. It
// enforces no NetworkPolicy, and reaches no network outside: images come from archives.
//
// Its containers end with it, without a grace period, as on a machine that is switched off.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/muster-fleet/muster/localkube/internal/component"
	"github.com/muster-fleet/muster/localkube/internal/process"
)

// etcdPause is the pause before an ended etcd is started again.
const etcdPause = time.Second

// Options are a user's choices about a cluster.
type Options struct {
	// Port of the API server; 0 keeps the one in the state, or picks one.
	Port int
	// Node is the kind of node for the Pods.
	Node Node
	// Audit turns the audit log on.
	Audit bool
	// Authentication is a file with an AuthenticationConfiguration of the API server, for users signed
	// in elsewhere; may be empty.
	Authentication string
	// DefaultLimits leaves kube-controller-manager at its own limit of requests. Without it, the limit
	// is too high for any test to wait.
	DefaultLimits bool
	// RestartEtcd starts etcd again when it ends, instead of ending the cluster. The API server
	// survives that, without storage meanwhile.
	RestartEtcd bool
	// Kubeconfig is a further file to add the cluster to, ReadyFile one to
	// write when the cluster is ready; both may be empty.
	Kubeconfig, ReadyFile string
	// UsageFile receives a line with the processor time of each process of
	// the cluster when it ends; may be empty.
	UsageFile string
	// Images maps an image's name to a program or a directory of programs, for
	// a node of containers to an OCI archive.
	Images map[string]string
	// Out receives a line per stage.
	Out io.Writer
	// Hurry, when closed, ends the grace periods of a stop.
	Hurry <-chan struct{}
}

// Cluster is one running cluster.
type Cluster struct {
	dir      Dir
	options  Options
	state    state
	pki      pki
	etcdPort int
	group    *process.Group
	began    time.Time

	running map[string]*process.Process
	died    chan string
	node    *nodeRun
	real    *realNode
}

// Up runs a cluster until ctx ends or a part of it fails.
func Up(ctx context.Context, dir Dir, options Options) (err error) {
	c := &Cluster{
		dir: dir, options: options, began: time.Now(),
		pki:     pki{dir: dir.file("pki")},
		running: map[string]*process.Process{},
		died:    make(chan string, 8),
	}
	if err := dir.check(); err != nil {
		return err
	}
	if options.Node == KubeletNode {
		if c.real, err = newRealNode(options.Images); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir.file("logs"), 0o700); err != nil {
		return fmt.Errorf("creating the state of cluster %s: %w", dir.Name, err)
	}
	lock, err := dir.lock()
	if errors.Is(err, errRunning) {
		return c.alreadyRunning()
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := c.prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if err := c.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // Stopped by the user before it was ready.
		}
		return err
	}
	return c.watch(ctx)
}

func (c *Cluster) alreadyRunning() error {
	pid := "another process"
	if id, err := c.dir.owner(); err == nil {
		pid = fmt.Sprintf("process %d", id.PID)
	}
	return fmt.Errorf("cluster %s is already running in %s; use it: export KUBECONFIG=%s, or stop it: localkube down %s",
		c.dir.Name, pid, c.dir.Kubeconfig(), c.dir.Name)
}

// prepare brings the state directory in order: no process of an earlier run,
// keys, certificates and configuration present.
func (c *Cluster) prepare() error {
	var err error
	if c.state, err = c.dir.loadOrCreate(c.options.Port, c.options.Node); err != nil {
		return err
	}
	c.pki.address, c.pki.node = c.state.address(), c.nodeName()
	if c.group, err = process.NewGroup(c.dir.file("processes"), c.state.ID); err != nil {
		return err
	}
	c.group.UsageFile = c.options.UsageFile
	names, err := c.group.KillLeftovers()
	if err != nil {
		return err
	}
	if len(names) > 0 {
		c.say("ended leftovers of an earlier run: %s", strings.Join(names, ", "))
	}
	if err := c.state.freeAddress(); err != nil {
		return fmt.Errorf("port %d of cluster %s is in use by another program; end that program, or start afresh: localkube delete %s (%w)",
			c.state.Port, c.dir.Name, c.dir.Name, err)
	}
	if err := c.dir.recordOwner(); err != nil {
		return err
	}
	if c.etcdPort, err = lastingPort(); err != nil {
		return err
	}
	c.say("state in %s", c.dir.Path)
	if err := c.pki.ensure(c.began); err != nil {
		return err
	}
	if err := c.writeKubeconfigs(); err != nil {
		return err
	}
	if c.options.ReadyFile != "" {
		if err := os.Remove(c.options.ReadyFile); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("removing the old ready file: %w", err)
		}
	}
	if err := writeFile(c.dir.file("etcd-url"), []byte(c.etcdURL())); err != nil {
		return err
	}
	return writeFile(c.dir.file("audit-policy.yaml"), []byte(auditPolicy))
}

// start returns when the cluster can be used.
func (c *Cluster) start(ctx context.Context) error {
	if c.real != nil {
		if err := c.bootMachine(); err != nil {
			return err
		}
	}
	if err := c.spawn(component.Etcd, c.etcdFlags()); err != nil {
		return err
	}
	// The API server comes up beside etcd: it retries until etcd serves.
	if err := c.spawn(component.APIServer, c.apiserverFlags()); err != nil {
		return err
	}
	config, err := c.restConfig(admin)
	if err != nil {
		return err
	}
	ready, err := newReadiness(config)
	if err != nil {
		return err
	}
	// The controller manager waits ten seconds for all that the API server does at its start, and
	// ends.
	if err := c.await(ctx, "kube-apiserver", ready.apiServer); err != nil {
		return err
	}
	c.say("kube-apiserver is ready at %s (%s)", c.state.url(), c.elapsed())
	if err := c.spawn(component.ControllerManager, c.controllerManagerFlags()); err != nil {
		return err
	}
	if c.options.Node != NoNode {
		if err := c.spawn(component.Scheduler, c.schedulerFlags()); err != nil {
			return err
		}
	}
	if err := c.startNode(ctx); err != nil {
		return err
	}
	if err := c.await(ctx, "kube-controller-manager", ready.serviceAccounts); err != nil {
		return err
	}
	c.say("service accounts are there (%s)", c.elapsed())
	if c.options.Node != NoNode {
		if err := c.await(ctx, "node "+c.nodeName(), ready.node(c.nodeName())); err != nil {
			return err
		}
		c.say("node %s is Ready (%s)", c.nodeName(), c.elapsed())
	}
	if c.options.ReadyFile != "" {
		if err := writeFile(c.options.ReadyFile, []byte(c.dir.Kubeconfig()+"\n")); err != nil {
			return err
		}
	}
	c.print("cluster %s is ready: export KUBECONFIG=%s (%s)", c.dir.Name, c.dir.Kubeconfig(), c.elapsed())
	return nil
}

// watch waits for the end of the cluster: on request, or after the death of a part that is not
// started again.
func (c *Cluster) watch(ctx context.Context) error {
	var nodeEnded <-chan struct{}
	if c.node != nil {
		nodeEnded = c.node.ended
	}
	var restart <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			c.say("stopping")
			return nil
		case name := <-c.died:
			death := c.death(name)
			if name != component.Etcd || !c.options.RestartEtcd {
				return death
			}
			c.say("starting etcd again: %v", death)
			restart = time.After(etcdPause)
		case <-restart:
			if err := c.spawn(component.Etcd, c.etcdFlags()); err != nil {
				return err
			}
		case <-nodeEnded:
			return fmt.Errorf("the host node of cluster %s ended: %w", c.dir.Name, c.node.err)
		}
	}
}

func (c *Cluster) restConfig(who string) (*rest.Config, error) {
	config, err := c.kubeconfig(who)
	if err != nil {
		return nil, err
	}
	restConfig, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("making a client of cluster %s: %w", c.dir.Name, err)
	}
	restConfig.QPS = -1 // The API server's own fairness is limit enough.
	restConfig.UserAgent = "localkube"
	return restConfig, nil
}

func (c *Cluster) elapsed() string {
	return fmt.Sprintf("%.1fs", time.Since(c.began).Seconds())
}

// say prints one stage.
func (c *Cluster) say(format string, args ...any) {
	c.print("cluster "+c.dir.Name+": "+format, args...)
}

func (c *Cluster) print(format string, args ...any) {
	// A closed terminal must not stop a cluster.
	_, _ = fmt.Fprintf(c.options.Out, format+"\n", args...)
}
