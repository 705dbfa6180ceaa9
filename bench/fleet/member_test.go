package main

import (
	"context"
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

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
