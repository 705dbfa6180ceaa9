package hostnode

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/localkube/internal/process"
)

// searchPath is the PATH of a container without one of its own.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// command resolves the command of a container.
func (c *container) command(ctx context.Context) (process.Spec, error) {
	pod, _, _ := c.pod.current()
	name, path, err := program(c.pod.node.config.Images, c.spec.Image)
	if err != nil {
		return process.Spec{}, err
	}
	ip := c.pod.address()
	given, err := environment(ctx, pod, c.spec, facts{
		podIP: ip, hostIP: loopback,
		allocatable: nodeStatus(corev1.NodeStatus{}, c.pod.node.config, 0, metav1.Now()).Allocatable,
	}, clusterObjects{c.pod.node.client})
	if err != nil {
		return process.Spec{}, err
	}
	mounts, err := c.mounts(pod)
	if err != nil {
		return process.Spec{}, err
	}
	for key, value := range given {
		given[key] = mounts.rewrite(value)
	}
	variables := c.defaults(pod, path)
	maps.Copy(variables, given)
	command := mounts.rewriteAll(expandAll(c.spec.Command, given))
	args := mounts.rewriteAll(expandAll(c.spec.Args, given))
	executable, args, err := commandLine(name, path, command, args)
	if err != nil {
		return process.Spec{}, err
	}
	return process.Spec{
		Name: fmt.Sprintf("%s of pod %s", c.spec.Name, c.pod.key),
		Path: executable, Args: args, Env: pairs(variables), Dir: filepath.Join(c.pod.dir, "home"),
	}, nil
}

// defaults returns the default variables of a container. It passes on nothing of localkube's own
// environment.
func (c *container) defaults(pod *corev1.Pod, image string) map[string]string {
	variables := map[string]string{
		"PATH":     searchPath,
		"HOME":     filepath.Join(c.pod.dir, "home"),
		"TMPDIR":   filepath.Join(c.pod.dir, "tmp"),
		"HOSTNAME": pod.Name,
	}
	if info, err := os.Stat(image); err == nil && info.IsDir() {
		variables["PATH"] = image + ":" + searchPath
	}
	if mountsAccount(c.spec) {
		variables["KUBECONFIG"] = c.pod.kubeconfigPath()
	}
	return variables
}

func (r *runner) address() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ip
}
