package cluster

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/muster-fleet/muster/localkube/internal/hostnode"
)

// Node is the kind of node for the Pods of a cluster.
type Node string

// The kinds of node: none, processes of this machine, or containers.
const (
	NoNode      Node = "false"
	HostNode    Node = "true"
	KubeletNode Node = "kubelet"
)

// nodeRun is the host node inside this process.
type nodeRun struct {
	cancel     context.CancelFunc
	registered <-chan struct{}
	ended      chan struct{}
	err        error // set before ended is closed
}

func (c *Cluster) nodeName() string {
	if c.options.Node == KubeletNode {
		return c.dir.Name + "-node-0"
	}
	return c.dir.Name + "-host-0"
}

// startNode starts the node, if the cluster has one, and waits until it has started.
func (c *Cluster) startNode(ctx context.Context) error {
	switch c.options.Node {
	case KubeletNode:
		return c.startRealNode(ctx)
	case HostNode:
		if err := c.startHostNode(ctx); err != nil {
			return err
		}
		return c.awaitHostNode(ctx)
	case NoNode:
	}
	return nil
}

func (c *Cluster) startHostNode(ctx context.Context) error {
	log, err := os.OpenFile(c.logPath("host-node"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of the host node: %w", err)
	}
	// The log of the client libraries goes there too, not to the terminal.
	klog.LogToStderr(false)
	klog.SetOutput(log)
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	config, err := c.restConfig("host-node")
	if err != nil {
		return err
	}
	config.UserAgent = "localkube-host-node"
	node, err := hostnode.New(hostnode.Config{
		Name:         c.nodeName(),
		Version:      KubernetesVersion,
		REST:         config,
		Dir:          c.dir.file("pods"),
		PodNetwork:   c.state.PodNetwork,
		Images:       c.options.Images,
		Group:        c.group,
		CertFile:     c.pki.cert("node"),
		KeyFile:      c.pki.key("node"),
		ClientCAFile: c.pki.cert("node-ca"),
		Hurry:        c.options.Hurry,
	})
	if err != nil {
		return err
	}
	// The node outlives ctx by the pods' grace periods: stopNode ends it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	run := &nodeRun{cancel: cancel, registered: node.Registered(), ended: make(chan struct{})}
	go func() {
		defer close(run.ended)
		run.err = node.Run(ctx)
	}()
	c.node = run
	return nil
}

// awaitHostNode waits until the host node has registered.
func (c *Cluster) awaitHostNode(ctx context.Context) error {
	select {
	case <-c.node.registered:
		return nil
	case <-c.node.ended:
		return fmt.Errorf("the host node of cluster %s ended: %w", c.dir.Name, c.node.err)
	case name := <-c.died:
		return c.death(name)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Cluster) stopHostNode() {
	if c.node == nil {
		return
	}
	c.node.cancel()
	<-c.node.ended
}
