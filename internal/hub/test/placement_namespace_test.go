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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// collects plays a KubeFleet member agent that collects namespaces.
func (r *registered) collects(namespaces ...string) {
	r.t.Helper()
	r.eventually("the agent reports its namespaces", func() error {
		var report clusterv1beta1.InternalMemberCluster
		if err := r.agent.Get(context.Background(), types.NamespacedName{Namespace: r.namespaceName(), Name: r.name}, &report); err != nil {
			return err
		}
		report.Status.Namespaces = map[string]string{"kube-system": ""}
		for _, namespace := range namespaces {
			report.Status.Namespaces[namespace] = ""
		}
		meta.SetStatusCondition(&report.Status.Conditions, metav1.Condition{
			Type: "NamespaceCollectionSucceeded", Status: metav1.ConditionTrue, Reason: "Succeeded",
		})
		return r.agent.Status().Update(context.Background(), &report)
	})
}

// rp creates a ResourcePlacement of the ConfigMap settings of a namespace, for the
// members of this test.
func (f fixture) rp(namespace string) *placement.ResourcePlacement {
	f.t.Helper()
	rp := &placement.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}}
	rp.Spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "settings"}}
	rp.Spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickAll,
		Affinity: &placement.Affinity{ClusterAffinity: &placement.ClusterAffinity{
			Required: &placement.ClusterSelector{
				ClusterSelectorTerms: []placement.ClusterSelectorTerm{{
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"test": f.workspace}},
				}},
			},
		}}}
	f.check(f.Create(context.Background(), rp))
	return rp
}

// untilRP waits until a condition of a ResourcePlacement has a status and a message
// that holds some words.
func (f fixture) untilRP(rp *placement.ResourcePlacement, kind string, status metav1.ConditionStatus, words string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%s of the ResourcePlacement is %s and says %q", kind, status, words), func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(rp), rp); err != nil {
			return err
		}
		c := meta.FindStatusCondition(rp.Status.Conditions, "ResourcePlacement"+kind)
		if c == nil || c.Status != status || !strings.Contains(c.Message, words) {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
}

func TestAResourcePlacementGoesOnlyWhereItsNamespaceIs(t *testing.T) {
	f := newFixture(t)
	with, without := f.joined("has"), f.joined("lacks")
	shop := f.shop()
	with.collects(shop)
	without.collects()
	without.eventually("the record shows the namespaces", func() error {
		if record := without.record(); len(record.Status.Namespaces) == 0 {
			return fmt.Errorf("it shows none")
		}
		return nil
	})
	rp := f.rp(shop)
	name := shop + ".settings-work"
	f.eventually("who has the namespace gets it", func() error { return f.get(&placement.Work{}, with.namespaceName(), name) })
	with.apply(name, "")
	f.untilRP(rp, "Available", metav1.ConditionTrue, "on all 1 members")
	i := slices.IndexFunc(rp.Status.Obstacles, func(o placement.Obstacle) bool { return o.ClusterName == without.name })
	if i < 0 || !strings.Contains(rp.Status.Obstacles[i].Message,
		"it has no namespace "+shop+", which a ResourcePlacement does not bring: place the Namespace there") {
		t.Errorf("of the other it says %+v", rp.Status.Obstacles)
	}
	if s := rp.Status.PlacementStatuses; len(s) != 1 || s[0].ClusterName != with.name {
		t.Errorf("it lists %+v", s)
	}
	if err := f.get(&placement.Work{}, without.namespaceName(), name); !apierrors.IsNotFound(err) {
		t.Errorf("reading the Work of the other: %v", err)
	}
	without.collects(shop)
	f.eventually("who gets the namespace gets it, too", func() error { return f.get(&placement.Work{}, without.namespaceName(), name) })
	with.collects() // what is placed stays
	without.apply(name, "")
	f.untilRP(rp, "Available", metav1.ConditionTrue, "on all 2 members")
	f.check(f.Delete(context.Background(), rp))
	with.remove(name)
	without.remove(name)
}

