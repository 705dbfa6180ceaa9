package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestAClusterOfAWorkspaceThatOptsInIsPickedByItsName(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	agent := f.join(values, map[string]any{"clientID": "cross"})
	name := naming.Cluster("cross")
	cluster := f.untilReady(name, "Ready")
	bearer, namespace := agent.credential()
	agent.stop() // played by hand from here on
	f.beating(f.as(bearer), namespace)
	crp := f.crp("resourceSelectors: [{group: '', version: v1, kind: Namespace, name: " + f.shop() +
		"}]\npolicy: {placementType: PickFixed, clusterNames: [$TEST/" + name + "]}")
	f.untilSays(crp, "Scheduled", metav1.ConditionFalse,
		fmt.Sprintf("%s/%s: there is no MemberCluster, and no Cluster of a workspace that opts in", f.workspace, name))

	var workspace corev1.Namespace
	f.check(f.get(&workspace, "", f.workspace))
	f.change(&workspace, func() { metav1.SetMetaDataLabel(&workspace.ObjectMeta, "muster/placement", "true") })
	m := &registered{fixture: f, name: name, agent: f.as(bearer)}
	var work placement.Work
	f.eventually("its agent reads the Work", func() error {
		return m.agent.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: crp.Name + "-work"}, &work)
	})
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, "1 members picked")
	f.check(m.agent.Patch(context.Background(), &work,
		client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"finalizers":[%q]}}`, placement.FinalizerWork))))
	before := work.DeepCopy()
	work.Status.Conditions = []metav1.Condition{{
		Type: "Applied", Status: metav1.ConditionFalse, Reason: "ManifestNotApplied", Message: "not yet", ObservedGeneration: work.Generation,
		LastTransitionTime: metav1.Now(),
	}}
	f.check(m.agent.Status().Patch(context.Background(), &work, client.MergeFrom(before)))
	f.untilSays(crp, "Applied", metav1.ConditionFalse, f.workspace+"/"+name+": not yet")
	f.refused("it makes a Work", m.agent.Create(context.Background(), &placement.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"},
	}))
	f.refused("it deletes a Work", m.agent.Delete(context.Background(), &work))

	f.check(f.Delete(context.Background(), &cluster))
	f.eventually("the Cluster's namespace goes in spite of the Work", func() error {
		if err := f.get(&corev1.Namespace{}, "", namespace); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
}

func TestAResourcePlacementPlacesOfItsOwnNamespaceOnly(t *testing.T) {
	f := newFixture(t)
	m := f.joined("rp", "env=prod")
	shop := f.shop()
	rp := &placement.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}}
	rp.Spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "ConfigMap"}}
	rp.Spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickFixed, ClusterNames: []string{m.name}}
	f.check(f.Create(context.Background(), rp))
	name := shop + ".settings-work"
	var work placement.Work
	f.eventually("the member has the Work", func() error { return f.get(&work, m.namespaceName(), name) })
	if got := manifests(t, work); len(got) != 1 || got["ConfigMap settings"] == nil || work.Labels[placement.LabelParentNamespace] != shop {
		t.Errorf("the Work has the labels %v and holds %v", work.Labels, got)
	}
	m.apply(name, "")
	f.eventually("it is available", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(rp), rp); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(rp.Status.Conditions, "ResourcePlacementAvailable") {
			return fmt.Errorf("it says %q", rp.Status.Message)
		}
		return nil
	})
	f.check(f.Delete(context.Background(), rp))
	m.remove(name)
	f.eventually("it is gone", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(rp), rp); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
}

func TestManyResourcesBecomeSeveralWorks(t *testing.T) {
	f := newFixture(t)
	m := f.joined("split", "env=prod")
	shop := f.shop()
	for i := range 3 {
		f.check(f.Create(context.Background(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: fmt.Sprintf("large-%d", i)}, Data: map[string]string{
				"a": strings.Repeat("x", 600<<10),
			},
		}))
	}
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.eventually("there are three Works", func() error {
		var names []string
		for _, work := range f.works(crp) {
			names = append(names, work.Name)
		}
		if want := []string{crp.Name + "-1", crp.Name + "-2", crp.Name + "-work"}; !slices.Equal(names, want) {
			return fmt.Errorf("they are %v, want %v", names, want)
		}
		return nil
	})
	for i := range 3 {
		f.check(f.Delete(context.Background(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: fmt.Sprintf("large-%d", i)},
		}))
	}
	f.untilOn(crp, m)
}

// The agent of a Cluster applies what affinity brings it by the Cluster's labels; a workspace that
// withdraws takes nothing away.
func TestAClusterIsPickedByItsLabelsAndKeepsWhatItHasWhenItsWorkspaceWithdraws(t *testing.T) {
	f := newFixture(t)
	opt := func(in bool) {
		f.eventually("the workspace says whether it opts in", func() error {
			var workspace corev1.Namespace
			if err := f.get(&workspace, "", f.workspace); err != nil {
				return err
			}
			delete(workspace.Labels, "muster/placement")
			if in {
				metav1.SetMetaDataLabel(&workspace.ObjectMeta, "muster/placement", "true")
			}
			return f.Update(context.Background(), &workspace)
		})
	}
	e := f.elsewhere("labelled") // which opts in
	on, cluster := e.on, e.name
	shop := f.shop()
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	name := f.workspace + "/" + cluster
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, "no member qualifies")
	f.eventually("the Cluster is labelled", func() error {
		var record fleet.Cluster
		if err := f.get(&record, f.workspace, cluster); err != nil {
			return err
		}
		metav1.SetMetaDataLabel(&record.ObjectMeta, "env", "prod")
		metav1.SetMetaDataLabel(&record.ObjectMeta, "test", f.workspace)
		return f.Update(context.Background(), &record)
	})
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 1 members")
	if got := crp.Status.PlacementStatuses[0].ClusterName; got != name {
		t.Errorf("it is called %s, want %s", got, name)
	}
	settings := &corev1.ConfigMap{}
	f.check(on.get(settings, shop, "settings"))

	opt(false)
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, "objects stay, because no workspace for placements has these members any more: "+
		"member namespace "+naming.MemberNamespace(f.workspace, cluster))
	f.check(f.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "later"}}))
	f.eventually("the placement counts the change", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		if crp.Status.ObservedResourceIndex != "1" {
			return fmt.Errorf("the index is %s", crp.Status.ObservedResourceIndex)
		}
		return nil
	})
	if err := on.get(&corev1.ConfigMap{}, shop, "later"); !apierrors.IsNotFound(err) {
		t.Errorf("reading what came after it withdrew: %v", err)
	}
	uid := settings.UID
	f.check(on.get(settings, shop, "settings"))
	if settings.UID != uid || settings.DeletionTimestamp != nil {
		t.Errorf("it was taken away: %+v", settings.ObjectMeta)
	}
	opt(true)
	f.eventually("it follows again", func() error { return on.get(&corev1.ConfigMap{}, shop, "later") })
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 1 members")
	f.check(f.Delete(context.Background(), crp))
	f.eventually("it is emptied", func() error {
		if err := on.get(settings, shop, "settings"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
}
