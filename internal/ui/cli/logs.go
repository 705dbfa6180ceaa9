package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// agentLog is the command muster logs.
type agentLog struct {
	genericiooptions.IOStreams
	*access
	// member is the context of the member.
	member string
	tail   int64
	follow bool
	since  time.Duration
}

func newLogs(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	l := &agentLog{IOStreams: streams, access: h}
	looked := lookedFor{"muster logs", kindsNamed("members")}
	command := &cobra.Command{
		Use:   "logs [clusters|memberclusters] NAME",
		Short: "Print the log of a member's agent",
		Long: `Print the log of a member's agent. The hub has no access to its members, so the log comes
from the member itself: --member-context is its context in your kubeconfig. Without the flag,
the context has the name of the member.`,
		Example: `  muster logs clusters/web --member-context edge-1

  # Follow the log
  muster logs clusters/web --member-context edge-1 --follow`,
		Args:              takes(1, 2, "the name of a member"),
		ValidArgsFunction: h.completeNames(looked),
		RunE: func(command *cobra.Command, args []string) error {
			member, _, err := h.subject(command.Context(), looked, args)
			if err != nil {
				return err
			}
			return l.print(command.Context(), member)
		},
	}
	command.Flags().StringVar(&l.member, "member-context", "", "Context of the member (default: the name of the member)")
	command.Flags().Int64Var(&l.tail, "tail", 100, "Number of lines from the end of the log; -1 for all")
	command.Flags().BoolVarP(&l.follow, "follow", "f", false, "Print new lines until Ctrl-C")
	command.Flags().DurationVar(&l.since, "since", 0, "Print only lines of this time, such as 10m")
	complete(command, "member-context", h.contexts)
	return h.acceptAllNamespaces(command)
}

func (l *agentLog) print(ctx context.Context, member client.Object) error {
	agent := clusterAgent
	if _, isMemberCluster := member.(*clusterv1beta1.MemberCluster); isMemberCluster {
		agent = memberAgent
	}
	contextName := cmp.Or(l.member, member.GetName())
	cluster, err := l.in(contextName, "cluster "+contextName).checked()
	if err != nil && l.member == "" {
		return fmt.Errorf("%w; set --member-context to the context of %s, or read the log there: kubectl -n %s logs deployment/%s",
			err, l.title(member), agent.Namespace, agent.Name)
	}
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(cluster.config)
	if err != nil {
		return err
	}
	pod, err := cluster.newestPod(ctx, clients, agent)
	if err != nil {
		return fmt.Errorf("finding the agent of %s on %s: %w", l.title(member), contextName, err)
	}
	options := &corev1.PodLogOptions{Container: agent.Name, Follow: l.follow}
	if l.tail >= 0 {
		options.TailLines = &l.tail
	}
	if l.since > 0 {
		seconds := max(int64(l.since.Seconds()), 1)
		options.SinceSeconds = &seconds
	}
	stream, err := clients.CoreV1().Pods(agent.Namespace).GetLogs(pod, options).Stream(ctx)
	if err != nil {
		return fmt.Errorf("reading the log of Pod %s/%s on %s: %w", agent.Namespace, pod, contextName, err)
	}
	defer func() { _ = stream.Close() }()
	if _, err := io.Copy(l.Out, stream); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("reading the log of Pod %s/%s on %s: %w", agent.Namespace, pod, contextName, err)
	}
	return nil
}

// newestPod returns the newest Pod of an agent.
func (c *checked) newestPod(ctx context.Context, clients kubernetes.Interface, agent types.NamespacedName) (string, error) {
	deployment, err := clients.AppsV1().Deployments(agent.Namespace).Get(ctx, agent.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("there is no Deployment %s: install the agent, or choose another --member-context", agent)
	}
	if err != nil {
		return "", err
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return "", err
	}
	pods, err := clients.CoreV1().Pods(agent.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return "", err
	}
	if len(pods.Items) == 0 {
		if cause, _, err := c.causeOf(ctx, agent.Namespace, agent.Name); err == nil && cause != nil {
			return "", fmt.Errorf("the Deployment %s has no Pods: %s", agent, cause.Message)
		}
		return "", fmt.Errorf("the Deployment %s has no Pods yet", agent)
	}
	return slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }).Name, nil
}
