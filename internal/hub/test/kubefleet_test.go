package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/testkube"
)

// kubefleet plays an unmodified KubeFleet member agent by hand: with the identity's token, by typed
// updates and a watch of its namespace on the hub, and as an administrator on its own cluster.
type kubefleet struct {
	*registered
	on      fixture
	events  <-chan watch.Event
	failing string
}

// kubefleet registers a member and joins it as KubeFleet's agent does.
func (f fixture) kubefleet(prefix string) *kubefleet {
	f.t.Helper()
	cluster := testkube.Start(f.t, "delivered")
	cluster.ServeFleet(f.t)
	k := &kubefleet{registered: f.register(prefix), on: fixture{Client: cluster.Client(f.t), t: f.t, cluster: cluster}}
	k.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	config := rest.AnonymousClientConfig(f.cluster.Config)
	config.BearerToken, config.QPS = k.bearer(k.name), -1
	works, in := &placement.WorkList{}, client.InNamespace(k.namespaceName())
	f.eventually("it lists its Works", func() error { return k.as(config.BearerToken).List(context.Background(), works, in) })
	k.events = f.followSince(works.ResourceVersion, config, works, in)
	f.eventually("it reports", func() error { return k.answer(metav1.ConditionTrue, "") })
	k.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	k.label("env=prod", "test="+f.workspace)
	return k
}

// receives returns the next Work from the agent's watch for which the function returns true.
func (k *kubefleet) receives(what string, is func(*placement.Work) bool) *placement.Work {
	k.t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		select {
		case e, open := <-k.events:
			if !open {
				k.t.Fatalf("the watch ended before the agent received a Work that is %s", what)
			}
			if work, ok := e.Object.(*placement.Work); ok && e.Type != watch.Deleted && is(work) {
				return work
			}
		case <-deadline:
			k.t.Fatalf("the agent did not receive a Work that is %s", what)
		}
	}
}

// addsFinalizer adds the agent's finalizer, by an update of the whole Work.
func (k *kubefleet) addsFinalizer(work *placement.Work) {
	k.t.Helper()
	k.changeAs(k.agent, work, func() { work.Finalizers = append(work.Finalizers, "kubernetes-fleet.io/work-cleanup") })
}

