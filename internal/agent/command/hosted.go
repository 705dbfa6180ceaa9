package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/retry"
	"github.com/muster-fleet/muster/internal/version"
)

// rereadAfter is the time between two reads of the kubeconfig. The kubelet gives a Pod the new
// contents of a Secret without an event for the Pod.
const rereadAfter = 10 * time.Second

// host describes the Pod of a hosted agent, which runs on another cluster than its member.
type host struct {
	// secret is NAMESPACE/NAME of the Secret with the member's kubeconfig; empty unless hosted.
	secret string
	// pod is NAMESPACE/NAME of the Pod, and uid its UID.
	pod, uid string
}

func (h *host) add(set *pflag.FlagSet) {
	set.StringVar(&h.secret, "member-kubeconfig-secret", os.Getenv("MEMBER_KUBECONFIG_SECRET"),
		"NAMESPACE/NAME of the Secret with the file of --kubeconfig, for an agent on another cluster than its member: the member must be "+
			"marked by its part of the chart (default: env MEMBER_KUBECONFIG_SECRET, else none)")
	h.pod, h.uid = os.Getenv("POD_NAMESPACE")+"/"+os.Getenv("POD_NAME"), os.Getenv("POD_UID")
}

// hosted runs the agent of a member on a host, and starts it again with a changed kubeconfig.
type hosted struct {
	host
	kubeconfig string
	options    agent.Options
	clock      clock.Clock

	mu      sync.Mutex
	running *agent.Agent
	// problem is the reason why the present kubeconfig is not used; empty if it is.
	problem string
}

// errHosted is the error for a hosted agent without the file of its Secret.
var errHosted = errors.New("--kubeconfig is required with --member-kubeconfig-secret: the file from this Secret")

func (f flags) runHosted(ctx context.Context, options agent.Options) error {
	if f.kubeconfig == "" {
		return errHosted
	}
	h := &hosted{host: f.host, kubeconfig: f.kubeconfig, options: options, clock: clock.RealClock{}}
	if err := f.serve(ctx, h.status); err != nil {
		return err
	}
	for ctx.Err() == nil {
		contents, err := h.read()
		var member *rest.Config
		if err == nil {
			member, err = h.member(ctx)
		}
		h.setProblem(err)
		if err != nil {
			_ = retry.Wait(ctx, h.clock, rereadAfter) // the loop ends with ctx
			continue
		}
		if err := h.run(ctx, member, contents); err != nil {
			return err
		}
	}
	return nil
}

// run runs one agent until ctx ends or another usable kubeconfig is there.
func (h *hosted) run(ctx context.Context, member *rest.Config, contents []byte) error {
	options := h.options
	options.Member = member
	running, err := agent.New(options)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.running = running
	h.mu.Unlock()
	log := h.options.Log
	log.Info("Agent started", "version", version.Version, "member", member.Host, "namespace", options.Namespace, "secret", h.secret)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for retry.Wait(ctx, h.clock, rereadAfter) == nil {
			current, err := h.read()
			if err == nil && !bytes.Equal(current, contents) {
				if _, err = h.member(ctx); err == nil {
					stop()
				}
			}
			if ctx.Err() == nil {
				h.setProblem(err)
			}
		}
	}()
	running.Run(ctx)
	log.Info("Agent stopped")
	return nil
}

// status returns the state of the agent, with the problem of the present kubeconfig.
func (h *hosted) status() (state agent.State, reason string, joined bool) {
	h.mu.Lock()
	running, problem := h.running, h.problem
	h.mu.Unlock()
	if running == nil {
		return agent.BadInput, problem, false
	}
	state, reason, joined = running.Status()
	if problem != "" {
		reason += "; the agent keeps its former kubeconfig: " + problem
	}
	return state, reason, joined
}

func (h *hosted) setProblem(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != "" && problem != h.problem {
		h.options.Log.Info("The kubeconfig of the member cannot be used", "secret", h.secret, "reason", problem)
	}
	h.problem = problem
}

// read returns the contents of the kubeconfig.
func (h *hosted) read() ([]byte, error) {
	contents, err := os.ReadFile(h.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("secret %s of the host has no kubeconfig that the agent can read: put the kubeconfig of the member into its "+
			"key %s (%w)", h.secret, filepath.Base(h.kubeconfig), err)
	}
	return contents, nil
}

// member returns the cluster of the kubeconfig, if it has the mark for a hosted agent.
func (h *hosted) member(ctx context.Context) (*rest.Config, error) {
	member, err := kubeclient.Config(h.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("key %s of secret %s of the host is no kubeconfig with a current context: put the kubeconfig of the member "+
			"there (%w)", filepath.Base(h.kubeconfig), h.secret, err)
	}
	return member, h.check(ctx, member)
}

// check returns an error unless the cluster has the mark for a hosted agent.
func (h *hosted) check(ctx context.Context, member *rest.Config) error {
	cluster, err := local.New(member, h.options.Namespace)
	if err != nil {
		return fmt.Errorf("the kubeconfig in secret %s of the host cannot be used: %w", h.secret, err)
	}
	mark, err := cluster.ReadConfigMap(ctx, naming.HostedAgentConfigMap)
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s refuses the credential in the kubeconfig of secret %s of the host: renew it; if the cluster has left the fleet, "+
			"uninstall this release on the host", member.Host, h.secret)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the account in the kubeconfig of secret %s of the host has not the rights of the agent on %s: use the "+
			"ServiceAccount of the member's part of the chart, which is installed with hosted.part=member (%w)", h.secret, member.Host, err)
	case err != nil:
		return fmt.Errorf("the API server %s in the kubeconfig of secret %s of the host does not answer as one: %w", member.Host, h.secret, err)
	case mark == nil:
		return fmt.Errorf("the kubeconfig in secret %s of the host leads to %s, %s without ConfigMap %s/%s: use the kubeconfig of the member, "+
			"or install the member's part of the chart there with hosted.part=member", h.secret, member.Host, h.nature(ctx, cluster),
			h.options.Namespace, naming.HostedAgentConfigMap)
	}
	return nil
}

// nature describes a cluster without the mark.
func (h *hosted) nature(ctx context.Context, cluster *local.Cluster) string {
	namespace, name, _ := strings.Cut(h.pod, "/")
	switch {
	case h.uid != "" && cluster.HasPod(ctx, namespace, name, h.uid):
		return "the host itself"
	case cluster.ServesHub(ctx):
		return "the cluster of a hub"
	}
	return "a cluster"
}
