package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// playedPod is the Pod that the second cluster made of the agent's Deployment, on a node
// that the test plays.
func (i importing) playedPod() *corev1.Pod {
	i.t.Helper()
	var pods corev1.PodList
	i.eventually("the agent has a Pod", func() error {
		err := i.remote.List(context.Background(), &pods, client.InNamespace(i.agentNamespace), client.MatchingLabels{"app": "fleet-agent"})
		if err == nil && len(pods.Items) != 1 {
			err = fmt.Errorf("there are %d", len(pods.Items))
		}
		return err
	})
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "played"}}
	i.check(i.remote.SubResource("binding").Create(context.Background(), &pods.Items[0], binding))
	i.check(i.remoteGet(&pods.Items[0], pods.Items[0].Name))
	return &pods.Items[0]
}

func TestAnImportedClusterSaysWhyItsAgentDoesNotJoin(t *testing.T) {
	i := newImporting(t, nil)
	i.begin()
	i.imported("my-cluster", "Imported")
	const image = "registry.example.com/never-built:1"
	pod := i.playedPod()
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "fleet-agent", Image: image,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"}},
	}}}
	i.check(i.remote.Status().Update(context.Background(), pod))

	cluster := i.imported("my-cluster", "AgentImageNotPulled", func(c *fleet.Cluster) error {
		ready := kube.FindCondition(c.Status.Conditions, fleet.ConditionReady)
		if ready == nil || ready.Reason != "AgentImageNotPulled" || !strings.Contains(ready.Message, image) {
			return errors.New("its condition Ready does not say so")
		}
		return nil
	})
	if cluster.Status.Import == nil {
		t.Error("what was handed over is forgotten")
	}
	i.runAgent()
	i.untilReady("my-cluster", "Ready")
	i.imported("my-cluster", "Imported")
}
