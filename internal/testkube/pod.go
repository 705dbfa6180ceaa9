package testkube

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PlayScheduler waits for the Pods of a namespace with a label, and finds no node for them, as a
// scheduler does. Control planes of tests run none.
func PlayScheduler(t *testing.T, kube client.Client, namespace string, labels map[string]string, message string) {
	t.Helper()
	eachPod(t, kube, namespace, labels, func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		}}
	})
}

// PlayBinder reports an Event of an unbound PersistentVolumeClaim, as the volume controller does.
func PlayBinder(t *testing.T, kube client.Client, namespace, claim, reason, message string) {
	t.Helper()
	Eventually(t, "PersistentVolumeClaim "+claim+" has an Event", func() error {
		found := &corev1.PersistentVolumeClaim{}
		if err := kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: claim}, found); err != nil {
			return err
		}
		return kube.Create(t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: claim}, Type: corev1.EventTypeWarning,
			Reason: reason, Message: message, LastTimestamp: metav1.Now(), InvolvedObject: corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: claim, UID: found.UID,
			},
		})
	})
}

// PlayKubelet waits for the Pods of a namespace with a label. It writes their phase and the status
// of their only container. Control planes of tests have no node.
func PlayKubelet(t *testing.T, kube client.Client, namespace string, labels map[string]string, phase corev1.PodPhase,
	status corev1.ContainerStatus) {
	t.Helper()
	eachPod(t, kube, namespace, labels, func(pod *corev1.Pod) {
		status.Name, status.Image = pod.Spec.Containers[0].Name, pod.Spec.Containers[0].Image
		pod.Status.Phase, pod.Status.ContainerStatuses = phase, []corev1.ContainerStatus{status}
	})
}

// eachPod waits for Pods, and changes the status of each.
func eachPod(t *testing.T, kube client.Client, namespace string, labels map[string]string, change func(*corev1.Pod)) {
	t.Helper()
	Eventually(t, "a Pod has a status", func() error {
		var pods corev1.PodList
		if err := kube.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return errors.New("there is no Pod")
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			change(pod)
			if err := kube.Status().Update(t.Context(), pod); err != nil {
				return err
			}
		}
		return nil
	})
}
