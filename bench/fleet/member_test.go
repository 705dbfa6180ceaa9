package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

func TestAnAgentFindsOnASimulatedMemberWhatAnAPIServerWouldShow(t *testing.T) {
	api := newMemberAPI("11111111-2222-3333-4444-555555555555")
	member, err := local.New(&rest.Config{Host: "http://member", Transport: api}, agentNamespace)
	check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if id, err := member.ID(ctx); err != nil || id != api.uid {
		t.Errorf("the member is %s: %v", id, err)
	}
	changed := make(chan struct{}, 1)
	mirror := kubeclient.NewMirror[*corev1.Secret](changed)
	go kubeclient.FollowOne(ctx, mirror, member.Secrets, "a")
	seen := func(value string) {
		t.Helper()
		for {
			select {
			case <-ctx.Done():
				t.Fatalf("the Secret never has the value %q: %v", value, mirror.Failure())
			case <-changed:
			}
			secret, synced := mirror.Get()
			if synced && (secret == nil && value == "" || secret != nil && string(secret.Data["key"]) == value) {
				return
			}
		}
	}
	secret := func(value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: "a"}, Data: map[string][]byte{"key": []byte(value)}}
	}
	seen("")
	check(t, member.Create(ctx, secret("1")))
	seen("1")
	check(t, member.Store(ctx, secret("2")))
	seen("2")
	if err := member.Create(ctx, secret("3")); err == nil {
		t.Error("a Secret is created twice")
	}
	check(t, member.Secrets.Delete(ctx, "a", metav1.DeleteOptions{}))
	seen("")
	if left, err := member.HasApplied(ctx, "any"); left || err != nil {
		t.Errorf("AppliedWorks: %v, %v", left, err)
	}
	if pods, err := member.PodsOf(ctx, "pod-1"); pods == 0 || err != nil {
		t.Errorf("%d pods: %v", pods, err)
	}
	if version, err := member.Version(ctx); version == "" || err != nil {
		t.Errorf("version %q: %v", version, err)
	}
}

func TestAPodOfASimulatedMemberComesAndGoesWithEachJob(t *testing.T) {
	api := newMemberAPI("11111111-2222-3333-4444-555555555555")
	member, err := local.New(&rest.Config{Host: "http://member", Transport: api}, agentNamespace)
	check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := make(chan string, 100)
	there := map[string]bool{}
	store := &kubeclient.Store[*corev1.Pod]{Changed: make(chan struct{}, 1), Reset: func() { clear(there) }, Put: func(pod *corev1.Pod) bool {
		if there[pod.Name] = true; pod.Name == jobPod {
			seen <- fmt.Sprintf("begun on %s beside %d", pod.Spec.NodeName, len(there)-1)
		}
		return true
	}, Drop: func(pod *corev1.Pod) {
		delete(there, pod.Name)
		seen <- "ended " + pod.Name
	}}
	go member.FollowPods(ctx, store, func(error) {})
	for !store.IsListed() {
		time.Sleep(time.Millisecond)
	}
	go api.runJobs(ctx, 60*time.Millisecond)
	for range 3 {
		for _, want := range []string{"begun on node-0 beside 20", "ended " + jobPod} {
			select {
			case got := <-seen:
				if got != want {
					t.Fatalf("seen is %q, want %q", got, want)
				}
			case <-ctx.Done():
				t.Fatalf("nothing is seen, want %q", want)
			}
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
