package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/eventlimit"
)

// tooLarge fails unless an API server refused a write because of a maximum.
func (f fixture) tooLarge(what string, err error) {
	f.t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "Too ") && !strings.Contains(err.Error(), "a key has more than") {
		f.t.Errorf("%s: it says %v", what, err)
	}
}

// TestNeitherMemberNorHolderOfATokenFillsAnObject writes what is too large with the rights of those
// who may write the object at all.
func TestNeitherMemberNorHolderOfATokenFillsAnObject(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	m := f.joined("large")
	var report clusterv1beta1.InternalMemberCluster
	f.check(f.get(&report, m.namespaceName(), m.name))
	long := strings.Repeat("x", 300_000)
	now := metav1.Now()
	for what, fill := range map[string]func(*clusterv1beta1.InternalMemberClusterStatus){
		"a long message": func(s *clusterv1beta1.InternalMemberClusterStatus) {
			s.Conditions = []metav1.Condition{{Type: "Any", Status: metav1.ConditionTrue, Reason: "Any", Message: long, LastTransitionTime: now}}
		},
		"a long version": func(s *clusterv1beta1.InternalMemberClusterStatus) { s.AgentVersion = long },
		"a long name of a property": func(s *clusterv1beta1.InternalMemberClusterStatus) {
			s.Properties = map[string]clusterv1beta1.PropertyValue{long: {Value: "1", ObservationTime: now}}
		},
		"many namespaces": func(s *clusterv1beta1.InternalMemberClusterStatus) {
			s.Namespaces = map[string]string{}
			for i := range 10_000 {
				s.Namespaces[fmt.Sprintf("namespace-%d", i)] = "work"
			}
		},
		"many agents": func(s *clusterv1beta1.InternalMemberClusterStatus) {
			for i := range 1000 {
				s.AgentStatus = append(s.AgentStatus, clusterv1beta1.AgentStatus{Type: clusterv1beta1.AgentType(fmt.Sprint(i))})
			}
		},
	} {
		large := report.DeepCopy()
		fill(&large.Status)
		f.tooLarge(what, m.agent.Status().Update(ctx, large))
	}
	f.tooLarge("a time of a million digits", m.agent.Status().Patch(ctx, report.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"resourceUsage":{"observationTime":"2026-01-01T00:00:00.`+strings.Repeat("0", 1_000_000)+`Z"}}}`))))
	f.tooLarge("a quantity of a million digits", m.agent.Status().Patch(ctx, report.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"resourceUsage":{"capacity":{"cpu":"`+strings.Repeat("0", 1_000_000)+`1"}}}}`))))

	_, values := f.token("new-token", "")
	asking := f.as(values["token"])
	for what, spec := range map[string]fleet.ClusterRegistrationSpec{
		"a long client ID": {ClientID: long},
		"many labels":      {ClientID: "a", ClusterLabels: numbered(10_000)},
		"a long label":     {ClientID: "a", ClusterLabels: map[string]string{"a": long}},
		"a long key":       {ClientID: "a", ClusterLabels: map[string]string{long: "a"}},
	} {
		f.tooLarge(what, asking.Create(ctx, &fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "request-", Namespace: f.workspace}, Spec: spec,
		}))
	}

	legacy := f.legacyJoin(values, "legacy")
	f.eventually("the agent beats", func() error { return legacy.beat(time.Now()) })
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: legacy.answer["clusterName"]}}
	f.tooLarge("a long name of a node", legacy.Client.Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"agent":{"readyNodeNames":["`+long+`"]}}}`))))
}

func numbered(count int) map[string]string {
	all := map[string]string{}
	for i := range count {
		all[fmt.Sprintf("label-%d", i)] = "a"
	}
	return all
}

// TestWhatWasTooLargeBeforeThereWereMaximaCanStillBeChanged upgrades a hub on which a team's Bundle
// has more than the maximum of today: whatever is not touched is not asked about.
func TestWhatWasTooLargeBeforeThereWereMaximaCanStillBeChanged(t *testing.T) {
	f := newAlone(t, "")
	ctx := context.Background()
	f.place("a", nil)
	definition := &apiextensionsv1.CustomResourceDefinition{}
	f.check(f.get(definition, "", "bundles.fleet.cattle.io"))
	f.change(definition, func() {
		for i := range definition.Spec.Versions {
			withoutMaxima(definition.Spec.Versions[i].Schema.OpenAPIV3Schema)
		}
	})
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "large"}}
	f.eventually("the Bundle of before is there", func() error {
		b.ResourceVersion, b.Spec = "", fleet.BundleSpec{
			Resources: []fleet.BundleResource{{Name: "cm.yaml", Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n"}},
			DependsOn: []fleet.BundleRef{{Name: strings.Repeat("x", 10_000)}},
		}
		b.Spec.NamespaceLabels = numbered(1000)
		return f.Create(ctx, b)
	})
	f.cluster.InstallCRDs(t)
	f.eventually("a new Bundle may not be so large", func() error {
		another := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "another"}, Spec: b.Spec}
		if err := f.Create(ctx, another, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("creating it: %v", err)
		}
		return nil
	})
	f.patch(b, `{"metadata":{"labels":{"a":"b"}}}`)
	f.patch(b, `{"spec":{"paused":true}}`)
	f.eventually("the hub writes its status", func() error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return err
		}
		if b.Status.ObservedGeneration != b.Generation || b.Generation < 2 {
			return fmt.Errorf("generation %d: %+v", b.Generation, b.Status)
		}
		return nil
	})
	larger := b.DeepCopy()
	larger.Spec.NamespaceLabels["one-more"] = "a"
	f.tooLarge("more of what is too much", f.Update(ctx, larger))
}

// withoutMaxima makes of a schema what it was before it had maxima.
func withoutMaxima(schema *apiextensionsv1.JSONSchemaProps) {
	schema.MaxItems, schema.MaxLength, schema.MaxProperties, schema.XValidations = nil, nil, nil, nil
	if schema.Items != nil {
		withoutMaxima(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		withoutMaxima(schema.AdditionalProperties.Schema)
	}
	for name, property := range schema.Properties {
		withoutMaxima(&property)
		schema.Properties[name] = property
	}
}

// TestAMemberThatFlapsMakesABoundedNumberOfEvents flaps with the rights of the member's agent: a
// thousand times its report says by turns that there is a release which cannot be removed, and
// that there is none.
func TestAMemberThatFlapsMakesABoundedNumberOfEvents(t *testing.T) {
	f := newFixture(t)
	ctx, began := context.Background(), time.Now()
	m := f.joined("flaps")
	var report clusterv1beta1.InternalMemberCluster
	f.check(f.get(&report, m.namespaceName(), m.name))
	for i := range 1000 {
		own := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent)
		own.LastReceivedHeartbeat = metav1.NewTime(own.LastReceivedHeartbeat.Add(time.Second))
		if i%2 == 0 {
			meta.RemoveStatusCondition(&own.Conditions, clusterv1beta1.ConditionPruned)
		} else {
			meta.SetStatusCondition(&own.Conditions, metav1.Condition{
				Type: clusterv1beta1.ConditionPruned, Status: metav1.ConditionFalse, Reason: "RemovalBlocked", Message: "it flaps",
			})
		}
		f.check(m.agent.Status().Update(ctx, &report))
	}
	m.until(clusterv1beta1.ConditionPruned, metav1.ConditionFalse, "RemovalBlocked")
	record := m.record()
	var all eventsv1.EventList
	f.check(f.List(ctx, &all, client.InNamespace(corev1.NamespaceDefault)))
	all.Items = slices.DeleteFunc(all.Items, func(e eventsv1.Event) bool { return e.Regarding.UID != record.UID })
	most := eventlimit.Burst + int(time.Since(began)/eventlimit.Period)
	if count := len(all.Items); count == 0 || count > most {
		t.Errorf("there are %d Events about it, want some and at most %d", count, most)
	}
}
