package hostnode

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	always = corev1.ContainerRestartPolicyAlways
	then   = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	later  = metav1.NewTime(then.Add(time.Minute))
)

func running(ready bool) observation {
	return observation{
		State:   corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: then}},
		Started: true, Ready: ready, PID: 7,
	}
}

func ended(code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
}

func TestPhase(t *testing.T) {
	crashed := observation{State: waiting("CrashLoopBackOff", ""), Last: ended(1)}
	for name, test := range map[string]struct {
		policy   corev1.RestartPolicy
		deleting bool
		init     *observation
		observed []observation
		want     corev1.PodPhase
	}{
		"nothing started":                   {policy: "Always", observed: []observation{{}}, want: "Pending"},
		"one of two started":                {policy: "Always", observed: []observation{running(true), {}}, want: "Pending"},
		"all run":                           {policy: "Always", observed: []observation{running(false), running(true)}, want: "Running"},
		"a container waits for its restart": {policy: "Always", observed: []observation{crashed}, want: "Running"},
		"a container that will be restarted has ended": {policy: "Always", observed: []observation{{State: ended(0)}}, want: "Running"},
		"a job failed and tries again":                 {policy: "OnFailure", observed: []observation{crashed}, want: "Running"},
		"a job is done":                                {policy: "OnFailure", observed: []observation{{State: ended(0)}}, want: "Succeeded"},
		"one of two is done": {
			policy: "Never", observed: []observation{{State: ended(0)}, running(true)}, want: "Running",
		},
		"one of two failed for good": {
			policy: "Never", observed: []observation{{State: ended(0)}, {State: ended(2)}}, want: "Failed",
		},
		"an init container failed for good": {
			policy: "Never", init: &observation{State: ended(1)}, observed: []observation{{}}, want: "Failed",
		},
		"an init container will be tried again": {
			policy: "Always", init: &observation{State: ended(1)}, observed: []observation{{}}, want: "Pending",
		},
		"deleted and stopped by its own will": {
			policy: "Always", deleting: true, observed: []observation{{State: ended(0)}}, want: "Succeeded",
		},
		"deleted and killed": {
			policy: "Always", deleting: true, observed: []observation{{State: ended(137)}}, want: "Failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: test.policy}}
			if test.deleting {
				pod.DeletionTimestamp = &then
			}
			observed := map[string]observation{}
			if test.init != nil {
				pod.Spec.InitContainers = []corev1.Container{{Name: "init"}}
				observed["init"] = *test.init
			}
			for i, o := range test.observed {
				name := string(rune('a' + i))
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name})
				observed[name] = o
			}
			if got := phase(pod, observed); got != test.want {
				t.Errorf("phase() = %s, want %s", got, test.want)
			}
		})
	}
}

func TestStatusOfAReadyPod(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Generation: 3},
		Spec: corev1.PodSpec{
			RestartPolicy:  "Always",
			InitContainers: []corev1.Container{{Name: "side", Image: "s", RestartPolicy: &always}},
			Containers:     []corev1.Container{{Name: "web", Image: "w"}},
		},
		Status: corev1.PodStatus{StartTime: &then, QOSClass: "BestEffort", Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: "True", LastTransitionTime: then},
			{Type: "example.com/mine", Status: "True", LastTransitionTime: then},
			{Type: corev1.PodReady, Status: "False", LastTransitionTime: then},
		}},
	}
	got := podStatus(pod, map[string]observation{"side": running(true), "web": running(true)}, "127.7.8.1", later)
	yes := true
	condition := func(kind corev1.PodConditionType, since metav1.Time) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: "True", LastTransitionTime: since, ObservedGeneration: 3}
	}
	container := func(name, image string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{
			Name: name, Image: image, ImageID: image, ContainerID: "localkube://7", Started: &yes, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: then}},
		}}
	}
	want := corev1.PodStatus{
		ObservedGeneration: 3, Phase: corev1.PodRunning, QOSClass: "BestEffort", StartTime: &then,
		HostIP: loopback, HostIPs: []corev1.HostIP{{IP: loopback}}, PodIP: "127.7.8.1", PodIPs: []corev1.PodIP{{IP: "127.7.8.1"}},
		InitContainerStatuses: container("side", "s"), ContainerStatuses: container("web", "w"),
		Conditions: []corev1.PodCondition{
			condition(corev1.PodScheduled, then),
			{Type: "example.com/mine", Status: "True", LastTransitionTime: then},
			condition(corev1.PodReady, later),
			condition(corev1.PodReadyToStartContainers, later),
			condition(corev1.PodInitialized, later),
			condition(corev1.ContainersReady, later),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestResumeAfterARestartOfTheNode(t *testing.T) {
	lost := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "localkube was restarted while the container ran",
		StartedAt: then, FinishedAt: later,
	}}
	ran := corev1.ContainerStatus{RestartCount: 2, State: running(true).State}
	for name, test := range map[string]struct {
		previous *corev1.ContainerStatus
		policy   corev1.RestartPolicy
		want     observation
		wantRun  bool
	}{
		"a new pod":                    {nil, "Always", observation{}, true},
		"it ran and is to run":         {&ran, "Always", observation{Last: lost, Restarts: 3}, true},
		"it ran once and that was all": {&ran, "Never", observation{State: lost, Restarts: 2}, false},
		"it was done":                  {&corev1.ContainerStatus{State: ended(0)}, "OnFailure", observation{State: ended(0)}, false},
		"it was waiting for its restart": {
			&corev1.ContainerStatus{State: waiting("CrashLoopBackOff", ""), LastTerminationState: ended(1), RestartCount: 1}, "Always",
			observation{State: waiting("CrashLoopBackOff", ""), Last: ended(1), Restarts: 2}, true,
		},
		"it never started": {
			&corev1.ContainerStatus{State: waiting("ErrImagePull", "")}, "Always",
			observation{State: waiting("ErrImagePull", "")}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, run := resume(test.previous, test.policy, later)
			if diff := cmp.Diff(test.want, got); diff != "" || run != test.wantRun {
				t.Errorf("resume(): run %v, want %v; (-want +got):\n%s", run, test.wantRun, diff)
			}
		})
	}
}
