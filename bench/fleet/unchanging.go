package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// unchanging are the nodes, pods and namespaces of every simulated member, as JSON: a small
// cluster. A CronJob may run beside them.
var unchanging = map[string][]string{"nodes": nodes(3), "pods": pods(20, 3), "namespaces": namespaces()}

func fixed(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), ResourceVersion: "1"}
}

func nodes(count int) (all []string) {
	capacity := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}
	for i := range count {
		all = append(all, string(encode(&corev1.Node{ObjectMeta: fixed("", fmt.Sprintf("node-%d", i)), Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}})))
	}
	return all
}

func pods(count, nodes int) (all []string) {
	for i := range count {
		all = append(all, string(encode(podOn(fmt.Sprintf("pod-%d", i), fmt.Sprintf("node-%d", i%nodes)))))
	}
	return all
}

// podOn returns a running Pod.
func podOn(name, node string) *corev1.Pod {
	requests := corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")}
	container := corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}
	return &corev1.Pod{
		ObjectMeta: fixed("default", name), Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{container}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func namespaces() (all []string) {
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease", agentNamespace} {
		all = append(all, string(encode(&corev1.Namespace{ObjectMeta: fixed("", name)})))
	}
	return all
}

// jobPod is the name of the Pod of a CronJob's Jobs.
const jobPod = "job"

// runJobs runs the Pod of a Job for a third of each period, as a CronJob does, until ctx ends. It
// starts at a random time.
func (m *memberAPI) runJobs(ctx context.Context, period time.Duration) {
	wait := time.Duration(rand.Int64N(int64(period))) //nolint:gosec // the members need not start their Jobs together
	for {
		for _, step := range []struct {
			do    func()
			after time.Duration
		}{
			{func() { m.put("pods", podOn(jobPod, "node-0")) }, wait},
			{func() { m.remove("pods", jobPod) }, period / 3}, // it has succeeded, so that the agent's selector shows it no more
		} {
			select {
			case <-ctx.Done():
				return
			case <-time.After(step.after):
				step.do()
			}
		}
		wait = period - period/3
	}
}
