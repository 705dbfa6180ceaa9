package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// moveTo is what helm upgrade of the hub's chart does.
func (f fixture) moveTo(settings *corev1.ConfigMap, url, ca, mode string) {
	f.t.Helper()
	text, err := json.Marshal(map[string]string{"apiServerURL": url, "apiServerCA": ca, "agentTLSMode": mode})
	f.check(err)
	settings.Data = map[string]string{"config": string(text)}
	f.check(f.Update(context.Background(), settings))
}

// traveller is a member that moves, whichever door it came in by.
type traveller struct {
	fixture
	name, namespace string
	// condition is HubConfigured of the record.
	condition func() (reason, message string)
	options   agent.Options
	stop      func()

	mu    sync.Mutex
	beats []time.Time
}

func (t *traveller) start() {
	running, err := agent.New(t.options)
	t.check(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		running.Run(ctx)
	}()
	t.stop = func() { cancel(); <-done }
	t.eventually(t.name+" has joined", func() error {
		if state, reason, joined := running.Status(); !joined {
			return fmt.Errorf("%s: %s", state, reason)
		}
		return nil
	})
}

// watch records every beat until the test ends.
func (t *traveller) watch() {
	t.t.Helper()
	typed, err := kubernetes.NewForConfig(t.cluster.Config)
	t.check(err)
	watching, err := typed.CoordinationV1().Leases(t.namespace).Watch(t.t.Context(), metav1.ListOptions{})
	t.check(err)
	go func() {
		for event := range watching.ResultChan() {
			if lease, ok := event.Object.(*coordinationv1.Lease); ok && lease.Spec.RenewTime != nil {
				t.mu.Lock()
				t.beats = append(t.beats, lease.Spec.RenewTime.Time)
				t.mu.Unlock()
			}
		}
	}()
}

// longestSilence is the longest time between two beats.
func (t *traveller) longestSilence() (longest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := 1; i < len(t.beats); i++ {
		longest = max(longest, t.beats[i].Sub(t.beats[i-1]))
	}
	return longest
}

func (t *traveller) lastBeat() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.beats) == 0 {
		return time.Time{}
	}
	return t.beats[len(t.beats)-1]
}

// until waits until the condition HubConfigured has a reason and a message with all parts.
func (t *traveller) until(reason string, parts ...string) {
	t.t.Helper()
	t.eventually(t.name+" is "+reason, func() error {
		got, message := t.condition()
		for _, part := range parts {
			if got != reason || !strings.Contains(message, part) {
				return fmt.Errorf("it is %q: %s", got, message)
			}
		}
		return nil
	})
}

// uses is what the agent says of itself.
func (t *traveller) uses() clusterv1beta1.HubInUse {
	t.t.Helper()
	var report clusterv1beta1.InternalMemberCluster
	t.check(t.get(&report, t.namespace, t.name))
	if report.Status.Hub == nil {
		return clusterv1beta1.HubInUse{}
	}
	return *report.Status.Hub
}

// byRegistration joins a cluster with a registration token.
func (f fixture) byRegistration(values map[string]string, clientID string) *traveller {
	f.t.Helper()
	m := f.join(values, map[string]any{"clientID": clientID})
	name := naming.Cluster(clientID)
	f.untilReady(name, "Ready")
	return &traveller{
		fixture: f, name: name, namespace: naming.MemberNamespace(f.workspace, name), stop: m.stop,
		options: agent.Options{Member: f.cluster.Config, Namespace: m.agentNamespace, Hostname: "pod-1", Log: logr.Discard()},
		condition: func() (string, string) {
			var cluster fleet.Cluster
			f.check(f.get(&cluster, f.workspace, name))
			if c := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionHubConfigured); c != nil {
				return c.Reason, c.Message
			}
			return "", ""
		},
	}
}

// byMembership joins a cluster as the member of a MemberCluster that beats every second.
func (f fixture) byMembership() *traveller {
	f.t.Helper()
	return f.byMembershipAt(f.cluster.Config.Host, f.ca())
}

// byMembershipAt does the same with a configured address of the hub.
func (f fixture) byMembershipAt(server, ca string) *traveller {
	f.t.Helper()
	r := f.register("travel")
	r.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	mc := r.record()
	f.change(&mc, func() { mc.Spec.HeartbeatPeriodSeconds = 5 }) // so that a machine that is busy for a second misses none
	namespace := f.namespace("agent-")
	bearer, err := kube.RequestToken(context.Background(), f.SubResource("token"),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: r.name}}, time.Hour)
	f.check(err)
	f.check(f.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hub-kubeconfig-secret"}, StringData: map[string]string{"token": bearer},
	}))
	t := &traveller{
		fixture: f, name: r.name, namespace: r.namespaceName(),
		options: agent.Options{Member: f.cluster.Config, Namespace: namespace, Hostname: "pod-1", Log: logr.Discard(),
			Membership: &agent.Membership{
				Server: server, CA: ca, Name: r.name, SecretNamespace: namespace,
				SecretName: "hub-kubeconfig-secret",
			}},
		condition: func() (string, string) {
			mc := r.record()
			if c := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionHubConfigured); c != nil {
				return c.Reason, c.Message
			}
			return "", ""
		},
	}
	t.start()
	return t
}

func (f fixture) ca() string { return string(f.cluster.Config.CAData) }
