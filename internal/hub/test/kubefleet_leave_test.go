package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/naming"
)

// state is what the hub asks the agent for.
func (k *kubefleet) state() clusterv1beta1.ClusterState {
	k.t.Helper()
	var report clusterv1beta1.InternalMemberCluster
	k.check(k.agent.Get(context.Background(), client.ObjectKey{Namespace: k.namespaceName(), Name: k.name}, &report))
	return report.Spec.State
}

func (k *kubefleet) untilAskedToLeave() {
	k.t.Helper()
	k.eventually("it is asked to leave", func() error {
		if state := k.state(); state != clusterv1beta1.ClusterStateLeave {
			return fmt.Errorf("the state is %s", state)
		}
		return nil
	})
}

// holds places a Namespace on the member, which applies it.
func (k *kubefleet) holds(shop string) *placement.Work {
	k.t.Helper()
	crp := k.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	work := k.receives("placed", func(w *placement.Work) bool { return w.Name == crp.Name+"-work" && w.DeletionTimestamp == nil })
	k.addsFinalizer(work)
	k.applies(work)
	k.untilSays(crp, "Available", metav1.ConditionTrue, "")
	return work
}

// TestAMemberThatLeavesWithKubeFleetsAgentIsEmptiedFirst kills the hub while the agent removes its
// applied objects. After a request to leave, the agent applies nothing any more. The hub must not
// send it before the member is empty.
func TestAMemberThatLeavesWithKubeFleetsAgentIsEmptiedFirst(t *testing.T) {
	f := newAlone(t, "")
	k := f.kubefleet("emptied-theirs")
	shop := f.shop()
	first := k.holds(shop)
	second := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespaceName(), Name: "by-hand"}} // a user's own
	second.Spec.Workload.Manifests = []placement.Manifest{{RawExtension: runtime.RawExtension{
		Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":"by-hand"}}`, "default")}}}
	f.check(f.Create(context.Background(), second))
	second = k.receives("made by hand", func(w *placement.Work) bool { return w.Name == "by-hand" })
	k.addsFinalizer(second)
	k.applies(second)
	record := k.record()
	f.check(f.Delete(context.Background(), &record))
	deleted := func(work *placement.Work) *placement.Work { // the order in which they are deleted is any
		f.eventually("Work "+work.Name+" is deleted", func() error {
			if err := k.agent.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
				return err
			}
			if work.DeletionTimestamp == nil {
				return fmt.Errorf("it is not")
			}
			return nil
		})
		return work
	}
	says := func(words ...string) {
		t.Helper()
		f.eventually("the record says what is left", func() error {
			joined := k.until("Joined", metav1.ConditionTrue, "Leaving")
			for _, word := range append(words, "at most until") {
				if !strings.Contains(joined.Message, word) {
					return fmt.Errorf("it says %q, want %q", joined.Message, word)
				}
			}
			return nil
		})
		if state := k.state(); state != clusterv1beta1.ClusterStateJoin {
			t.Fatalf("it is asked to %s before it is empty", state)
		}
	}
	says("the objects of 2 Works", first.Name, second.Name)
	k.removes(deleted(first))
	says("the objects of 1 Works (" + second.Name + ")")
	f.restartHub()
	f.check(k.answer(metav1.ConditionTrue, "")) // it beats
	says("the objects of 1 Works (" + second.Name + ")")
	k.removes(deleted(second))
	k.untilAskedToLeave()
	for namespace, name := range map[string]string{shop: "settings", "default": "by-hand"} {
		if err := k.on.get(&corev1.ConfigMap{}, namespace, name); !apierrors.IsNotFound(err) {
			t.Errorf("ConfigMap %s/%s is still there: %v", namespace, name, err)
		}
	}
	f.check(k.answer(metav1.ConditionFalse, ""))
	k.untilGone()
}

// TestAMemberWhoseAgentRemovesNothingLeavesWhenTheWaitIsOver takes half a minute: the shortest wait
// that can be set.
func TestAMemberWhoseAgentRemovesNothingLeavesWhenTheWaitIsOver(t *testing.T) {
	f := newAlone(t, `{"forceDeleteWaitTime":"30s"}`)
	k := f.kubefleet("idle-theirs")
	shop := f.shop()
	work := k.holds(shop)
	record := k.record()
	f.check(f.Delete(context.Background(), &record))
	k.until("Joined", metav1.ConditionTrue, "Leaving")
	k.untilGone()
	var left corev1.ConfigMap
	f.check(f.get(&left, naming.SystemNamespace, "left-"+k.name))
	if !strings.Contains(left.Data["message"], "did not remove its deliveries in time") || left.Data["placed"] != "Work "+work.Name {
		t.Errorf("what is left is %v", left.Data)
	}
	f.eventually("a warning says so", func() error {
		var all eventsv1.EventList
		if err := f.List(context.Background(), &all); err != nil {
			return err
		}
		for _, e := range all.Items {
			if e.Regarding.Name == k.name && e.Reason == "ForcedLeave" && e.Type == corev1.EventTypeWarning {
				return nil
			}
		}
		return fmt.Errorf("there is none among %d events", len(all.Items))
	})
	f.check(k.on.get(&corev1.ConfigMap{}, shop, "settings"))
}

// TestAMemberIsNotTakenForEmptyWhileWorksAreNotServed lets a member leave while the API server
// cannot list its Works. The hub does not know then whether the agent has applied objects.
func TestAMemberIsNotTakenForEmptyWhileWorksAreNotServed(t *testing.T) {
	f := newUndefining(t)
	ctx := context.Background()
	f.eventually("policies admit MemberClusters, whose kind they may have to learn", func() error {
		probe := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "probe-" + f.workspace}}
		probe.Spec = clusterv1beta1.MemberClusterSpec{Identity: identityOf("probe")}
		return f.Create(ctx, probe, client.DryRunAll)
	})
	m := f.register("unlisted")
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	m.eventually("KubeFleet's agent has joined", func() error { return m.answer(metav1.ConditionTrue, "") })
	m.until("Joined", metav1.ConditionTrue, "MemberClusterJoined")
	definition := f.undefine(worksDefinition)
	f.eventually("the definition is gone", func() error { return gone(f.get(definition, "", worksDefinition)) })
	mc := m.record()
	f.check(f.Delete(ctx, &mc))
	if c := m.until("ReadyToJoin", metav1.ConditionFalse, reasons.DefinitionDeleted); !strings.Contains(c.Message, worksDefinition) {
		t.Errorf("it says %q", c.Message)
	}
	var report clusterv1beta1.InternalMemberCluster
	f.check(f.get(&report, m.namespaceName(), m.name))
	if report.Spec.State != clusterv1beta1.ClusterStateJoin {
		t.Errorf("the agent is asked to %s", report.Spec.State)
	}
	f.cluster.InstallCRDs(t)
	m.eventually("the agent is asked when Works are served, and has left", func() error {
		if err := f.get(&report, m.namespaceName(), m.name); err != nil {
			return err
		}
		if report.Spec.State != clusterv1beta1.ClusterStateLeave {
			return fmt.Errorf("the state is %s", report.Spec.State)
		}
		return m.answer(metav1.ConditionFalse, "")
	})
	m.untilGone()
}