func TestWhatANamespaceBringsIsAsItsScopeSays(t *testing.T) {
	f := newFixture(t)
	m := f.joined("scope", "env=prod")
	shop := f.shop()
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop+", selectionScope: NamespaceOnly"))
	holds := func(want ...string) {
		t.Helper()
		f.eventually(fmt.Sprintf("the Work holds %v", want), func() error {
			var got []string
			for _, work := range f.works(crp) {
				for name := range manifests(t, work) {
					got = append(got, name)
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
					return err
				}
				return fmt.Errorf("it holds %v; it says %q", got, crp.Status.Message)
			}
			return nil
		})
		m.apply(crp.Name+"-work", "")
	}
	holds("Namespace " + shop)
	f.change(crp, func() {
		crp.Spec.ResourceSelectors[0].SelectionScope = placement.NamespaceWithResourceSelectors
		crp.Spec.ResourceSelectors = append(crp.Spec.ResourceSelectors, placement.ResourceSelector{
			Version: "v1", Kind: "ConfigMap", Name: "settings",
		})
	})
	holds("ConfigMap settings", "Namespace "+shop)
	f.change(crp, func() {
		crp.Spec.ResourceSelectors = append(crp.Spec.ResourceSelectors, placement.ResourceSelector{Version: "v1", Kind: "Secret"})
	})
	holds("ConfigMap settings", "Namespace "+shop, "Secret password")
	f.change(crp, func() {
		crp.Spec.ResourceSelectors[0].SelectionScope = placement.NamespaceWithResources
		crp.Spec.ResourceSelectors = crp.Spec.ResourceSelectors[:1]
	})
	holds("ConfigMap settings", "Namespace "+shop, "Secret password", "Service web")
}

// TestACRPBringsTheNamespaceAndAnRPWhatIsInIt lets Muster's own agent apply both, and then lets
// both claim one object.
func TestACRPBringsTheNamespaceAndAnRPWhatIsInIt(t *testing.T) {
	f := newFixture(t)
	e := f.elsewhere("coupled")
	f.eventually("the Cluster is labelled", func() error {
		var record fleet.Cluster
		if err := f.get(&record, f.workspace, e.name); err != nil {
			return err
		}
		metav1.SetMetaDataLabel(&record.ObjectMeta, "env", "prod")
		metav1.SetMetaDataLabel(&record.ObjectMeta, "test", f.workspace)
		metav1.SetMetaDataAnnotation(&record.ObjectMeta, "muster/placement-from", "*")
		return f.Update(context.Background(), &record)
	})
	shop := f.shop()
	rp := f.rp(shop)
	f.untilRP(rp, "Scheduled", metav1.ConditionTrue, "it has no namespace "+shop) // no member qualifies
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop+", selectionScope: NamespaceOnly"))
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 1 members")
	f.untilRP(rp, "Available", metav1.ConditionTrue, "on all 1 members")
	settings := &corev1.ConfigMap{}
	f.check(e.on.get(settings, shop, "settings"))
	if err := e.on.get(&corev1.Secret{}, shop, "password"); !apierrors.IsNotFound(err) {
		t.Errorf("reading what nobody placed: %v", err)
	}

	f.change(crp, func() {
		crp.Spec.ResourceSelectors[0].SelectionScope = placement.NamespaceWithResources
	})
	f.untilSays(crp, "Applied", metav1.ConditionFalse,
		fmt.Sprintf("ConfigMap %s/settings: Work %s.settings-work has applied it already", shop, shop))
	f.untilRP(rp, "Available", metav1.ConditionTrue, "on all 1 members")
	uid, owners := settings.UID, len(settings.OwnerReferences)
	f.check(e.on.get(settings, shop, "settings"))
	if settings.UID != uid || len(settings.OwnerReferences) != owners {
		t.Errorf("the first lost it: it has the owners %+v", settings.OwnerReferences)
	}
	f.check(f.Delete(context.Background(), rp))
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 1 members") // it is the CRP's now
	f.check(e.on.get(settings, shop, "settings"))
}
