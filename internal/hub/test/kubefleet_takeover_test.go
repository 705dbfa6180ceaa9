package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// theirs plays KubeFleet's hub, which has run before: what it leaves for a member is made by
// hand, as the facts say.
type theirs struct{ fixture }

func (h theirs) owner(mc *clusterv1beta1.MemberCluster, controller bool) []metav1.OwnerReference {
	reference := metav1.OwnerReference{APIVersion: "cluster.kubernetes-fleet.io/v1beta1", Kind: "MemberCluster", Name: mc.Name, UID: mc.UID}
	if controller {
		reference.Controller = &controller
	}
	return []metav1.OwnerReference{reference}
}

// member creates a MemberCluster with all objects that KubeFleet's hub creates for it. owned
// reports whether the hub created the member's namespace; otherwise the namespace existed before.
func (h theirs) member(prefix string, owned bool) *registered {
	h.t.Helper()
	ctx := context.Background()
	m := h.register(prefix, func(mc *clusterv1beta1.MemberCluster) {
		mc.Labels = map[string]string{"kubernetes-fleet.io/member-name": mc.Name, "test": h.workspace}
		mc.Finalizers = []string{"kubernetes-fleet.io/membercluster-finalizer", "kubernetes-fleet.io/cluster-profile-cleanup"}
	})
	mc := m.record()
	namespace := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: m.namespaceName(), Labels: map[string]string{"kubernetes-fleet.io/is-fleet-resource": "true"}},
	}
	if owned {
		namespace.OwnerReferences = h.owner(&mc, true)
	}
	h.check(h.Create(ctx, namespace))
	all := []string{"*"}
	inside := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace.Name, Name: name, OwnerReferences: h.owner(&mc, false)}
	}
	h.check(h.Create(ctx, &rbacv1.Role{ObjectMeta: inside("fleet-role-" + m.name), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"cluster.kubernetes-fleet.io"}, Resources: all, Verbs: all}, {
			APIGroups: []string{"placement.kubernetes-fleet.io"}, Resources: all, Verbs: all,
		},
		{APIGroups: []string{"networking.fleet.azure.com"}, Resources: all, Verbs: all}, {
			APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"get", "list", "update", "patch", "watch", "create"},
		},
	}}))
	h.check(h.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: inside("fleet-rolebinding-" + m.name), Subjects: []rbacv1.Subject{mc.Spec.Identity},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "fleet-role-" + m.name}}))
	h.check(h.Create(ctx, &clusterv1beta1.InternalMemberCluster{
		ObjectMeta: inside(m.name), Spec: clusterv1beta1.InternalMemberClusterSpec{
			State: clusterv1beta1.ClusterStateJoin, HeartbeatPeriodSeconds: 60,
		},
	}))
	m.eventually("its agent has joined", func() error { return m.answer(metav1.ConditionTrue, "") })
	var report clusterv1beta1.InternalMemberCluster
	h.check(h.get(&report, m.namespaceName(), m.name))
	mc = m.record()
	mc.Status.AgentStatus = report.Status.AgentStatus
	for _, kind := range []string{"ReadyToJoin", "Joined"} {
		meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "MemberCluster" + kind, ObservedGeneration: mc.Generation,
		})
	}
	h.check(h.Status().Update(ctx, &mc))
	return m
}

// work is what its work generator writes for a placement.
func (h theirs) work(m *registered, crp, name string, objects ...client.Object) *placement.Work {
	h.t.Helper()
	work := &placement.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.namespaceName(), Name: name, Finalizers: []string{placement.FinalizerWork},
		Labels: map[string]string{"kubernetes-fleet.io/parent-CRP": crp,
			"kubernetes-fleet.io/parent-resource-binding":        crp + "-" + m.name + "-1a2b3c4d",
			"kubernetes-fleet.io/parent-resource-snapshot-index": "3"},
		Annotations: map[string]string{"kubernetes-fleet.io/parent-resource-snapshot-name": crp + "-3-snapshot"},
	}}
	for _, o := range objects {
		text, err := json.Marshal(o)
		h.check(err)
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, placement.Manifest{RawExtension: runtime.RawExtension{Raw: text}})
	}
	h.check(h.Create(context.Background(), work))
	said := work.DeepCopy()
	for kind, reason := range map[string]string{"Applied": "AllManifestsApplied", "Available": "AllManifestsAvailable"} {
		meta.SetStatusCondition(&said.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: work.Generation,
		})
	}
	h.check(h.Status().Update(context.Background(), said))
	return work
}

// kind installs the definition of a kind that only KubeFleet's hub serves.
func (h theirs) kind(kind, plural string) { h.scopedKind(apiextensionsv1.ClusterScoped, kind, plural) }

