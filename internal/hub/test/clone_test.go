package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// copyTo starts another agent with all that an agent has stored, in a namespace of its own on
// another control plane, or on the same one.
func (m *member) copyTo(on fixture) *member {
	m.t.Helper()
	c := &member{fixture: on, agentNamespace: on.namespace("agent-")}
	secret := func(name string) client.Object { return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: naming.AgentConfigMap}}
	for _, object := range []client.Object{secret(naming.AgentSecret), secret(naming.AgentKeySecret), settings} {
		m.check(m.get(object, m.agentNamespace, object.GetName()))
		object.SetNamespace(c.agentNamespace)
		object.SetResourceVersion("")
		m.check(on.Create(context.Background(), object))
	}
	c.start()
	return c
}

// rivals returns the agent that sends heartbeats for a member, and the agent that waits.
func (f fixture) rivals(cluster string) (holder, waiter string) {
	f.t.Helper()
	lease := leaseOf(naming.MemberNamespace(f.workspace, cluster))
	f.check(f.get(lease, lease.Namespace, lease.Name))
	waiter, _, _ = strings.Cut(lease.Annotations[clusterv1beta1.AnnotationWaitingAgent], " ")
	return *lease.Spec.HolderIdentity, waiter
}

// untilRivals waits until a Cluster names both agents and what to do.
func (f fixture) untilRivals(cluster string) {
	f.t.Helper()
	f.eventually("the record of "+cluster+" names both agents", func() error {
		var is fleet.Cluster
		if err := f.get(&is, f.workspace, cluster); err != nil {
			return err
		}
		said := kube.FindCondition(is.Status.Conditions, fleet.ConditionCloned)
		if said == nil || said.Reason != "AgentWaiting" {
			return fmt.Errorf("it says %+v", said)
		}
		holder, waiter := f.rivals(cluster)
		for _, text := range []string{fmt.Sprintf("%q sends heartbeats", holder), fmt.Sprintf("%q waits", waiter),
			"annotate cluster.fleet.cattle.io " + cluster + " muster/revoked=true"} {
			if !strings.Contains(said.Message, text) {
				return fmt.Errorf("it does not say %s: %s", text, said.Message)
			}
		}
		if ready := kube.FindCondition(is.Status.Conditions, fleet.ConditionReady); !strings.Contains(ready.Message,
			"two agents have the credential") {
			return fmt.Errorf("STATUS says %+v", ready)
		}
		return nil
	})
}

// TestTwoAgentsThatShareACredentialAreNamedOnTheHub copies the Secrets of an agent to another
// cluster, and a whole cluster with all its names and UIDs. A pod that another one of its
// Deployment replaces waits for as long, and is none of that. It takes minutes: an agent takes over
// only from one that is silent.
func TestTwoAgentsThatShareACredentialAreNamedOnTheHub(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, values := f.token("new-token", "")
	spare := testkube.Start(t, "delivered")
	there := fixture{Client: spare.Client(t), t: t, cluster: spare, workspace: f.workspace}
	agents := map[string]*member{}
	for _, id := range []string{"rolling", "whole", "secrets"} {
		agents[id] = f.join(values, map[string]any{"clientID": id})
		f.untilReady(naming.Cluster(id), "Ready")
	}

	rolling := agents["rolling"]
	for _, name := range []string{"pod-1", "pod-2"} {
		f.check(f.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: rolling.agentNamespace, Name: name}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "agent", Image: "agent"}},
			},
		}))
	}
	next := &member{
		fixture: f, agentNamespace: rolling.agentNamespace, options: []func(*agent.Options){func(o *agent.Options) { o.Hostname = "pod-2" }},
	}
	next.start()
	rolling.untilState(agent.Standby, "_pod-2_")
	whole := agents["whole"].copyTo(f)
	agents["whole"].untilState(agent.Standby, "_pod-1_")
	secrets := agents["secrets"].copyTo(there)
	secrets.untilState(agent.Standby, "_pod-1_")

	for _, id := range []string{"whole", "secrets"} {
		f.untilRivals(naming.Cluster(id))
		f.eventually("an event says so", func() error { return f.event("AgentWaiting", naming.Cluster(id), "two agents have the credential") })
	}
	rolling.untilState(agent.Standby, "_pod-2_")
	if _, waiter := f.rivals(naming.Cluster("rolling")); waiter != "" {
		t.Errorf("a pod that is being replaced says that it waits: %s", waiter)
	}
	f.check(f.cloned(naming.Cluster("rolling"), false))

	whole.stop()
	secrets.stop()
	for _, id := range []string{"whole", "secrets"} {
		f.eventually("nobody waits any more", func() error { return f.cloned(naming.Cluster(id), false) })
		f.untilReady(naming.Cluster(id), "Ready")
	}
}
