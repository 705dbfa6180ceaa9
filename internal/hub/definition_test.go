package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/hub/served"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// healTime is within how many seconds of its definition's return a kind is written again.
const healTime = 10 * time.Second

// undefine deletes a CustomResourceDefinition.
func (f fixture) undefine(name string) *unstructured.Unstructured {
	f.t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(served.DefinitionKind)
	definition.SetName(name)
	f.check(f.Delete(context.Background(), definition))
	return definition
}

// back says whether an object that was there before is there anew.
func (f fixture) back(o client.Object, old client.Object) error {
	if err := f.get(o, old.GetNamespace(), old.GetName()); err != nil {
		return err
	}
	if o.GetUID() == old.GetUID() {
		return errors.New("it is the old one")
	}
	return nil
}

func TestKindsWhoseDefinitionsWereDeletedAreWrittenAgainWithoutARestart(t *testing.T) {
	t.Parallel()
	f, hub := newProcessFixture(t, "definitions", "")
	ctx := context.Background()
	p := f.place("a", nil)
	f.bundle("app", configMap+everywhere)
	deployment := p.deployment("app", there)
	m := f.joined("m", "env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", f.shop()))
	f.untilOn(crp, m)
	work := f.works(crp)[0]
	f.patch(work.DeepCopy(), `{"metadata":{"finalizers":["`+placement.FinalizerWork+`"]}}`) // the agent's
	var report clusterv1beta1.InternalMemberCluster
	f.check(f.get(&report, m.namespaceName(), m.name))
	content := fleet.Content{ObjectMeta: metav1.ObjectMeta{Name: delivery.ContentName(deployment.Spec.DeploymentID)}}
	f.check(f.get(&content, "", content.Name))

	for _, c := range []struct {
		definition string
		kind, old  client.Object
	}{
		{"bundledeployments.fleet.cattle.io", &fleet.BundleDeployment{}, &deployment},
		{"contents.fleet.cattle.io", &fleet.Content{}, &content},
		{"internalmemberclusters.cluster.kubernetes-fleet.io", &report, report.DeepCopy()},
		{worksDefinition, &placement.Work{}, &work},
	} {
		t.Run(c.definition, func(t *testing.T) {
			f := f
			f.t = t
			deleted := time.Now()
			definition := f.undefine(c.definition)
			f.eventually("the definition is gone", func() error { return gone(f.get(definition, "", c.definition)) })
			t.Logf("it was gone after %s", time.Since(deleted))
			f.eventually("the hub notices", func() error {
				if log := hub.Log(); !strings.Contains(log, "does not serve a kind any more") || strings.Count(log, "any more") <= strings.Count(log, "serves a kind again") {
					return errors.New(log)
				}
				return nil
			})
			f.cluster.InstallCRDs(t)
			installed := time.Now()
			f.eventually("the object is there again", func() error { return f.back(c.kind, c.old) })
			took := time.Since(installed)
			t.Logf("it was written again after %s", took)
			if took > healTime {
				t.Errorf("it was written again %s after the kind was served, want %s", took, healTime)
			}
			if c.kind == client.Object(&report) {
				f.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "v1") })
			}
		})
	}
	for _, kept := range []client.Object{
		&fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "app"}},
		&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "a"}},
		&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}, crp,
	} {
		if f.check(f.Get(ctx, client.ObjectKeyFromObject(kept), kept)); kept.GetDeletionTimestamp() != nil {
			t.Errorf("%T %s is being deleted", kept, kept.GetName())
		}
	}
	f.nothingLeft()
}

const worksDefinition = "works.placement.kubernetes-fleet.io"

// nothingLeft makes sure that no member is recorded as removed without its agent's answer.
func (f fixture) nothingLeft() {
	f.t.Helper()
	var list corev1.ConfigMapList
	f.check(f.List(context.Background(), &list, client.InNamespace(naming.SystemNamespace)))
	for _, c := range list.Items {
		if strings.HasPrefix(c.Name, "left-") {
			f.t.Errorf("there is ConfigMap %s: %v", c.Name, c.Data)
		}
	}
}

func TestDeletedDefinitionOfRecordsBundlesAndPlacementsRemovesNothing(t *testing.T) {
	t.Parallel()
	f, _ := newProcessFixture(t, "undefined", "")
	p := f.place("a", nil)
	f.bundle("app", configMap+everywhere)
	deployment := p.deployment("app", there)
	m := f.joined("m", "env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", f.shop()))
	f.untilOn(crp, m)
	work := f.works(crp)[0]
	kept := func(conditions []fleet.Condition) error {
		if c := kube.FindCondition(conditions, fleet.ConditionReady); c == nil || c.Reason != served.ReasonDefinitionDeleted {
			return fmt.Errorf("conditions are %+v", conditions)
		}
		return nil
	}
	for _, c := range []struct {
		definition string
		says       func() error
	}{
		{"bundles.fleet.cattle.io", func() error {
			var b fleet.Bundle
			f.check(f.get(&b, f.workspace, "app"))
			return kept(b.Status.Conditions)
		}},
		{"clusters.fleet.cattle.io", func() error {
			var cluster fleet.Cluster
			f.check(f.get(&cluster, f.workspace, "a"))
			return kept(cluster.Status.Conditions)
		}},
		{"memberclusters.cluster.kubernetes-fleet.io", func() error {
			record := m.record()
			if c := meta.FindStatusCondition(record.Status.Conditions, clusterv1beta1.ConditionReadyToJoin); c.Reason != served.ReasonDefinitionDeleted {
				return fmt.Errorf("it is %+v", c)
			}
			return nil
		}},
		{"clusterresourceplacements.placement.kubernetes-fleet.io", func() error {
			f.check(f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp))
			if !strings.Contains(crp.Status.Message, "install the fleet-crd chart") {
				return fmt.Errorf("it says %q", crp.Status.Message)
			}
			return nil
		}},
	} {
		f.undefine(c.definition)
		f.eventually("what "+c.definition+" defines says that it is kept", c.says)
	}
	for _, o := range []client.Object{&deployment, &work} {
		uid := o.GetUID()
		if f.check(f.Get(context.Background(), client.ObjectKeyFromObject(o), o)); o.GetUID() != uid || o.GetDeletionTimestamp() != nil {
			t.Errorf("%T %s was removed", o, o.GetName())
		}
	}
	f.nothingLeft()
	for _, o := range []client.Object{crp, &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "app"}}} {
		f.patch(o, `{"metadata":{"finalizers":null}}`) // as the message says
	}
}

func TestBundleDeploymentDeletedByHandIsBackAtOnce(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", nil)
	f.bundle("app", configMap+everywhere+"\nhelm: {values: {a: 1}}")
	for range 5 {
		old := p.deployment("app", there)
		deleted := time.Now()
		f.check(f.Delete(context.Background(), &old))
		f.eventually("it is there again", func() error { return f.back(&fleet.BundleDeployment{}, &old) })
		took := time.Since(deleted)
		t.Logf("it was back after %s", took)
		if took > healTime/2 {
			t.Errorf("it was back after %s, want well within %s", took, healTime)
		}
	}
}
