package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// joined registers a member whose agent is up, with labels as key=value that no other test uses.
func (f fixture) joined(prefix string, labels ...string) *registered {
	f.t.Helper()
	m := f.register(prefix)
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "v1") })
	m.label(append(labels, "test="+f.workspace)...)
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	return m
}

func (r *registered) label(labels ...string) {
	r.t.Helper()
	r.eventually("the member is labelled", func() error {
		mc := r.record()
		for _, label := range labels {
			key, value, _ := strings.Cut(label, "=")
			if value == "" {
				delete(mc.Labels, key)
			} else {
				metav1.SetMetaDataLabel(&mc.ObjectMeta, key, value)
			}
		}
		return r.Update(context.Background(), &mc)
	})
}

// crp creates a ClusterResourcePlacement that selects a Namespace, and the members of this test by
// terms that are given as YAML.
func (f fixture) crp(spec string) *placement.ClusterResourcePlacement {
	f.t.Helper()
	crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp-" + f.workspace}}
	f.check(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(spec, "$TEST", f.workspace)), &crp.Spec))
	f.check(f.Create(context.Background(), crp))
	f.t.Cleanup(func() { f.dispose(crp) })
	return crp
}

// dispose deletes a placement as if all agents had removed it.
func (f fixture) dispose(crp *placement.ClusterResourcePlacement) {
	_ = f.Delete(context.Background(), crp) // most tests delete it themselves
	f.eventually("the placement is gone", func() error {
		for _, work := range f.works(crp) {
			if work.DeletionTimestamp != nil && len(work.Finalizers) > 0 {
				work.Finalizers = nil
				if err := f.Update(context.Background(), &work); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
		}
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v; it says %q", err, crp.Status.Message)
		}
		return nil
	})
}

func (f fixture) works(crp *placement.ClusterResourcePlacement) []placement.Work {
	f.t.Helper()
	var list placement.WorkList
	f.check(f.List(context.Background(), &list, client.MatchingLabels{placement.LabelParentCRP: crp.Name}))
	slices.SortFunc(list.Items, func(a, b placement.Work) int { return strings.Compare(a.Namespace+a.Name, b.Namespace+b.Name) })
	return list.Items
}

// untilOn waits until just these members have Works of a placement.
func (f fixture) untilOn(crp *placement.ClusterResourcePlacement, members ...*registered) {
	f.t.Helper()
	var want []string
	for _, m := range members {
		want = append(want, m.namespaceName()+"/"+crp.Name+"-work")
	}
	slices.Sort(want)
	f.eventually(fmt.Sprintf("%d members have the placement", len(members)), func() error {
		var got []string
		for _, work := range f.works(crp) {
			got = append(got, work.Namespace+"/"+work.Name)
		}
		if !slices.Equal(got, want) {
			if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
				return err
			}
			return fmt.Errorf("they are %v, want %v; it says %q", got, want, crp.Status.Message)
		}
		return nil
	})
}

// untilSays waits until a condition of the placement has a status and a message that holds some
// words.
func (f fixture) untilSays(crp *placement.ClusterResourcePlacement, kind string, status metav1.ConditionStatus, words string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%s is %s and says %q", kind, status, words), func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		if kind != placement.ConditionSupported {
			kind = "ClusterResourcePlacement" + strings.TrimPrefix(kind, "ClusterResourcePlacement")
		}
		c := meta.FindStatusCondition(crp.Status.Conditions, kind)
		if c == nil || c.Status != status || !strings.Contains(c.Message, words) || c.ObservedGeneration != crp.Generation {
			return fmt.Errorf("it is %+v; generation %d", c, crp.Generation)
		}
		return nil
	})
}

// apply plays what a member's agent does with a Work: its finalizer, and then what
// it has to say of it.
func (r *registered) apply(work string, failure string) {
	r.t.Helper()
	r.eventually("the agent answers for Work "+work, func() error {
		var w placement.Work
		if err := r.agent.Get(context.Background(), client.ObjectKey{Namespace: r.namespaceName(), Name: work}, &w); err != nil {
			return err
		}
		patch := fmt.Appendf(nil, `{"metadata":{"finalizers":[%q]}}`, placement.FinalizerWork)
		if err := r.agent.Patch(context.Background(), &w, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return err
		}
		before := w.DeepCopy()
		w.Status = placement.WorkStatus{}
		condition := func(kind, reason string, status metav1.ConditionStatus, message string) metav1.Condition {
			return metav1.Condition{
				Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: w.Generation, LastTransitionTime: metav1.Now(),
			}
		}
		if failure == "" {
			w.Status.Conditions = []metav1.Condition{
				condition("Applied", placement.ReasonAllApplied, metav1.ConditionTrue, ""),
				condition("Available", placement.ReasonAllAvailable, metav1.ConditionTrue, ""),
			}
		} else {
			w.Status.Conditions = []metav1.Condition{condition("Applied", placement.ReasonSomeNotApplied, metav1.ConditionFalse, "some failed")}
			w.Status.ManifestConditions = []placement.ManifestCondition{{
				Identifier: placement.WorkResourceIdentifier{
					Ordinal: 1, Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "n", Name: "c",
				},
				Conditions: []metav1.Condition{condition("Applied", "ManifestApplyFailed", metav1.ConditionFalse, failure)},
			}}
		}
		return r.agent.Status().Patch(context.Background(), &w, client.MergeFrom(before))
	})
}