// applies makes the manifests under an AppliedWork and says so in the status, as KubeFleet words
// it. What is called failing is not applied.
func (k *kubefleet) applies(work *placement.Work) {
	k.t.Helper()
	ctx := context.Background()
	owner := &placement.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: work.Name}, Spec: placement.AppliedWorkSpec{WorkName: work.Name, WorkNamespace: work.Namespace},
	}
	if err := k.on.Create(ctx, owner); apierrors.IsAlreadyExists(err) {
		k.check(k.on.get(owner, "", work.Name))
	} else {
		k.check(err)
	}
	block := true
	reference := metav1.OwnerReference{
		APIVersion: "placement.kubernetes-fleet.io/v1beta1", Kind: "AppliedWork", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &block,
	}
	var conditions []any
	for i, m := range work.Spec.Workload.Manifests {
		o := &unstructured.Unstructured{}
		k.check(json.Unmarshal(m.Raw, &o.Object))
		entry := map[string]any{"identifier": map[string]any{"ordinal": i, "group": o.GroupVersionKind().Group,
			"version": o.GroupVersionKind().Version, "kind": o.GetKind(),
			"resource": strings.ToLower(o.GetKind()) + "s", "namespace": o.GetNamespace(), "name": o.GetName()}}
		if o.GetName() == k.failing {
			entry["conditions"] = []any{condition(work, "Applied", "False", "FoundDrifts", "drifts between the two sides"),
				condition(work, "Available", "False", "NotYetApplied", "")}
			entry["driftDetails"] = map[string]any{"observationTime": "2026-01-02T03:04:05Z", "firstDriftedObservedTime": "2026-01-02T03:00:00Z",
				"observedInMemberClusterGeneration": 3,
				"observedDrifts":                    []any{map[string]any{"path": "/data/a", "valueInHub": "1", "valueInMember": "2"}}}
			conditions = append(conditions, entry)
			continue
		}
		o.SetOwnerReferences([]metav1.OwnerReference{reference})
		o.SetAnnotations(map[string]string{"kubernetes-fleet.io/spec-hash": "x", "kubernetes-fleet.io/last-applied-configuration": "{}"})
		if err := k.on.Create(ctx, o, client.FieldOwner("work-api-agent")); !apierrors.IsAlreadyExists(err) {
			k.check(err)
		}
		entry["conditions"] = []any{condition(work, "Applied", "True", "ManifestApplied", "applied"),
			condition(work, "Available", "True", "ManifestAvailable", "available")}
		conditions = append(conditions, entry)
	}
	all := []any{condition(work, "Applied", "True", "AllManifestsApplied", ""),
		condition(work, "Available", "True", "AllManifestsAvailable", "")}
	if k.failing != "" {
		all = []any{condition(work, "Applied", "False", "SomeManifestsAreNotApplied", ""),
			condition(work, "Available", "False", "SomeManifestsAreNotAvailable", "")}
	}
	k.eventually("it updates the status", func() error {
		said := &unstructured.Unstructured{}
		said.SetGroupVersionKind(placement.GroupVersion.WithKind("Work"))
		if err := k.agent.Get(ctx, client.ObjectKeyFromObject(work), said); err != nil {
			return err
		}
		said.Object["status"] = map[string]any{"conditions": all, "manifestConditions": conditions}
		return k.agent.Status().Update(ctx, said)
	})
}

func condition(work *placement.Work, kind, status, reason, message string) map[string]any {
	return map[string]any{
		"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": work.Generation,
		"lastTransitionTime": "2026-01-02T03:04:05Z",
	}
}

