package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// undefine deletes a CustomResourceDefinition.
func (f fixture) undefine(name string) *unstructured.Unstructured {
	f.t.Helper()
	definition := definitionOf(name)
	f.check(f.Delete(context.Background(), definition))
	return definition
}

func definitionOf(name string) *unstructured.Unstructured {
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(servedkinds.DefinitionKind)
	definition.SetName(name)
	return definition
}

// back returns an error unless an object exists again with another UID than the old one.
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
	f := newUndefining(t)
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
			definition := f.undefine(c.definition)
			f.eventually("the definition is gone", func() error { return gone(f.get(definition, "", c.definition)) })
			f.eventually("the hub notices", func() error {
				if log := f.hub.Log(); !strings.Contains(log, "does not serve a kind any more") ||
					strings.Count(log, "any more") <= strings.Count(log, "serves a kind again") {
					return errors.New(log)
				}
				return nil
			})
			f.cluster.InstallCRDs(t)
			f.eventually("the object is there again", func() error { return f.back(c.kind, c.old) })
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
	f.notForced(m)
}

const worksDefinition = "works.placement.kubernetes-fleet.io"

// notForced makes sure that a member is not recorded as removed without its agent's answer.
func (f fixture) notForced(m *registered) {
	f.t.Helper()
	var left corev1.ConfigMap
	if err := f.get(&left, naming.SystemNamespace, "left-"+m.name); !apierrors.IsNotFound(err) {
		f.t.Errorf("reading ConfigMap left-%s: %v: %v", m.name, err, left.Data)
	}
}

func TestDeletedDefinitionOfRecordsBundlesAndPlacementsRemovesNothing(t *testing.T) {
	f := newUndefining(t)
	p := f.place("a", nil)
	f.bundle("app", configMap+everywhere)
	deployment := p.deployment("app", there)
	m := f.joined("m", "env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", f.shop()))
	f.untilOn(crp, m)
	work := f.works(crp)[0]
	kept := func(conditions []fleet.Condition) error {
		if c := kube.FindCondition(conditions, fleet.ConditionReady); c == nil || c.Reason != reasons.DefinitionDeleted {
			return fmt.Errorf("conditions are %+v", conditions)
		}
		return nil
	}
	f.t.Cleanup(f.redefine)
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
			if c := meta.FindStatusCondition(record.Status.Conditions, clusterv1beta1.ConditionReadyToJoin); c.Reason != reasons.DefinitionDeleted {
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
	f.notForced(m)
}

// redefine lets go all objects that wait for the hub because their definitions were deleted, as its
// message says, and installs the definitions for the next test.
func (f fixture) redefine() {
	f.hub.Kill()
	for definition, kind := range map[string]schema.GroupVersionKind{
		"bundles.fleet.cattle.io":                                 fleet.GroupVersion.WithKind("BundleList"),
		"clusters.fleet.cattle.io":                                fleet.GroupVersion.WithKind("ClusterList"),
		"memberclusters.cluster.kubernetes-fleet.io":              clusterv1beta1.GroupVersion.WithKind("MemberClusterList"),
		"clusterresourceplacements.placement.kubernetes-fleet.io": placement.GroupVersion.WithKind("ClusterResourcePlacementList"),
	} {
		f.letGo(definition, kind)
	}
	f.cluster.InstallCRDs(f.t)
}

// letGo takes the finalizers off all objects of a deleted definition, also of earlier tests, and
// waits for the end of the definition.
func (f fixture) letGo(definition string, kind schema.GroupVersionKind) {
	waiting := &unstructured.UnstructuredList{}
	waiting.SetGroupVersionKind(kind)
	f.check(f.List(context.Background(), waiting))
	for i := range waiting.Items {
		f.check(client.IgnoreNotFound(merge(f, &waiting.Items[i], `{"metadata":{"finalizers":null}}`)))
	}
	f.eventually("the definition "+definition+" is gone", func() error {
		return gone(f.get(definitionOf(definition), "", definition))
	})
}

func TestBundleDeploymentDeletedByHandIsBackAtOnce(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", nil)
	f.bundle("app", configMap+everywhere+"\nhelm: {values: {a: 1}}")
	fastest := time.Hour // the slowest shows how busy the machine is
	for range 5 {
		old := p.deployment("app", there)
		deleted := time.Now()
		f.check(f.Delete(context.Background(), &old))
		f.eventually("it is there again", func() error { return f.back(&fleet.BundleDeployment{}, &old) })
		fastest = min(fastest, time.Since(deleted))
	}
	if fastest > 5*time.Second {
		t.Errorf("it was back after %s at best, and agents remove after 10s what they deployed", fastest)
	}
}

// TestDefinitionsOfTokensRequestsAndGroupsThatComeBackAreServedWithoutARestart deletes the kinds
// whose objects the hub does not keep. After the kinds are installed again, an administrator's new
// objects work as before, and members stay members.
func TestDefinitionsOfTokensRequestsAndGroupsThatComeBackAreServedWithoutARestart(t *testing.T) {
	f := newUndefining(t)
	ctx := context.Background()
	_, values := f.token("new-token", "")
	member := f.legacyJoin(values, "before")
	f.eventually("the agent beats", func() error { return member.beat(time.Now()) })
	f.untilReady(member.answer["clusterName"], "Ready")
	group := func() *fleet.ClusterGroup {
		return &fleet.ClusterGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "all"}, Spec: fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{}},
		}
	}
	counted := func(want int) {
		f.t.Helper()
		f.eventually(fmt.Sprintf("the group has %d", want), func() error {
			g := group()
			if err := f.Get(ctx, client.ObjectKeyFromObject(g), g); err != nil || g.Status.ClusterCount != want {
				return fmt.Errorf("it has %d: %v", g.Status.ClusterCount, err)
			}
			return nil
		})
	}
	f.check(f.Create(ctx, group()))
	counted(1)
	all := []string{"clusterregistrationtokens.fleet.cattle.io", "clusterregistrations.fleet.cattle.io", "clustergroups.fleet.cattle.io"}
	for _, name := range all {
		definition := f.undefine(name)
		f.eventually("the definition "+name+" is gone", func() error { return gone(f.get(definition, "", name)) })
	}
	f.eventually("the hub notices", func() error {
		if log := f.hub.Log(); strings.Count(log, "does not serve a kind any more") < len(all) {
			return errors.New(log)
		}
		return nil
	})
	f.check(member.beat(time.Now()))
	f.cluster.InstallCRDs(t)

	_, values = f.token("new-token", "")
	after := f.legacyJoin(values, "after")
	f.eventually("the agent beats", func() error { return after.beat(time.Now()) })
	f.untilReady(after.answer["clusterName"], "Ready")
	f.check(f.Create(ctx, group()))
	counted(2)
	f.check(member.beat(time.Now()))
	f.untilReady(member.answer["clusterName"], "Ready")
}