// remove plays how an agent has removed what was deleted.
func (r *registered) remove(work string) {
	r.t.Helper()
	r.eventually("the agent lets Work "+work+" go", func() error {
		var w placement.Work
		if err := r.agent.Get(context.Background(), client.ObjectKey{Namespace: r.namespaceName(), Name: work}, &w); err != nil {
			return err
		}
		if w.DeletionTimestamp == nil {
			return fmt.Errorf("it is not deleted")
		}
		return r.agent.Patch(context.Background(), &w,
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
}

// shop makes a namespace with a few things in it that can be placed, and some that never are.
func (f fixture) shop() string {
	f.t.Helper()
	name := f.namespace("shop-")
	objects := []client.Object{
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings",
				Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}}, Data: map[string]string{"a": "1"},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "password"}, StringData: map[string]string{"p": "s3cret"}},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "token",
				Annotations: map[string]string{"kubernetes.io/service-account.name": "default"}}, Type: corev1.SecretTypeServiceAccountToken,
		},
	}
	f.eventually("the namespace has its account", func() error { return f.get(&corev1.ServiceAccount{}, name, "default") })
	for _, o := range objects {
		f.check(f.Create(context.Background(), o))
	}
	return name
}

// manifests are the objects that a Work holds, by kind and name.
func manifests(t *testing.T, work placement.Work) map[string]*unstructured.Unstructured {
	t.Helper()
	objects := map[string]*unstructured.Unstructured{}
	for _, m := range work.Spec.Workload.Manifests {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal(m.Raw, &o.Object); err != nil {
			t.Fatal(err)
		}
		objects[o.GetKind()+" "+o.GetName()] = o
	}
	return objects
}

const prodOnly = `
resourceSelectors: [{group: "", version: v1, kind: Namespace, name: $SHOP}]
policy:
  affinity:
    clusterAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        clusterSelectorTerms: [{labelSelector: {matchLabels: {test: $TEST, env: prod}}}]
strategy: {rollingUpdate: {maxUnavailable: 1}}
`

func TestALabelBringsANamespaceToAMemberAndItsChangesFollow(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m1, m2 := f.joined("place-a", "env=prod"), f.joined("place-b")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m1)
	f.untilSays(crp, "Applied", metav1.ConditionUnknown, m1.name+": waiting for the member's agent")
	work := f.works(crp)[0]
	got := manifests(t, work)
	want := []string{"ConfigMap settings", "Namespace " + shop, "Secret password", "Service web"}
	var names []string
	for name, o := range got {
		names = append(names, name)
		if o.GetUID() != "" || o.GetResourceVersion() != "" || len(o.GetAnnotations()) > 0 || o.Object["status"] != nil {
			t.Errorf("%s has what the hub's server has added: %v", name, o.Object)
		}
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("the Work holds %v, want %v", names, want)
	}
	if ip, found, _ := unstructured.NestedString(got["Service web"].Object, "spec", "clusterIP"); found {
		t.Errorf("the Service has the hub's address %s", ip)
	}
	m1.apply(work.Name, "")
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 1 members")
	if crp.Status.Members != "1/1" || crp.Status.Message != "" {
		t.Errorf("the status says %q, %q", crp.Status.Members, crp.Status.Message)
	}

	m2.label("env=prod")
	f.untilOn(crp, m1, m2)
	m2.apply(work.Name, "no such namespace")
	f.untilSays(crp, "Applied", metav1.ConditionFalse, m2.name+": ConfigMap n/c: no such namespace")
	m2.apply(work.Name, "")
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 2 members")

	f.check(f.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "more"}}))
	have := func() (with []string) {
		for _, work := range f.works(crp) {
			if manifests(t, work)["ConfigMap more"] != nil {
				with = append(with, work.Namespace)
			}
		}
		return with
	}
	f.eventually("one member gets the change", func() error {
		if with := have(); len(with) != 1 {
			return fmt.Errorf("%v have it", with)
		}
		return nil
	})
	f.untilSays(crp, "RolloutStarted", metav1.ConditionFalse, "at most 1 of 2 members may be unavailable")
	for _, m := range []*registered{m1, m2} {
		if have()[0] == m.namespaceName() {
			m.apply(work.Name, "")
		}
	}
	f.eventually("then the other", func() error {
		if with := have(); len(with) != 2 {
			return fmt.Errorf("%v have it", with)
		}
		return nil
	})

	m1.label("env=")
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, "2 members picked")
	f.eventually("the status says why it stays", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		for _, o := range crp.Status.Obstacles {
			if o.ClusterName == m1.name && o.Reason == "Kept" {
				return nil
			}
		}
		return fmt.Errorf("it is %+v", crp.Status.Obstacles)
	})
	f.untilOn(crp, m1, m2)
}

func TestADeletedPlacementGoesWhenItsMembersHaveRemovedIt(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m := f.joined("remove", "env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m)
	m.apply(crp.Name+"-work", "")
	f.untilSays(crp, "Available", metav1.ConditionTrue, "")
	f.check(f.Delete(context.Background(), crp))
	f.eventually("it says whom it waits for", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		if !strings.Contains(crp.Status.Message, "waiting for the agents of 1 members ("+m.name+")") {
			return fmt.Errorf("it says %q", crp.Status.Message)
		}
		return nil
	})
	m.remove(crp.Name + "-work")
	f.eventually("it is gone", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
}
