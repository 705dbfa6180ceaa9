package importer

import (
	"context"
	"errors"
	"net/url"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/rollout"
)

// diagnoseNow determines why an installed agent does not join, and writes the cause.
func (c *Controller) diagnoseNow(ctx context.Context, cluster *fleet.Cluster, o observed) (ctrl.Result, error) {
	cause, err := c.findCause(ctx, cluster, o.last)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := c.Clock.Now()
	o.history.diagnoses++
	o.history.diagnosed = now
	err = c.report(ctx, cluster, func(status fleet.ClusterStatus) fleet.ClusterStatus { return describeCause(status, cause, now) })
	next := decide(o, now).wake
	if err != nil || next.IsZero() {
		return ctrl.Result{}, err
	}
	return kube.At(next, now), nil
}

// findCause queries the cluster about the agent. A failing connection is a cause, too.
func (c *Controller) findCause(ctx context.Context, cluster *fleet.Cluster, last *fleet.ImportStatus) (*problem, error) {
	unknown := func(p *problem) *problem {
		return setback(reasons.AgentNotJoined, "the cause is unknown, because %s", p.message)
	}
	from, err := c.read(ctx, cluster)
	var p *problem
	if errors.As(err, &p) {
		return unknown(p), nil
	} else if err != nil {
		return nil, err
	}
	d, err := c.connect(from.Kubeconfig)
	if err != nil {
		return unknown(badInput(reasons.InvalidKubeconfig, "Secret %s: %s", from.key, err)), nil
	}
	defer d.close()
	deployment, pods, err := d.agent(ctx, last.Namespace)
	if err != nil {
		return unknown(d.explain("looking at the agent", err)), nil
	}
	return causeOf(deployment, pods, from.url), nil
}

// agent reads the Deployment of the agent, nil if it is gone, and its Pods.
func (d *downstream) agent(ctx context.Context, namespace string) (*appsv1.Deployment, []corev1.Pod, error) {
	if !isNamespace(namespace) {
		return nil, nil, errNoNamespace
	}
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

// advice holds the remedies, in the words of a Cluster and the chart fleet.
var advice = map[rollout.Reason]string{
	rollout.Gone: "; to install it at once, change redeployAgentGeneration of the Cluster",
	rollout.ImageNotPulled: "; correct agentImage, global.cattle.systemDefaultRegistry or global.imagePullSecrets of the fleet chart, or " +
		"privateRepoURL or agentPullSecrets of the Cluster",
	rollout.OutOfMemory:       ": give it more with agentResources of the Cluster",
	rollout.WrongArchitecture: ": use one that is, or keep the agent on other nodes with agentAffinity",
}

// keptBy maps the causes of a stopped Deployment to reasons of the condition Imported.
var keptBy = map[rollout.Reason]string{
	rollout.Gone: reasons.AgentRemoved, rollout.SwitchedOff: reasons.AgentRemoved, rollout.Refused: reasons.AgentRefused,
	rollout.Unschedulable:  reasons.AgentUnschedulable,
	rollout.ImageNotPulled: reasons.AgentImageNotPulled, rollout.NotStarted: reasons.AgentNotStarted,
	rollout.WrongArchitecture: reasons.AgentWrongArchitecture,
	rollout.OutOfMemory:       reasons.AgentOutOfMemory, rollout.Crashing: reasons.AgentCrashing,
}

// causeOf returns the reason why an installed agent does not join, from its Deployment and its
// Pods. The Deployment is nil if it is gone.
func causeOf(deployment *appsv1.Deployment, pods []corev1.Pod, hub string) *problem {
	cause, pod := rollout.CauseOf(deployment, pods)
	if cause != nil {
		return setback(keptBy[cause.Reason], "%s%s", cause.Message, advice[cause.Reason])
	}
	return setback(reasons.AgentNotJoined, "its Pod %s runs, but has not reached %s; for the cause: kubectl -n %s logs %s",
		pod.Name, hub, pod.Namespace, pod.Name)
}
