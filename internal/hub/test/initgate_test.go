package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

const audited = "example.com/Audited"

// initialized waits until the condition Initialized of a Cluster has a status and a text.
func (f fixture) initialized(name string, status corev1.ConditionStatus, text string) *fleet.Cluster {
	f.t.Helper()
	cluster := &fleet.Cluster{}
	f.eventually(fmt.Sprintf("Initialized of %s is %s: %s", name, status, text), func() error {
		if err := f.get(cluster, f.workspace, name); err != nil {
			return err
		}
		said := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionInitialized)
		if said == nil || said.Status != status || !strings.Contains(said.Message, text) {
			return fmt.Errorf("it is %+v", said)
		}
		return nil
	})
	return cluster
}

// stored returns a Cluster as the API server has it.
func (f fixture) stored(name string) *fleet.Cluster {
	f.t.Helper()
	cluster := &fleet.Cluster{}
	f.check(f.get(cluster, f.workspace, name))
	return cluster
}

// heldBack requires that a Bundle has a deployment that deploys nothing.
func heldBack(d fleet.BundleDeployment) error {
	if d.Spec.DeploymentID != "" || d.Spec.StagedDeploymentID == "" {
		return fmt.Errorf("it has %+v", d.Spec)
	}
	return nil
}

func TestANewClusterIsSetUpBeforeAnythingElseIsDelivered(t *testing.T) {
	f := newFixture(t)
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "c1"}, Spec: fleet.ClusterSpec{
		ClientID: "id", InitGates: []fleet.InitGate{{Bundle: "network"}, {Condition: audited}},
	}}
	f.check(f.Create(context.Background(), cluster))
	f.initialized("c1", corev1.ConditionFalse, "init gate 1 of 2 waits for Bundle network: it has no deployment on this Cluster")
	f.eventually("it has a namespace", func() error {
		if err := f.get(cluster, f.workspace, "c1"); err != nil {
			return err
		}
		if cluster.Status.Namespace == "" {
			return fmt.Errorf("status is %+v", cluster.Status)
		}
		return nil
	})
	p := place{f, "c1", cluster.Status.Namespace}
	app := f.bundle("app", configMap+"targets: [{clusterSelector: {}}]\n")
	p.deployment("app", heldBack)
	f.becomes("app", "WaitingForDependency", "WaitingForDependency")
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "the Cluster is not initialized yet; its next init gate waits for Bundle network")
	network := f.bundle("network", configMap+"targets: [{clusterSelector: {}}]\n")
	f.initialized("c1", corev1.ConditionFalse, "waits for Bundle network: it is WaitApplied")
	ready(t, f, p.deployment("network", there))
	f.initialized("c1", corev1.ConditionFalse, "init gate 2 of 2 waits for condition "+audited+": the Cluster does not have it yet")
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "its next init gate waits for condition "+audited)
	p.deployment("app", heldBack)

	tenant := f.tenantWithoutApprove()
	conditions := func(kinds ...string) string {
		said := f.stored("c1").Status.Conditions
		for _, kind := range kinds {
			said = append(said, fleet.Condition{Type: kind, Status: corev1.ConditionTrue})
		}
		text, err := json.Marshal(said)
		f.check(err)
		return `{"conditions":` + string(text) + `}`
	}
	for what, status := range map[string]string{
		"the end":          `{"initialization":{"opened":2,"finished":"2026-01-01T00:00:00Z"}}`,
		"a hub's opinion":  conditions("Imported"),
		"that it is ready": `{"conditions":[{"type":"Initialized","status":"True"}]}`,
	} {
		f.eventually(what+" is not for tenants", func() error {
			if err := writeStatus(tenant, cluster, status); !apierrors.IsForbidden(err) {
				return fmt.Errorf("it is written: %v", err)
			}
			return nil
		})
	}
	f.eventually("the platform's own controller says that it was audited", func() error {
		return writeStatus(tenant, cluster, conditions(audited))
	})
	done := f.initialized("c1", corev1.ConditionTrue, "")
	if at := done.Status.Initialization; at == nil || at.Opened != 2 || at.Finished == nil {
		t.Errorf("it is %+v", at)
	}
	ready(t, f, p.deployment("app", there))
	f.becomes("app", reasons.Ready, "Ready")

	f.check(f.Delete(context.Background(), network))
	p.without("network")
	first := p.deployment("app", there)
	f.grow(app)
	p.deployment("app", func(d fleet.BundleDeployment) error {
		if d.Spec.DeploymentID == first.Spec.DeploymentID {
			return fmt.Errorf("it is held back again: %+v", d.Spec)
		}
		return nil
	})
	f.initialized("c1", corev1.ConditionTrue, "")
}

