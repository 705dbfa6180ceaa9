package importer

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// The reasons of the condition Imported of an agent that was installed and does not join.
const (
	reasonAgentNotJoined         = "AgentNotJoined"
	reasonAgentRemoved           = "AgentRemoved"
	reasonAgentRefused           = "AgentRefused"
	reasonAgentUnschedulable     = "AgentUnschedulable"
	reasonAgentImageNotPulled    = "AgentImageNotPulled"
	reasonAgentNotStarted        = "AgentNotStarted"
	reasonAgentWrongArchitecture = "AgentWrongArchitecture"
	reasonAgentOutOfMemory       = "AgentOutOfMemory"
	reasonAgentCrashing          = "AgentCrashing"
)

// wrongArchitecture is the error of a kernel for a program of another processor.
const wrongArchitecture = "exec format error"

// diagnoseNow finds out why an agent that was installed does not join, and reports the cause.
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

// findCause asks the cluster about the agent. A connection that fails is a cause, too.
func (c *Controller) findCause(ctx context.Context, cluster *fleet.Cluster, last *fleet.ImportStatus) (*problem, error) {
	unknown := func(p *problem) *problem {
		return setback(reasonAgentNotJoined, "why cannot be seen, because %s", p.message)
	}
	from, err := c.read(ctx, cluster)
	var p *problem
	if errors.As(err, &p) {
		return unknown(p), nil
	} else if err != nil {
		return nil, err
	}
	d, err := c.connect(from.kubeconfig)
	if err != nil {
		return unknown(badInput(reasonInvalidKubeconfig, "Secret %s: %s", from.key, err)), nil
	}
	defer d.close()
	deployment, pods, err := d.agent(ctx, last.Namespace)
	if err != nil {
		return unknown(d.explain("looking at the agent", err)), nil
	}
	return causeOf(deployment, pods, from.url), nil
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

// causeOf says why an agent that was installed does not join, as far as its Deployment and its Pods tell. The Deployment is nil if it is gone.
func causeOf(deployment *appsv1.Deployment, pods []corev1.Pod, hub string) *problem {
	if deployment == nil {
		return setback(reasonAgentRemoved, "its Deployment is gone: somebody has removed it; another redeployAgentGeneration of the Cluster installs it at once")
	}
	if replicas := deployment.Spec.Replicas; replicas != nil && *replicas == 0 {
		return setback(reasonAgentRemoved, "its Deployment is scaled to 0 replicas: somebody has switched it off")
	}
	pod := newest(pods)
	if pod == nil {
		return causeOfDeployment(deployment)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return setback(reasonAgentUnschedulable, "no node takes its Pod %s: %s; see its tolerations, affinity and resources", pod.Name, kube.Clip(condition.Message, maxMessage))
		}
	}
	if pod.Spec.NodeName == "" {
		return setback(reasonAgentUnschedulable, "no scheduler has found a node for its Pod %s yet: does the cluster have one that runs?", pod.Name)
	}
	for i := range pod.Status.ContainerStatuses {
		if found := causeOfContainer(pod, &pod.Status.ContainerStatuses[i]); found != nil {
			return found
		}
	}
	if len(pod.Status.ContainerStatuses) == 0 || pod.Status.Phase == corev1.PodPending {
		return setback(reasonAgentNotStarted, "its Pod %s is on node %s, which has not started it: is its kubelet well?", pod.Name, pod.Spec.NodeName)
	}
	return setback(reasonAgentNotJoined, "its Pod %s runs and has not come through to %s: kubectl -n %s logs %s says why", pod.Name, hub, pod.Namespace, pod.Name)
}

// causeOfDeployment says why a Deployment has no Pod.
func causeOfDeployment(deployment *appsv1.Deployment) *problem {
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return setback(reasonAgentRefused, "the cluster refuses its Pod: %s", kube.Clip(condition.Message, maxMessage))
		}
	}
	return setback(reasonAgentNotStarted, "its Deployment has no Pod: do the cluster's own controllers run?")
}

// causeOfContainer says what keeps a container from running; nil if nothing does.
func causeOfContainer(pod *corev1.Pod, status *corev1.ContainerStatus) *problem {
	if waiting := status.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
			return setback(reasonAgentImageNotPulled, "its image %s cannot be pulled (%s): %s; correct agentImage, global.cattle.systemDefaultRegistry or global.imagePullSecrets "+
				"of the fleet chart, or privateRepoURL or agentPullSecrets of the Cluster", status.Image, waiting.Reason, kube.Clip(waiting.Message, maxMessage))
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CreatePodSandboxError":
			if strings.Contains(waiting.Message, wrongArchitecture) {
				return otherArchitecture(pod, status)
			}
			return setback(reasonAgentNotStarted, "the container of its Pod %s cannot be started (%s): %s", pod.Name, waiting.Reason, kube.Clip(waiting.Message, maxMessage))
		case "ContainerCreating", "PodInitializing":
			return setback(reasonAgentNotStarted, "node %s has not started its Pod %s yet (%s), which mostly means that it is pulling the image %s", pod.Spec.NodeName, pod.Name,
				waiting.Reason, status.Image)
		}
	}
	ended := status.State.Terminated
	if ended == nil {
		ended = status.LastTerminationState.Terminated
	}
	switch {
	case ended == nil || status.State.Running != nil && status.Ready:
		return nil
	case strings.Contains(ended.Message, wrongArchitecture):
		return otherArchitecture(pod, status)
	case ended.Reason == "OOMKilled":
		return setback(reasonAgentOutOfMemory, "its Pod %s went over its memory limit and was ended %s: give it more with agentResources of the Cluster", pod.Name, times(status.RestartCount))
	}
	said := strings.TrimSpace(ended.Message)
	if said == "" {
		said = fmt.Sprintf("kubectl -n %s logs %s --previous says why", pod.Namespace, pod.Name)
	}
	return setback(reasonAgentCrashing, "its Pod %s ended %s, the last time with exit code %d (%s): %s", pod.Name, times(status.RestartCount), ended.ExitCode, ended.Reason, kube.Clip(said, maxMessage))
}

func otherArchitecture(pod *corev1.Pod, status *corev1.ContainerStatus) *problem {
	return setback(reasonAgentWrongArchitecture, "its image %s is not built for the architecture of node %s (%s): use one that is, or keep the agent on other nodes with agentAffinity",
		status.Image, pod.Spec.NodeName, wrongArchitecture)
}

func times(restarts int32) string {
	if restarts <= 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", restarts)
}

// newest is the Pod that was created last, of those that are not being deleted.
func newest(pods []corev1.Pod) *corev1.Pod {
	var found *corev1.Pod
	for i := range pods {
		if pod := &pods[i]; pod.DeletionTimestamp == nil && (found == nil || found.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			found = pod
		}
	}
	return found
}
