package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/muster-fleet/muster/localkube/internal/component"
	"github.com/muster-fleet/muster/localkube/internal/kubenode"
	"github.com/muster-fleet/muster/localkube/internal/machine"
	"github.com/muster-fleet/muster/localkube/internal/process"
)

const containerd = "containerd"

// realNode is the node with containers, and the machine around all parts of its cluster.
type realNode struct {
	programs machine.Programs
	images   []kubenode.Image
	machine  *machine.Machine
	config   kubenode.Config
}

// newRealNode checks the requirements that a user may have to fix.
func newRealNode(images map[string]string) (*realNode, error) {
	programs, err := machine.Find()
	if err != nil {
		return nil, err
	}
	node := &realNode{programs: programs}
	for name, path := range images {
		image, err := kubenode.ReadImage(name, path)
		if err != nil {
			return nil, err
		}
		node.images = append(node.images, image)
	}
	return node, nil
}

// bootMachine makes the machine for all parts of the cluster.
func (c *Cluster) bootMachine() error {
	log, err := os.OpenFile(c.logPath("machine"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of the machine: %w", err)
	}
	defer log.Close() // The first process has its own descriptor.
	c.real.machine, err = machine.Boot(machine.Config{
		ID: c.state.ID, Address: c.state.Address, Kubelet: c.dir.file("node", "kubelet"), Group: c.group, Log: log,
	})
	if err != nil {
		return fmt.Errorf("making the machine of cluster %s: %w", c.dir.Name, err)
	}
	c.say("machine %s is there (%s)", c.state.Address, c.elapsed())
	c.real.config = kubenode.Config{
		Name: c.nodeName(), Address: c.state.address(), Dir: c.dir.file("node"),
		CgroupRoot: machine.CgroupRoot(c.state.ID), Programs: c.real.programs,
		CertFile: c.pki.cert("node"), KeyFile: c.pki.key("node"), ClientCAFile: c.pki.cert("node-ca"),
		Kubeconfig:      c.dir.file("pki", "kubelet.kubeconfig"),
		ProxyKubeconfig: c.dir.file("pki", "kube-proxy.kubeconfig"),
	}
	if err := c.real.config.Write(); err != nil {
		return err
	}
	// It needs no other part, so it starts beside them.
	return c.launch(containerd, process.Spec{Path: c.real.programs.Containerd, Args: c.real.config.ContainerdArgs()})
}

// startRealNode starts kubelet once containerd answers and has the images.
func (c *Cluster) startRealNode(ctx context.Context) error {
	if err := c.await(ctx, containerd, func(ctx context.Context) error { return c.ctr(ctx, "version") }); err != nil {
		return err
	}
	if err := c.importImages(ctx); err != nil {
		return err
	}
	if err := c.spawn(component.Kubelet, c.real.config.KubeletFlags()); err != nil {
		return err
	}
	return c.spawn(component.Proxy, c.real.config.ProxyFlags())
}

func (c *Cluster) importImages(ctx context.Context) error {
	pause := c.dir.file("node", "pause.tar")
	if err := kubenode.WritePauseImage(pause); err != nil {
		return err
	}
	if err := c.ctr(ctx, "images", "import", pause); err != nil {
		return fmt.Errorf("importing the pause image: %w", err)
	}
	for _, image := range c.real.images {
		if err := c.ctr(ctx, "images", "import", image.Path); err != nil {
			return fmt.Errorf("importing %s: %w", image.Path, err)
		}
		if image.Wanted != image.Archived {
			if err := c.ctr(ctx, "images", "tag", "--force", image.Archived, image.Wanted); err != nil {
				return fmt.Errorf("naming image %s: %w", image.Wanted, err)
			}
		}
		c.say("image %s is there (%s)", image.Wanted, c.elapsed())
	}
	return nil
}

// ctr runs a command of containerd's client inside the machine.
func (c *Cluster) ctr(ctx context.Context, arguments ...string) error {
	var output bytes.Buffer
	command := exec.CommandContext(ctx, c.real.programs.Ctr, kubenode.CtrArgs(arguments...)...)
	command.Stdout, command.Stderr = &output, &output
	if err := c.real.machine.Start(command); err != nil {
		return fmt.Errorf("starting ctr: %w", err)
	}
	if err := command.Wait(); err != nil {
		return errors.Join(fmt.Errorf("ctr %s: %w", arguments[0], err), errors.New(string(bytes.TrimSpace(output.Bytes()))))
	}
	return nil
}
