package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// unchanging are the nodes, pods and namespaces of every simulated member, as JSON: a small cluster that nothing happens in.
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
	requests := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")}}
	for i := range count {
		all = append(all, string(encode(&corev1.Pod{ObjectMeta: fixed("default", fmt.Sprintf("pod-%d", i)), Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d", i%nodes), Containers: []corev1.Container{{Name: "c", Resources: requests}},
		}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})))
	}
	return all
}

func namespaces() (all []string) {
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease", agentNamespace} {
		all = append(all, string(encode(&corev1.Namespace{ObjectMeta: fixed("", name)})))
	}
	return all
}
