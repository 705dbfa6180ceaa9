package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/rollout"
	"github.com/muster-fleet/muster/internal/ui/explain"
)

// errInterrupted is the error of an interrupted command. Running the command again continues.
var errInterrupted = errors.New("interrupted; completed steps stay, and you can run the command again")

// interruptible returns errInterrupted for a canceled context, else the error.
func interruptible(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return errInterrupted
	}
	return err
}

// canBeRepeated ends the message of a timeout.
const canBeRepeated = "; completed steps stay, and you can run the command again"

// within runs a step with a time limit. An error of the exceeded limit names it.
func within(ctx context.Context, limit time.Duration, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := step(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		return inTime(ctx, err)
	}
	if err = fmt.Errorf("timed out after %s: %w", limit, err); !strings.HasSuffix(err.Error(), canBeRepeated) {
		err = fmt.Errorf("%w"+canBeRepeated, err)
	}
	return timedOut{err}
}

// inTime returns the error of a step, as a timeout if the time limit of the context is exceeded.
func inTime(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return timedOut{err}
	}
	return err
}

// final wraps an error without hope of recovery.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// isFinal reports whether an error is permanent, unlike the error of a restarting API server.
func isFinal(err error) bool {
	return errors.As(err, &final{}) || kube.NotServed(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) ||
		apierrors.IsUnauthorized(err)
}

// await reads until the goal is reached or the time is up. unseen is the error of the last
// read.
func await(ctx context.Context, p *progress, look wait.ConditionWithContextFunc) (unseen, err error) {
	err = wait.PollUntilContextCancel(ctx, lookEvery, true, func(ctx context.Context) (bool, error) {
		done, err := look(ctx)
		if isFinal(err) {
			return false, err
		}
		if err != nil && unseen == nil && ctx.Err() == nil {
			p.step("%s; retrying", err)
		}
		if err == nil || ctx.Err() == nil { // for an interrupted read, the read before counts
			unseen = err
		}
		return done && err == nil, nil
	})
	return unseen, err
}

// awaitDeployment waits until a Deployment is available, and prints the obstacle.
func (c *checked) awaitDeployment(ctx context.Context, p *progress, namespace, name, what string) error {
	var last error
	unseen, err := await(ctx, p, func(ctx context.Context) (bool, error) {
		cause, ready, err := c.causeOf(ctx, namespace, name)
		switch {
		case err != nil:
			return false, fmt.Errorf("checking whether %s is running: %w", what, err)
		case ready:
			p.step("%s runs", what)
			return true, nil
		}
		if cause != nil {
			p.hindrance(what, cause)
			last = errors.New(cause.Message)
			return false, nil
		}
		if says := c.agentSays(ctx, types.NamespacedName{Namespace: namespace, Name: name}); says != "" {
			p.step("%s is not ready yet: %s", what, says)
			last = errors.New(says)
		}
		return false, nil
	})
	switch {
	case wait.Interrupted(err) && unseen != nil:
		return fmt.Errorf("%w"+canBeRepeated, unseen)
	case wait.Interrupted(err) && last != nil:
		return fmt.Errorf("%s is not ready: %w"+canBeRepeated, what, last)
	case wait.Interrupted(err):
		return fmt.Errorf("%s is not ready yet; read its log: kubectl -n %s logs deployment/%s"+canBeRepeated, what, namespace, name)
	}
	return err
}

// awaitHub waits until the hub is running and has a leader. An earlier join fails for lack of a
// hub.
func (c *checked) awaitHub(ctx context.Context, p *progress) error {
	if err := c.awaitDeployment(ctx, p, naming.SystemNamespace, hubDeployment, "the hub"); err != nil {
		return err
	}
	var last error
	unseen, err := await(ctx, p, func(ctx context.Context) (bool, error) {
		_, last = c.leader(ctx)
		if errors.As(last, &notAsked{}) {
			return false, last
		}
		return last == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("%w"+canBeRepeated, cmp.Or(unseen, last))
	}
	return err
}

// causeOf reports whether a Deployment is available, and the cause if not, as known from its
// Pods. The cause is nil if the Pods are running without being ready.
func (c *checked) causeOf(ctx context.Context, namespace, name string) (cause *rollout.Cause, ready bool, err error) {
	deployment := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, deployment); apierrors.IsNotFound(err) {
		cause, _ = rollout.CauseOf(nil, nil)
		return cause, false, nil
	} else if err != nil {
		return nil, false, err
	}
	if rollout.Done(deployment) {
		return nil, true, nil
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return nil, false, err
	}
	cause, _ = rollout.CauseOf(deployment, pods.Items)
	return cause, false, nil
}

// said matches the reason of a state in the agent's log, and the state.
var said = regexp.MustCompile(`(?:\bto=(\w+) )?\breason=("(?:[^"\\]|\\.)*")`)

// saidIn returns the last reason in a log with its remedy, or "".
func saidIn(log []byte) string {
	matches := said.FindAllSubmatch(log, -1)
	if len(matches) == 0 {
		return ""
	}
	state, quoted := string(matches[len(matches)-1][1]), string(matches[len(matches)-1][2])
	reason, err := strconv.Unquote(quoted)
	if err != nil {
		reason = quoted
	}
	if remedy := explain.AgentRemedy(state); remedy != "" {
		return strings.TrimSuffix(reason, ".") + ". What to do: " + remedy
	}
	return reason
}

// agentSays returns the last reason in an agent's log with its remedy, or "" without a readable
// log.
func (c *checked) agentSays(ctx context.Context, agent types.NamespacedName) string {
	if agent != clusterAgent && agent != memberAgent {
		return ""
	}
	clients, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return ""
	}
	pods, err := clients.CoreV1().Pods(agent.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for _, pod := range pods.Items {
		if !strings.HasPrefix(pod.Name, agent.Name+"-") {
			continue
		}
		log, err := clients.CoreV1().Pods(agent.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: new(int64(20))}).DoRaw(ctx)
		if says := saidIn(log); err == nil && says != "" {
			return says
		}
	}
	return ""
}
