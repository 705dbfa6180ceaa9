package hub_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// script is how an agent answers.
type script struct {
	// available is the reason of the condition Available, AllManifestsAvailable if it is empty.
	available string
	// late: every answer is given for the generation before, and only then for the present one.
	late bool
}

// scripted joins a member whose agent, an unmodified one of KubeFleet, answers for every Work by
// itself: it adds its finalizer by an update of the whole Work, updates the status once per
// generation, and lets go what is deleted. What it says of manifests does not matter here.
func (f fixture) scripted(prefix string, as script) *registered {
	f.t.Helper()
	m := f.register(prefix)
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	m.eventually("the agent reports", func() error { return m.answer(metav1.ConditionTrue, "") })
	m.label("test=" + f.workspace)
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	config := rest.AnonymousClientConfig(f.cluster.Config)
	config.BearerToken, config.QPS = m.bearer(m.name), -1
	watching, err := client.NewWithWatch(config, client.Options{Scheme: f.Scheme(), Mapper: f.RESTMapper()})
	f.check(err)
	ctx, cancel := context.WithCancel(context.Background())
	events, err := watching.Watch(ctx, &placement.WorkList{}, client.InNamespace(m.namespaceName()))
	f.check(err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range events.ResultChan() {
			work, ok := e.Object.(*placement.Work)
			if !ok {
				continue
			}
			if err := as.answer(ctx, watching, client.ObjectKeyFromObject(work)); err != nil && ctx.Err() == nil {
				f.t.Errorf("the agent of %s cannot answer for Work %s: %v", m.name, work.Name, err)
			}
		}
	}()
	f.t.Cleanup(func() {
		cancel()
		events.Stop()
		<-ended
	})
	return m
}

func (as script) answer(ctx context.Context, hub client.Client, key client.ObjectKey) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		work := &placement.Work{}
		if err := hub.Get(ctx, key, work); err != nil {
			return client.IgnoreNotFound(err)
		}
		if work.DeletionTimestamp != nil {
			work.Finalizers = nil
			return client.IgnoreNotFound(hub.Update(ctx, work))
		}
		if !slices.Contains(work.Finalizers, placement.FinalizerWork) {
			work.Finalizers = append(work.Finalizers, placement.FinalizerWork)
			return client.IgnoreNotFound(hub.Update(ctx, work)) // it may be gone by now
		}
		if c := meta.FindStatusCondition(work.Status.Conditions, "Available"); c != nil && c.ObservedGeneration == work.Generation {
			return nil
		} else if as.late && (c == nil || c.ObservedGeneration < work.Generation-1) {
			work.Generation-- // the status that this makes is an event, which has it answer once more
		}
		said := &unstructured.Unstructured{}
		said.SetGroupVersionKind(placement.GroupVersion.WithKind("Work"))
		said.SetNamespace(work.Namespace)
		said.SetName(work.Name)
		said.SetResourceVersion(work.ResourceVersion)
		said.Object["spec"] = map[string]any{}
		said.Object["status"] = map[string]any{"conditions": []any{
			condition(work, "Applied", "True", "AllManifestsApplied", ""),
			condition(work, "Available", "True", cmp.Or(as.available, "AllManifestsAvailable"), ""),
		}}
		return client.IgnoreNotFound(hub.Status().Update(ctx, said))
	})
}

// untilPlaced waits until a placement of either kind says that everything is available on so many
// members, which have a revision of what is selected.
func (f fixture) untilPlaced(o client.Object, status *placement.PlacementStatus, index string, members int) {
	f.t.Helper()
	all := writtenStages + " Applied=True Available=True"
	f.eventually("revision "+index+" is available everywhere", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		picked := pickedOf(*status)
		if got := stages(status.Conditions); got != all || len(picked) != members {
			return fmt.Errorf("it is %s on %d members; %s", got, len(picked), status.Message)
		}
		for _, s := range picked {
			if got := stages(s.Conditions); got != all || s.ObservedResourceIndex != index {
				return fmt.Errorf("%s has revision %s: %s; %s", s.ClusterName, s.ObservedResourceIndex, got, status.Message)
			}
		}
		return nil
	})
}

// TestAPlacementSaysAfterEveryUpdateThatItsMembersAreAsWanted goes through what KubeFleet's own
// tests update, with three of its agents.
func TestAPlacementSaysAfterEveryUpdateThatItsMembersAreAsWanted(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	for i := range 3 {
		f.scripted(fmt.Sprintf("updated-%d", i), script{late: i == 1})
	}
	shop := f.shop()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "role-" + f.workspace}}
	f.check(f.Create(ctx, role))
	crp := f.crp(`
resourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, labelSelector: {matchLabels: {pick: $TEST}}}]
policy: {affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: ` +
		`{matchLabels: {test: $TEST}}}]}}}}
revisionHistoryLimit: 1
`)
	f.untilPlaced(crp, &crp.Status, "0", 3)
	if len(crp.Status.SelectedResources) > 0 || !strings.Contains(crp.Status.Message, "select nothing") {
		t.Errorf("it selects %v and says %q", crp.Status.SelectedResources, crp.Status.Message)
	}
	for i, change := range []func(){
		func() { // a cluster-scoped object becomes selected
			role.Labels = map[string]string{"pick": f.workspace}
			f.check(f.Update(ctx, role))
		},
		func() { // and unselected
			role.Labels = nil
			f.check(f.Update(ctx, role))
		},
		func() { // another selector, of a Namespace that is there
			f.change(crp, func() {
				crp.Spec.ResourceSelectors = append(crp.Spec.ResourceSelectors, placement.ResourceSelector{
					Version: "v1", Kind: "Namespace", Name: shop,
				})
			})
		},
		func() {
			f.check(f.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "more"}}))
		},
		func() { // and back to nothing
			f.change(crp, func() { crp.Spec.ResourceSelectors = crp.Spec.ResourceSelectors[:1] })
		},
	} {
		change()
		f.untilPlaced(crp, &crp.Status, fmt.Sprint(i+1), 3)
	}
	// A change of the policy alone is no new revision.
	f.change(crp, func() { crp.Spec.RevisionHistoryLimit = ptr.To(int32(3)) })
	f.untilPlaced(crp, &crp.Status, "5", 3)
}

// TestAResourcePlacementRollsOutOverAgentsThatCannotSayWhetherItWorks has two changes follow
// each other at once.
func TestAResourcePlacementRollsOutOverAgentsThatCannotSayWhetherItWorks(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	for i := range 3 {
		f.scripted(fmt.Sprintf("untracked-%d", i), script{available: "WorkNotTrackable"})
	}
	shop := f.shop()
	rp := &placement.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}}
	f.check(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(`
resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: settings}]
policy: {affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: `+
		`{matchLabels: {test: $TEST}}}]}}}}
strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, unavailablePeriodSeconds: 2}}
`, "$TEST", f.workspace)), &rp.Spec))
	f.check(f.Create(ctx, rp))
	f.untilPlaced(rp, &rp.Status, "0", 3)
	for i := range 3 {
		f.check(f.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}},
			client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"a":"again %d"}}`, i))))
		f.untilPlaced(rp, &rp.Status, fmt.Sprint(i+1), 3)
	}
}
