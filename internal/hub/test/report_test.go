package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// crowded is a control plane with more namespaces and kinds of resources than a report has room
// for, all with long names.
func crowded(t *testing.T) fixture {
	t.Helper()
	cluster := turnApart(t, "crowded")
	on := fixture{Client: cluster.Client(t), t: t, cluster: cluster}
	for i := range 210 {
		name := fmt.Sprintf("n-%03d-%s", i, strings.Repeat("x", 57))
		on.check(client.IgnoreAlreadyExists(on.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	all := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	for i := range 60 {
		all[corev1.ResourceName(
			fmt.Sprintf("%02d.%s.example.com/%s", i, strings.Repeat("d", 40), strings.Repeat("r", 60)),
		)] = resource.MustParse("1")
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "crowded"}}
	on.check(client.IgnoreAlreadyExists(on.Create(context.Background(), node)))
	before := node.DeepCopy()
	node.Status.Capacity, node.Status.Allocatable = all, all
	on.check(on.Status().Patch(context.Background(), node, client.MergeFrom(before)))
	return on
}

// TestARealAgentOfACrowdedMemberStaysWithinWhatTheHubTakes checks that the agent leaves out entries
// beyond the limits and reports that, and that the hub refuses nothing. Then an attacker with the
// member's identity fills the report beside the agent. The hub's definitions have no maxima yet,
// and the health is kept.
func TestARealAgentOfACrowdedMemberStaysWithinWhatTheHubTakes(t *testing.T) {
	f := newAlone(t, "")
	on := crowded(t)
	m := f.register("crowded", every(10))
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	agent := m.serve(on)
	since := m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy").LastTransitionTime
	var report clusterv1beta1.InternalMemberCluster
	m.eventually("the report is there, in part", func() error {
		if err := f.get(&report, m.namespaceName(), m.name); err != nil {
			return err
		}
		s := report.Status
		collected := meta.FindStatusCondition(s.Conditions, clusterv1beta1.ConditionNamespacesCollected)
		if len(s.Namespaces) != 200 || collected == nil || collected.Status != metav1.ConditionFalse ||
			!strings.Contains(collected.Message, "more than 200 namespaces") {
			return fmt.Errorf("%d namespaces, %+v", len(s.Namespaces), collected)
		}
		if _, cpu := s.ResourceUsage.Capacity[corev1.ResourceCPU]; len(s.ResourceUsage.Capacity) != 48 || !cpu {
			return fmt.Errorf("%d resources", len(s.ResourceUsage.Capacity))
		}
		return nil
	})
	if text := agent.logged.String(); strings.Contains(text, "Failed to write the report") {
		t.Errorf("a report was refused:\n%s", text)
	}
	m.eventually("the record shows the node", func() error {
		if nodes := m.record().Status.Properties["kubernetes-fleet.io/node-count"]; nodes.Value != "1" {
			return fmt.Errorf("it has %+v", m.record().Status.Properties)
		}
		return nil
	})

	definition := &apiextensionsv1.CustomResourceDefinition{}
	f.check(f.get(definition, "", "internalmemberclusters.cluster.kubernetes-fleet.io"))
	f.change(definition, func() {
		for i := range definition.Spec.Versions {
			withoutMaxima(definition.Spec.Versions[i].Schema.OpenAPIV3Schema)
		}
	})
	t.Cleanup(func() { f.cluster.InstallCRDs(t) })
	fill := func(value string) func() error {
		return func() error {
			patch := fmt.Appendf(nil, `{"status":{"properties":{"filled":%s}}}`, value)
			return m.agent.Status().Patch(context.Background(), report.DeepCopy(), client.RawPatch("application/merge-patch+json", patch))
		}
	}
	// The agent may write its own report in between, without what fills it.
	f.eventually("somebody fills the report, and the hub says so", func() error {
		err := fill(fmt.Sprintf(`{"value":%q,"observationTime":"2026-01-02T03:04:05Z"}`, strings.Repeat("x", 500<<10)))()
		if err != nil {
			if !apierrors.IsInvalid(err) {
				f.check(err)
			}
			return err
		}
		said := meta.FindStatusCondition(m.record().Status.Conditions, "Supported")
		if said == nil || said.Reason != "ReportTooLarge" || !strings.Contains(said.Message, m.namespaceName()+"/"+m.name+" has ") {
			return fmt.Errorf("it says %+v", said)
		}
		return nil
	})
	f.check(fill("null")())
	f.eventually("all of the report counts again", func() error {
		if said := meta.FindStatusCondition(m.record().Status.Conditions, "Supported"); said != nil {
			return fmt.Errorf("it says %+v", said)
		}
		return nil
	})
	if healthy := m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy"); healthy.LastTransitionTime != since {
		t.Errorf("it was not healthy all the time: since %s, before since %s", healthy.LastTransitionTime, since)
	}
}