// removes deletes the AppliedWork in the foreground and takes its finalizer off.
func (k *kubefleet) removes(work *placement.Work) {
	k.t.Helper()
	owner := &placement.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: work.Name}}
	k.check(k.on.Delete(context.Background(), owner, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	k.eventually("the AppliedWork is gone with what it owns", func() error {
		if err := k.on.get(owner, "", work.Name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
	k.changeAs(k.agent, work, func() { work.Finalizers = nil })
}

// TestAPlacementOnAMemberWithKubeFleetsAgent goes through the whole life of a placement.
func TestAPlacementOnAMemberWithKubeFleetsAgent(t *testing.T) {
	f := newFixture(t)
	k := f.kubefleet("kubefleet")
	shop := f.shop()
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	is := func(name string) func(*placement.Work) bool {
		return func(w *placement.Work) bool { return w.Name == name }
	}
	work := k.receives("placed", is(crp.Name+"-work"))
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, "1 members picked")
	f.untilSays(crp, "Applied", metav1.ConditionUnknown, k.name+": waiting for the member's agent")
	want := map[string]string{
		"kubernetes-fleet.io/parent-CRP": crp.Name, "kubernetes-fleet.io/parent-resource-snapshot-index": "0",
		"kubernetes-fleet.io/parent-resource-binding": work.Labels["kubernetes-fleet.io/parent-resource-binding"],
	}
	got := map[string]string{}
	for key := range want {
		got[key] = work.Labels[key]
	}
	if diff := cmp.Diff(want, got); diff != "" || got["kubernetes-fleet.io/parent-resource-binding"] == "" || len(work.OwnerReferences) > 0 {
		t.Errorf("owners %v, labels (-want +got):\n%s", work.OwnerReferences, diff)
	}
	k.addsFinalizer(work)
	k.failing = "settings"
	k.applies(work)
	f.untilSays(crp, "Applied", metav1.ConditionFalse, fmt.Sprintf("%s: ConfigMap %s/settings: drifts between the two sides", k.name, shop))
	status := crp.Status.PlacementStatuses[0]
	if len(status.FailedPlacements) != 1 || status.FailedPlacements[0].Name != "settings" ||
		status.FailedPlacements[0].Condition.Reason != "FoundDrifts" {
		t.Errorf("failed are %+v", status.FailedPlacements)
	}
	drifted := []placement.PatchDetail{{Path: "/data/a", ValueInHub: "1", ValueInMember: "2"}}
	if d := status.DriftedPlacements; len(d) != 1 || d[0].Name != "settings" || d[0].TargetClusterObservedGeneration != 3 ||
		!cmp.Equal(d[0].ObservedDrifts, drifted) {
		t.Errorf("drifted are %+v", d)
	}
	k.failing = ""
	k.applies(work)
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 1 members")
	f.check(k.on.get(&corev1.ConfigMap{}, shop, "settings"))

	f.check(f.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "more"}}))
	changed := k.receives("changed", func(w *placement.Work) bool { return w.Generation > work.Generation })
	f.untilSays(crp, "Applied", metav1.ConditionUnknown, "waiting for the member's agent")
	k.applies(changed)
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 1 members")

	f.check(f.Delete(context.Background(), crp))
	k.removes(k.receives("deleted", func(w *placement.Work) bool { return w.DeletionTimestamp != nil }))
	f.eventually("the placement is gone", func() error {
		if err := f.get(crp, "", crp.Name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})

	// It leaves with a Work, off which it takes nothing but its finalizer; what it applied stays,
	// as the record says.
	shop = f.shop()
	work = k.holds(shop)
	k.annotate(string(clusterv1beta1.LeaveOrphan))
	record := k.record()
	f.check(f.Delete(context.Background(), &record))
	k.untilAskedToLeave()
	if f.check(k.agent.Get(context.Background(), client.ObjectKeyFromObject(work), work)); work.DeletionTimestamp != nil {
		t.Error("its Work was deleted, and with it what is to stay")
	}
	k.changeAs(k.agent, work, func() { work.Finalizers = nil })
	f.check(k.answer(metav1.ConditionFalse, ""))
	k.untilGone()
	f.check(k.on.get(&placement.AppliedWork{}, "", work.Name))
	f.check(k.on.get(&corev1.ConfigMap{}, shop, "settings"))
}

// TestKubeFleetsAgentHasJustTheRightsThatItsCallsNeed asks the hub itself what the identity may do.
func TestKubeFleetsAgentHasJustTheRightsThatItsCallsNeed(t *testing.T) {
	f := newFixture(t)
	k := f.kubefleet("rights")
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: k.namespaceName()}}
	f.check(k.agent.Create(context.Background(), review))
	got := map[string]string{}
	for _, rule := range review.Status.ResourceRules {
		for _, resource := range rule.Resources {
			name := strings.TrimPrefix(rule.APIGroups[0]+"/"+resource, "/")
			if strings.HasPrefix(name, "authorization.k8s.io/") || strings.HasPrefix(name, "authentication.k8s.io/") {
				continue // any user may query their own name and rights
			}
			if len(rule.ResourceNames) > 0 {
				name += " " + strings.Join(rule.ResourceNames, ",")
			}
			got[name] = strings.Join(slices.Sorted(slices.Values(rule.Verbs)), " ")
		}
	}
	want := map[string]string{
		"cluster.kubernetes-fleet.io/internalmemberclusters":        "get list update watch",
		"cluster.kubernetes-fleet.io/internalmemberclusters/status": "patch update",
		"placement.kubernetes-fleet.io/works":                       "get list patch update watch",
		"placement.kubernetes-fleet.io/works/status":                "patch update",
		"events": "create patch",
		// Of Muster's agent, which has not shown yet that it is that.
		"coordination.k8s.io/leases heartbeat": "get patch",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}
