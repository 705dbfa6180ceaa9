package report

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/muster-fleet/muster/internal/kubeclient"
)

// pods is the store of the scheduled pods, except ended ones. It keeps only the requests of each
// pod, and their sum. A pod's change therefore costs the same in a cluster of ten pods and of ten
// thousand.
type pods struct {
	kubeclient.Store[*corev1.Pod]
	byName map[cache.ObjectName]corev1.ResourceList
	sum    corev1.ResourceList
}

func newPods(changed chan struct{}) *pods {
	p := &pods{byName: map[cache.ObjectName]corev1.ResourceList{}, sum: corev1.ResourceList{}}
	p.Store = kubeclient.Store[*corev1.Pod]{
		Changed: changed, Put: func(pod *corev1.Pod) bool { return p.set(pod, requests(pod)) }, Drop: func(pod *corev1.Pod) { p.set(pod, nil) },
		Reset: func() { clear(p.byName); p.sum = corev1.ResourceList{} }, Strip: stripPod, InPages: true,
	}
	return p
}

// stripPod keeps the identity of the pod, and the input of requests.
func stripPod(pod *corev1.Pod) *corev1.Pod {
	containers := func(whole []corev1.Container) []corev1.Container {
		stripped := make([]corev1.Container, len(whole))
		for i, c := range whole {
			stripped[i] = corev1.Container{
				Name: c.Name, RestartPolicy: c.RestartPolicy, Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests},
			}
		}
		return stripped
	}
	stripped := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, Overhead: pod.Spec.Overhead,
			Containers: containers(pod.Spec.Containers), InitContainers: containers(pod.Spec.InitContainers),
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if pod.Spec.Resources != nil {
		stripped.Spec.Resources = &corev1.ResourceRequirements{Requests: pod.Spec.Resources.Requests}
	}
	return stripped
}

// requests returns the resources a pod takes from its node, including one of its pod places; nil if
// it takes nothing.
func requests(pod *corev1.Pod) corev1.ResourceList {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	list := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	list[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return list
}

// set replaces the requests of one pod. Most updates of a pod do not change them.
func (p *pods) set(pod *corev1.Pod, list corev1.ResourceList) bool {
	name := cache.MetaObjectToName(pod)
	if equalLists(p.byName[name], list) {
		return false
	}
	combine(p.sum, (*resource.Quantity).Sub, p.byName[name])
	combine(p.sum, (*resource.Quantity).Add, list)
	if list == nil {
		delete(p.byName, name)
	} else {
		p.byName[name] = list
	}
	return true
}

// available returns the unrequested part of allocatable, never negative; nil before the first list
// of the pods.
func (p *pods) available(allocatable corev1.ResourceList) corev1.ResourceList {
	p.Lock()
	defer p.Unlock()
	if !p.Listed {
		return nil
	}
	left := corev1.ResourceList{}
	for name, quantity := range allocatable {
		rest := quantity.DeepCopy()
		if taken, ok := p.sum[name]; ok {
			rest.Sub(taken)
		}
		if rest.Sign() < 0 {
			rest = *resource.NewQuantity(0, quantity.Format)
		}
		left[name] = rest
	}
	return left
}

func equalLists(a, b corev1.ResourceList) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	for name, quantity := range a {
		if other, ok := b[name]; !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
