package hostnode

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/klog/v2"
)

// reportLoop writes the status after every change, until ctx ends.
func (r *runner) reportLoop(ctx context.Context) {
	wait := retryFirst
	for {
		select {
		case <-r.changed:
		case <-ctx.Done():
			return
		}
		err := r.report(ctx)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			wait = retryFirst // The watch delivers the newer object.
			continue
		}
		if ctx.Err() != nil {
			return
		}
		klog.FromContext(ctx).Error(err, "Reporting the status of a pod; trying again", "pod", r.key)
		if !pause(ctx, wait) {
			return
		}
		wait = min(2*wait, retryMax)
		r.touch()
	}
}

// report patches the difference between the newest seen status and the status from the containers.
func (r *runner) report(ctx context.Context) error {
	pod, _, _ := r.current()
	observed := map[string]observation{}
	for name, c := range r.containers {
		observed[name] = c.observe()
	}
	status := podStatus(pod, observed, r.address(), metav1.Now().Rfc3339Copy())
	if apiequality.Semantic.DeepEqual(pod.Status, status) {
		return nil
	}
	patch, err := statusPatch(pod, status)
	if err != nil {
		return err
	}
	patched, err := r.node.client.CoreV1().Pods(r.key.Namespace).Patch(ctx, r.key.Name,
		types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("reporting the status of pod %s: %w", r.key, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pod = patched
	return nil
}

// statusPatch includes the uid, so that it cannot change a later Pod of the name.
func statusPatch(pod *corev1.Pod, status corev1.PodStatus) ([]byte, error) {
	before, err := json.Marshal(corev1.Pod{Status: pod.Status})
	if err != nil {
		return nil, fmt.Errorf("encoding the status of pod %s: %w", pod.Name, err)
	}
	after, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Status: status})
	if err != nil {
		return nil, fmt.Errorf("encoding the status of pod %s: %w", pod.Name, err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("comparing the status of pod %s: %w", pod.Name, err)
	}
	return patch, nil
}