func (h theirs) scopedKind(scope apiextensionsv1.ResourceScope, kind, plural string) {
	h.t.Helper()
	preserve := true
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".placement.kubernetes-fleet.io"}}
	definition.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "placement.kubernetes-fleet.io", Scope: scope,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind),
		},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}}}},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	h.check(err)
	delete(content, "status")
	o := &unstructured.Unstructured{Object: content}
	o.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	h.check(client.IgnoreAlreadyExists(h.Create(context.Background(), o)))
	h.t.Cleanup(func() { _ = h.Delete(context.Background(), o) }) // it may be gone
}

// leaves creates an object of such a kind, with a finalizer that no controller removes.
func (h theirs) leaves(kind, name, crp string) *unstructured.Unstructured {
	h.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("placement.kubernetes-fleet.io/v1beta1")
	o.SetKind(kind)
	o.SetName(name)
	o.SetLabels(map[string]string{"kubernetes-fleet.io/parent-CRP": crp})
	o.SetFinalizers([]string{"kubernetes-fleet.io/scheduler-cleanup"})
	o.Object["spec"] = map[string]any{"state": "Bound", "targetCluster": "of " + name, "theirs": "kept"}
	h.eventually(kind+" is served", func() error { return h.Create(context.Background(), o) })
	h.t.Cleanup(func() {
		free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		_ = h.Patch(context.Background(), o, free)       // it may be gone
		_ = h.Delete(context.Background(), o.DeepCopy()) // it may be gone
	})
	return o
}

// TestAHubThatTakesOverKubeFleetsKeepsMembersWorksAndDecisions stops Muster's hub, makes what
// KubeFleet's has made, and starts it again.
func TestAHubThatTakesOverKubeFleetsKeepsMembersWorksAndDecisions(t *testing.T) {
	f := newAlone(t, "")
	ctx := context.Background()
	h := theirs{f}
	shop := f.shop()
	f.eventually("namespace fleet-system is there", func() error { return f.get(&corev1.Namespace{}, "", "fleet-system") })
	f.hub.Kill()
	first, second, unproved := h.member("first", true), h.member("second", true), h.member("unproved", false)
	crp := &placement.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{
			Name: "crp-" + f.workspace, Finalizers: []string{"kubernetes-fleet.io/crp-cleanup", "kubernetes-fleet.io/scheduler-cleanup"},
		},
	}
	one := int32(1)
	crp.Spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: shop}}
	crp.Spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickN, NumberOfClusters: &one,
		Affinity: &placement.Affinity{ClusterAffinity: &placement.ClusterAffinity{Required: &placement.ClusterSelector{
			ClusterSelectorTerms: []placement.ClusterSelectorTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"test": f.workspace}},
			}}}}}}
	f.check(f.Create(ctx, crp))
	t.Cleanup(func() { f.dispose(crp) })
	crp.Status.ObservedResourceIndex = "3"
	f.check(f.Status().Update(ctx, crp))
	settings := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"},
		Data: map[string]string{"a": "1"},
	}
	work := h.work(second, crp.Name, crp.Name+"-work", settings) // by name the first would be picked
	envelope := h.work(second, crp.Name, crp.Name+"-envelope-7f5c")
	foreign := h.work(unproved, crp.Name, crp.Name+"-work", settings)
	var reportBefore clusterv1beta1.InternalMemberCluster
	f.check(f.get(&reportBefore, second.namespaceName(), second.name))
	for kind, plural := range map[string]string{
		"ClusterResourceSnapshot": "clusterresourcesnapshots", "ClusterSchedulingPolicySnapshot": "clusterschedulingpolicysnapshots",
	} {
		h.kind(kind, plural)
	}
	binding := h.leaves("ClusterResourceBinding", crp.Name+"-"+second.name+"-1a2b3c4d", crp.Name)
	left := []*unstructured.Unstructured{binding, h.leaves("ClusterResourceSnapshot", crp.Name+"-3-snapshot", crp.Name)}
	f.hub.Start()
	for _, m := range []*registered{first, second} {
		m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
		m.until("Joined", metav1.ConditionTrue, "MemberClusterJoined")
		if c := m.until("LeftoversRemoved", metav1.ConditionFalse, "KubeFleetFinalizers"); !strings.Contains(c.Message,
			"finalizer kubernetes-fleet.io/cluster-profile-cleanup belongs to KubeFleet's hub") {
			t.Errorf("it says %q", c.Message)
		}
		m.eventually("its agent beats with the token that it has", func() error { return m.answer(metav1.ConditionTrue, "") })
		m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	}
	if c := unproved.until("ReadyToJoin", metav1.ConditionFalse, "NamespaceTaken"); !strings.Contains(c.Message, unproved.namespaceName()) {
		t.Errorf("it says %q", c.Message)
	}
	made := work.UID
	f.eventually("the Work is Muster's and holds what Muster selects", func() error {
		if err := f.get(work, second.namespaceName(), work.Name); err != nil {
			return err
		}
		if got := manifests(t, *work); work.Labels[fleet.LabelManaged] != "true" || got["Service web"] == nil ||
			work.Labels["kubernetes-fleet.io/parent-resource-snapshot-index"] != "4" {
			return fmt.Errorf("it has %v and %d manifests", work.Labels, len(got))
		}
		return nil
	})
	f.eventually("the placement names what is left", func() error {
		if err := f.get(crp, "", crp.Name); err != nil {
			return err
		}
		c := meta.FindStatusCondition(crp.Status.Conditions, "LeftoversRemoved")
		for _, words := range []string{
			"1 clusterresourcebindings, 1 clusterresourcesnapshots of the placement",
			"kubectl delete --wait=false clusterresourcebindings,clusterresourcesnapshots -l kubernetes-fleet.io/parent-CRP=" + crp.Name,
			"Work " + second.namespaceName() + "/" + envelope.Name, "Work " + unproved.namespaceName() + "/" + foreign.Name,
			"the hub deletes them together with the placement",
		} {
			if c == nil || !strings.Contains(c.Message, words) {
				return fmt.Errorf("it says %+v, want %q", c, words)
			}
		}
		return nil
	})
	if picked := pickedOf(crp.Status); len(picked) != 1 || picked[0].ClusterName != second.name {
		t.Errorf("picked are %+v", picked)
	}
	if work.UID != made || work.DeletionTimestamp != nil {
		t.Error("the Work was deleted, and with it what it applied")
	}
	if work.Labels["kubernetes-fleet.io/parent-resource-binding"] != crp.Name+"-"+second.name+"-1a2b3c4d" {
		t.Errorf("the Work does not lead back to KubeFleet's binding: %v", work.Labels)
	}
	for _, o := range []*placement.Work{envelope, foreign} {
		was := o.DeepCopy()
		f.check(f.get(o, o.Namespace, o.Name))
		if o.ResourceVersion != was.ResourceVersion && o.Generation != was.Generation || o.Labels[fleet.LabelManaged] != "" ||
			o.DeletionTimestamp != nil {
			t.Errorf("Work %s/%s was touched: %+v", o.Namespace, o.Name, o.ObjectMeta)
		}
	}
	generation := binding.GetGeneration()
	if f.check(f.get(binding, "", binding.GetName())); binding.GetGeneration() != generation || binding.GetLabels()[fleet.LabelManaged] != "" {
		t.Errorf("the binding of KubeFleet's hub was touched: %v", binding.Object)
	}
	if kept, _, _ := unstructured.NestedString(binding.Object, "spec", "theirs"); kept != "kept" {
		t.Errorf("the binding of KubeFleet's hub lost a field: %v", binding.Object)
	}
	var report clusterv1beta1.InternalMemberCluster
	if f.check(f.get(&report, second.namespaceName(), second.name)); report.UID != reportBefore.UID {
		t.Error("the report was made anew")
	}
	h.departs(crp, work, second, left, envelope)
}

