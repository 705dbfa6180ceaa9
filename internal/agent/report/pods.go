package report

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	resourcehelper "k8s.io/component-helpers/resource"
)

// pods is the store that a watch of the scheduled pods which have not ended keeps up to date. Of a pod it keeps only what it
// requests, and it keeps the sum of that, so that one pod's change costs the same in a cluster of ten pods and of ten thousand.
type pods struct {
	changed chan struct{}

	mu     sync.Mutex
	synced bool
	byName map[cache.ObjectName]corev1.ResourceList
	sum    corev1.ResourceList
}

func newPods(changed chan struct{}) *pods {
	return &pods{changed: changed, byName: map[cache.ObjectName]corev1.ResourceList{}, sum: corev1.ResourceList{}}
}

// Transformer implements cache.TransformingStore: whole pods are dropped one by one while the first list is read.
func (p *pods) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if pod, ok := obj.(*corev1.Pod); ok {
			return stripPod(pod), nil
		}
		return obj, nil
	}
}

// stripPod keeps the names by which a store knows the pod and what requests is made of.
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

// requests is what a pod takes away from its node, a place for one pod included; nil if it takes nothing.
func requests(pod *corev1.Pod) corev1.ResourceList {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	list := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	list[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return list
}

// set replaces what one pod takes. The lock is held.
func (p *pods) set(name cache.ObjectName, list corev1.ResourceList) {
	subtract(p.sum, p.byName[name])
	add(p.sum, list)
	if list == nil {
		delete(p.byName, name)
	} else {
		p.byName[name] = list
	}
}

func (p *pods) update(change func()) error {
	p.mu.Lock()
	change()
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
	return nil
}

// Add implements cache.ReflectorStore.
func (p *pods) Add(obj any) error { return p.Update(obj) }

// Update implements cache.ReflectorStore.
func (p *pods) Update(obj any) error {
	pod := obj.(*corev1.Pod)
	name, list := cache.MetaObjectToName(pod), requests(pod)
	p.mu.Lock()
	same := equalLists(p.byName[name], list)
	p.mu.Unlock()
	if same {
		// Most of what happens to a pod does not change what it requests.
		return nil
	}
	return p.update(func() { p.set(name, list) })
}

// Delete implements cache.ReflectorStore.
func (p *pods) Delete(obj any) error {
	name := cache.MetaObjectToName(obj.(*corev1.Pod))
	return p.update(func() { p.set(name, nil) })
}

// Replace implements cache.ReflectorStore.
func (p *pods) Replace(list []any, _ string) error {
	return p.update(func() {
		p.synced, p.sum = true, corev1.ResourceList{}
		p.byName = make(map[cache.ObjectName]corev1.ResourceList, len(list))
		for _, obj := range list {
			pod := obj.(*corev1.Pod)
			p.set(cache.MetaObjectToName(pod), requests(pod))
		}
	})
}

// Resync implements cache.ReflectorStore.
func (p *pods) Resync() error { return nil }

// available is what of allocatable no pod requests, never less than nothing; nil until the pods have been listed once.
func (p *pods) available(allocatable corev1.ResourceList) corev1.ResourceList {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.synced {
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

func subtract(sum, less corev1.ResourceList) {
	for name, quantity := range less {
		total := sum[name].DeepCopy()
		total.Sub(quantity)
		sum[name] = total
	}
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
