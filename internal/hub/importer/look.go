package importer

import (
	"context"
	"errors"
	"net/url"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// lookNow finds out why an agent that was installed does not join, and says it.
func (c *Controller) lookNow(ctx context.Context, cluster *fleet.Cluster, seen observed) (ctrl.Result, error) {
	found, err := c.look(ctx, cluster, seen.last)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := c.Clock.Now()
	seen.history.looks++
	seen.history.lookedAt = now
	c.memory.remember(client.ObjectKeyFromObject(cluster), seen.history)
	err = c.report(ctx, cluster, func(before fleet.ClusterStatus) fleet.ClusterStatus { return describeFinding(before, found, now) })
	next := decide(seen, now).wake
	if err != nil || next.IsZero() {
		return ctrl.Result{}, err
	}
	return kube.At(next, now), nil
}

// look asks the cluster about the agent. What keeps it from looking is a finding, too.
func (c *Controller) look(ctx context.Context, cluster *fleet.Cluster, last *fleet.ImportStatus) (*problem, error) {
	blind := func(p *problem) *problem {
		return setback(reasonAgentNotJoined, "why cannot be seen, because %s", p.message)
	}
	from, err := c.read(ctx, cluster)
	var p *problem
	if errors.As(err, &p) {
		return blind(p), nil
	} else if err != nil {
		return nil, err
	}
	d, err := c.visit(from.kubeconfig)
	if err != nil {
		return blind(badInput(reasonInvalidKubeconfig, "Secret %s: %s", from.key, err)), nil
	}
	defer d.close()
	deployment, pods, err := d.agent(ctx, last.Namespace)
	if err != nil {
		return blind(explain(d.server, "looking at the agent", err)), nil
	}
	return diagnose(deployment, pods, from.url), nil
}

// agent reads the Deployment of the agent, which may be gone, and its Pods.
func (d *downstream) agent(ctx context.Context, namespace string) (*appsv1.Deployment, []corev1.Pod, error) {
	deployment := &appsv1.Deployment{}
	if err := d.get(ctx, "/apis/apps/v1/namespaces/"+namespace+"/deployments/fleet-agent", deployment); apierrors.IsNotFound(err) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	var pods corev1.PodList
	err := d.get(ctx, "/api/v1/namespaces/"+namespace+"/pods?labelSelector="+url.QueryEscape("app=fleet-agent"), &pods)
	return deployment, pods.Items, err
}

// describeFinding is the status of a Cluster whose agent was installed and does not join, unless it has done so meanwhile.
func describeFinding(before fleet.ClusterStatus, found *problem, now time.Time) fleet.ClusterStatus {
	after := *before.DeepCopy()
	if agentOf(before) == agentWell {
		return after
	}
	said := "the agent is installed and has not joined: " + found.message
	after.Conditions = kube.SetCondition(after.Conditions, now, kube.Condition(fleet.ConditionImported, false, found.reason, said))
	return after
}