// departs has the placement removed, with what KubeFleet's hub has left of it, and then the member,
// with a Work that is not Muster's.
func (h theirs) departs(crp *placement.ClusterResourcePlacement, work *placement.Work, m *registered, left []*unstructured.Unstructured,
	other *placement.Work) {
	h.t.Helper()
	ctx := context.Background()
	h.check(h.Delete(ctx, crp))
	m.remove(work.Name)
	h.isGone("the placement", crp)
	for _, o := range left {
		h.isGone("the "+o.GetKind(), o)
	}
	mc := m.record()
	h.check(h.Delete(ctx, &mc))
	m.remove(other.Name)
	m.eventually("the agent is asked and has left", func() error {
		var report clusterv1beta1.InternalMemberCluster
		if err := h.get(&report, m.namespaceName(), m.name); err != nil {
			return err
		}
		if report.Spec.State != clusterv1beta1.ClusterStateLeave {
			return fmt.Errorf("the state is %s", report.Spec.State)
		}
		return m.answer(metav1.ConditionFalse, "")
	})
	m.eventually("the record says which finalizer keeps it", func() error {
		mc := m.record()
		c := meta.FindStatusCondition(mc.Status.Conditions, "Joined")
		said := "it has left; finalizer kubernetes-fleet.io/cluster-profile-cleanup belongs to KubeFleet's hub"
		if c == nil || !strings.Contains(c.Message, said) {
			return fmt.Errorf("it says %+v", c)
		}
		mc.Finalizers = slices.DeleteFunc(mc.Finalizers, func(name string) bool { return strings.Contains(name, "cluster-profile") })
		return h.Update(ctx, &mc)
	})
	m.untilGone()
}
