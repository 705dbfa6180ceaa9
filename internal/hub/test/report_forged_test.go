package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// claimed is a condition that a member has made up.
func claimed(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Forged", Message: message, LastTransitionTime: metav1.Unix(1767225600, 0)}
}

// reports writes conditions into the report of a member, with the member's own credential.
func (r *registered) reports(conditions ...metav1.Condition) {
	r.t.Helper()
	text, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	r.check(err)
	report := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespaceName(), Name: r.name}}
	r.check(r.agent.Status().Patch(context.Background(), report, client.RawPatch("application/merge-patch+json", text)))
}

// TestAReportCannotSpeakForTheHub: a member reports conditions of the types by which the hub says
// what it has decided. What agents may report is shown for as long as they report it.
func TestAReportCannotSpeakForTheHub(t *testing.T) {
	f := newFixture(t)
	m := f.joined("forger")
	const provider = "ClusterPropertyProviderStarted"
	shows := func(kind string) *metav1.Condition {
		return meta.FindStatusCondition(m.record().Status.Conditions, kind)
	}
	m.reports(claimed("Healthy", metav1.ConditionFalse, "forged"), claimed("Cloned", metav1.ConditionTrue, "forged"),
		claimed("CredentialExchanged", metav1.ConditionTrue, "forged"), claimed("LeftoversRemoved", metav1.ConditionFalse, "forged"),
		claimed("example.com/mine", metav1.ConditionTrue, "forged"), claimed(provider, metav1.ConditionTrue, strings.Repeat("x", 2048)))
	f.eventually("what agents may report is shown", func() error {
		if said := shows(provider); said == nil || said.Reason != "Forged" {
			return fmt.Errorf("it says %+v", m.record().Status.Conditions)
		}
		return nil
	})
	for _, c := range m.record().Status.Conditions {
		if c.Reason == "Forged" && c.Type != provider {
			t.Errorf("the member speaks for the hub: %+v", c)
		}
	}
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")

	m.reports(claimed("ReadyToJoin", metav1.ConditionFalse, "forged"))
	f.eventually("what it reports no more is gone", func() error {
		if said := shows(provider); said != nil {
			return fmt.Errorf("it still says %+v", said)
		}
		return nil
	})
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	m.refusesRecord(claimed("example.com/long", metav1.ConditionTrue, strings.Repeat("x", 2049)))
}

// refusesRecord fails if the API server keeps a status of the MemberCluster with this condition,
// independent of the writer.
func (r *registered) refusesRecord(condition metav1.Condition) {
	r.t.Helper()
	mc := r.record()
	before := mc.DeepCopy()
	mc.Status.Conditions = append(mc.Status.Conditions, condition)
	if err := r.Status().Patch(context.Background(), &mc, client.MergeFrom(before)); !apierrors.IsInvalid(err) {
		r.t.Errorf("a condition with %d characters is written: %v", len(condition.Message), err)
	}
}

// TestARecordThatAMemberHasFilledIsRevoked fills a MemberCluster as its member could while a hub
// of an earlier version copied whatever a report said, until the API server refuses each write
// that makes it larger.
func TestARecordThatAMemberHasFilledIsRevoked(t *testing.T) {
	f := newAlone(t, "")
	m := f.joined("filler")
	f.hub.Kill()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	f.check(f.get(definition, "", "memberclusters.cluster.kubernetes-fleet.io"))
	f.change(definition, func() {
		for i := range definition.Spec.Versions {
			withoutMaxima(definition.Spec.Versions[i].Schema.OpenAPIV3Schema)
		}
	})
	t.Cleanup(func() { f.cluster.InstallCRDs(t) })
	filled := func(size int) error {
		mc := m.record()
		before := mc.DeepCopy()
		for i := range size {
			meta.SetStatusCondition(&mc.Status.Conditions, claimed(fmt.Sprintf("a%d", i), metav1.ConditionTrue, strings.Repeat("x", 16<<10)))
		}
		return f.Status().Patch(context.Background(), &mc, client.MergeFrom(before))
	}
	f.eventually("the definition has no maxima", func() error { return filled(40) })
	size := 40
	for ; filled(size+1) == nil; size++ {
	}
	for length := 8 << 10; length > 16; length /= 2 { // what is left has no room for an annotation of that length
		mc := m.record()
		before := mc.DeepCopy()
		meta.SetStatusCondition(&mc.Status.Conditions, claimed(fmt.Sprintf("b%d", length), metav1.ConditionTrue, strings.Repeat("x", length)))
		_ = f.Status().Patch(context.Background(), &mc, client.MergeFrom(before)) // refused if there is no room for it
	}
	record := m.record()
	if err := merge(f, record.DeepCopy(), `{"metadata":{"annotations":{"example.com/note":"`+strings.Repeat("x", 300)+`"}}}`); err == nil {
		t.Fatal("there is room left in the record")
	}
	t.Logf("the record has %d conditions", len(record.Status.Conditions))
	f.cluster.InstallCRDs(t)
	f.hub.Start()
	f.eventually("the administrator revokes it", func() error { return revoke(f.Client, record.DeepCopy(), `"true"`) })
	m.until(clusterv1beta1.ConditionReadyToJoin, metav1.ConditionFalse, "Revoked")
	if left := m.record().Status.Conditions; len(left) > 16 {
		t.Errorf("it still has %d conditions", len(left))
	}
	f.refused("its agent renews the Lease", merge(f.as(m.bearer(m.name)), leaseOf(m.namespaceName()), fmt.Sprintf(`{"spec":{"renewTime":%q}}`,
		time.Now().UTC().Format(metav1.RFC3339Micro))))
	f.check(f.Delete(context.Background(), record.DeepCopy()))
	f.eventually("the record is gone", func() error { return gone(f.get(&clusterv1beta1.MemberCluster{}, "", m.name)) })
}
