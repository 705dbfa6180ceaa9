package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func container(pairs ...string) corev1.Container {
	return corev1.Container{Image: "large", Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}
}

func sidecar(pairs ...string) corev1.Container {
	always := corev1.ContainerRestartPolicyAlways
	c := container(pairs...)
	c.RestartPolicy = &always
	return c
}

func pod(name string, spec corev1.PodSpec) *corev1.Pod {
	if spec.NodeName == "" {
		spec.NodeName = "node"
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"a": "b"}}, Spec: spec}
}

func TestAvailableIsWhatPodsLeave(t *testing.T) {
	unscheduled, ended := pod("a", corev1.PodSpec{Containers: []corev1.Container{container("cpu", "1")}}), pod("a", corev1.PodSpec{})
	unscheduled.Spec.NodeName, ended.Status.Phase = "", corev1.PodSucceeded
	for name, row := range map[string]struct {
		allocatable corev1.ResourceList
		pods        []any
		want        corev1.ResourceList
	}{
		"without pods it is everything": {list("cpu", "4", "pods", "110"), nil, list("cpu", "4", "pods", "110")},
		"containers add up, each pod takes a place, and every resource counts": {
			list("cpu", "4", "memory", "8Gi", "example.com/gpu", "2", "pods", "110"),
			[]any{
				pod("a", corev1.PodSpec{
					Containers: []corev1.Container{container("cpu", "500m", "memory", "1Gi"), container("cpu", "1", "example.com/gpu", "1")},
				}),
				pod("b", corev1.PodSpec{Containers: []corev1.Container{container("memory", "1Gi")}}),
			},
			list("cpu", "2500m", "memory", "6Gi", "example.com/gpu", "1", "pods", "108"),
		},
		"an init container counts only beyond the others, a side-car beside them": {
			list("cpu", "10"),
			[]any{
				pod("a", corev1.PodSpec{
					InitContainers: []corev1.Container{container("cpu", "3")}, Containers: []corev1.Container{container("cpu", "1")},
				}),
				pod("b", corev1.PodSpec{
					InitContainers: []corev1.Container{sidecar("cpu", "2")}, Containers: []corev1.Container{container("cpu", "1")},
				}),
			},
			list("cpu", "4"),
		},
		"overhead counts": {
			list("cpu", "4"), []any{pod("a", corev1.PodSpec{Overhead: list("cpu", "250m"), Containers: []corev1.Container{container("cpu", "1")}})},
			list("cpu", "2750m"),
		},
		"what is not scheduled, or has ended, takes nothing": {list("cpu", "4", "pods", "9"), []any{unscheduled, ended},
			list("cpu", "4", "pods", "9")},
		"it is never less than nothing": {
			list("cpu", "1"), []any{pod("a", corev1.PodSpec{Containers: []corev1.Container{container("cpu", "2")}})}, list("cpu", "0"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPods(make(chan struct{}, 1))
			if got := p.available(row.allocatable); got != nil {
				t.Errorf("before the list: %v", got)
			}
			var stripped []any
			for _, obj := range row.pods {
				s, err := p.Transformer()(obj)
				if err != nil || s.(*corev1.Pod).Labels != nil {
					t.Fatalf("stripping %v: %v, %v", obj, s, err)
				}
				stripped = append(stripped, s)
			}
			for form, objects := range map[string][]any{"whole": row.pods, "stripped": stripped} {
				_ = p.Replace(objects, "") // the store never fails
				if diff := cmp.Diff(row.want, p.available(row.allocatable)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", form, diff)
				}
			}
		})
	}
}

func TestAvailableFollowsEveryPod(t *testing.T) {
	changed := make(chan struct{}, 1)
	p := newPods(changed)
	notified := func() bool {
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	_ = p.Replace(nil, "") // the store never fails
	notified()
	one := pod("a", corev1.PodSpec{Containers: []corev1.Container{container("cpu", "1")}})
	for _, step := range []struct {
		do       func(any) error
		obj      *corev1.Pod
		want     corev1.ResourceList
		notified bool
	}{
		{p.Add, one, list("cpu", "3"), true},
		{p.Update, one.DeepCopy(), list("cpu", "3"), false},
		{p.Update, pod("a", corev1.PodSpec{Containers: []corev1.Container{container("cpu", "2")}}), list("cpu", "2"), true},
		{p.Add, pod("b", corev1.PodSpec{}), list("cpu", "2"), true},
		{p.Delete, one, list("cpu", "4"), true},
	} {
		_ = step.do(step.obj)
		if diff := cmp.Diff(step.want, p.available(list("cpu", "4"))); diff != "" || notified() != step.notified {
			t.Errorf("after %s (-want +got), notified otherwise than %t:\n%s", step.obj.Name, step.notified, diff)
		}
	}
}