func TestAGateIsRefusedThatCouldNeverOpen(t *testing.T) {
	f := newFixture(t)
	for text, gate := range map[string]fleet.InitGate{
		"set one of them":                  {},
		"a gate waits for a bundle or":     {Bundle: "a", Condition: "b"},
		"Initialized and Ready wait":       {Condition: "Ready"},
		"name another condition":           {Condition: "Initialized"},
		"spec.initGates[0].bundle in body": {Bundle: "No_Name"},
	} {
		cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "c1"}}
		cluster.Spec.InitGates = []fleet.InitGate{gate}
		if err := f.Create(context.Background(), cluster); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: it says %v, not %q", gate, err, text)
		}
	}
}

func TestATokenGivesItsGatesToTheClustersThatItCreates(t *testing.T) {
	f := newFixture(t)
	gates := []fleet.InitGate{{Bundle: "network"}, {Condition: audited}}
	values := f.stampingToken("gated", fleet.ClusterRegistrationTokenSpec{InitGates: gates})
	f.check(f.Create(context.Background(), &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "known"}, Spec: fleet.ClusterSpec{ClientID: "known"},
	}))
	f.granted(values, "fresh", nil)
	f.granted(values, "known", nil)
	if diff := cmp.Diff(gates, f.stored(naming.Cluster("fresh")).Spec.InitGates); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	if got := f.stored("known").Spec.InitGates; len(got) != 0 {
		t.Errorf("a token changed the gates of a Cluster that it did not create: %v", got)
	}
	f.initialized(naming.Cluster("fresh"), corev1.ConditionFalse, "init gate 1 of 2")
}

// TestATaintThatWaitsForAConditionGoesWithIt has a member report the condition, which counts for
// nothing, before the platform's own controller writes it.
func TestATaintThatWaitsForAConditionGoesWithIt(t *testing.T) {
	f := newFixture(t)
	m := f.joined("tainted")
	record := m.record()
	f.change(&record, func() {
		record.Spec.Taints = []clusterv1beta1.Taint{
			{Key: audited, Value: clusterv1beta1.TaintUntilTrue, Effect: "NoSchedule"},
			{Key: "ClusterPropertyProviderStarted", Value: clusterv1beta1.TaintUntilTrue, Effect: "NoSchedule"},
			{Key: "example.com/other", Value: "for-ever", Effect: "NoSchedule"},
		}
	})
	m.reports(claimed(audited, metav1.ConditionTrue, "forged"), claimed("example.com/other", metav1.ConditionTrue, "forged"),
		claimed("ClusterPropertyProviderStarted", metav1.ConditionTrue, "said"))
	m.until("ClusterPropertyProviderStarted", metav1.ConditionTrue, "Forged")
	if taints := m.record().Spec.Taints; len(taints) != 3 {
		t.Fatalf("the member took off its own taints: %v", taints)
	}
	f.eventually("the platform says that it was audited", func() error {
		mc := m.record()
		before := mc.DeepCopy()
		for _, kind := range []string{audited, "example.com/other"} {
			meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: "Audited", LastTransitionTime: metav1.NewTime(time.Now()),
			})
		}
		return f.Status().Patch(context.Background(), &mc, client.MergeFrom(before))
	})
	f.eventually("the taint is gone", func() error {
		if taints := m.record().Spec.Taints; len(taints) != 2 || taints[0].Key == audited {
			return fmt.Errorf("it has %v", taints)
		}
		return nil
	})
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	if c := meta.FindStatusCondition(m.record().Status.Conditions, audited); c == nil || c.Reason != "Audited" {
		t.Errorf("the platform's condition is %+v", c)
	}
}
