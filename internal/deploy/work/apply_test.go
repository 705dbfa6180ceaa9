package work

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

const widgets = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.NAME.example.com}, spec: {
	group: NAME.example.com, scope: Namespaced, names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList},
	versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, ` +
	`x-kubernetes-preserve-unknown-fields: true}}}]}}`

func TestWorkIsAppliedUnderAnAppliedWorkAndSaysSo(t *testing.T) {
	r := newRig(t)
	work := r.place("work", nil, configMap("one", "a: b"), "{apiVersion: v1, kind: Namespace, metadata: {name: NAME-made}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: two, namespace: NAME-made, labels: {app: x}}, stringData: {password: hush}}")
	r.applied(work)
	owner := r.owner(work)
	if diff := cmp.Diff(placement.AppliedWorkSpec{WorkName: work.Name, WorkNamespace: r.namespace}, owner.Spec); diff != "" {
		t.Errorf("AppliedWork (-want +got):\n%s", diff)
	}
	one := r.mustConfigMap("one")
	want := placement.AppliedResource{UID: one.UID, WorkResourceIdentifier: placement.WorkResourceIdentifier{
		Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: r.namespace, Name: "one",
	}}
	if got := owner.Status.AppliedResources; len(got) != 3 || !cmp.Equal(got[0], want) || got[1].UID == "" || got[2].UID == "" {
		t.Errorf("applied are %+v", got)
	}
	block := true
	references := []metav1.OwnerReference{{
		APIVersion: "placement.kubernetes-fleet.io/v1beta1", Kind: "AppliedWork", Name: work.Name, UID: owner.UID, BlockOwnerDeletion: &block,
	}}
	if diff := cmp.Diff(references, one.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if attempt := one.ManagedFields[0]; attempt.Manager != "work-api-agent" || attempt.Operation != "Apply" ||
		one.Annotations["kubernetes-fleet.io/spec-hash"] == "" {
		t.Errorf("written by %+v with annotations %v", attempt, one.Annotations)
	}
	// What an unmodified KubeFleet hub reads.
	if !slices.Contains(work.Finalizers, "kubernetes-fleet.io/work-cleanup") {
		t.Errorf("finalizers %v", work.Finalizers)
	}
	r.until(work, "Available", "AllManifestsAvailable")
	conditions := append(slices.Clone(work.Status.Conditions), work.Status.ManifestConditions[2].Conditions...)
	for i, kind := range []string{"Applied", "Available", "Applied", "Available"} {
		c := conditions[i]
		if c.Type != kind || c.Status != metav1.ConditionTrue || c.ObservedGeneration != work.Generation || c.Reason == "" ||
			c.LastTransitionTime.IsZero() {
			t.Errorf("condition %+v", c)
		}
	}
	identifier := placement.WorkResourceIdentifier{
		Ordinal: 2, Version: "v1", Kind: "Secret", Resource: "secrets", Namespace: r.name + "-made", Name: "two",
	}
	if diff := cmp.Diff(identifier, work.Status.ManifestConditions[2].Identifier); diff != "" {
		t.Errorf("identifier (-want +got):\n%s", diff)
	}
	r.untilCounted(map[string]int{"Available": 1}, map[string]int{countApplied: 3})
	r.check(r.Delete(context.Background(), work))
	r.untilGone("the Work", work)
	r.untilCounted(map[string]int{}, map[string]int{countApplied: 3, countRemoved: 3})
	for o, name := range map[client.Object]string{&corev1.ConfigMap{}: "one", &placement.AppliedWork{}: work.Name} {
		if err := r.Get(context.Background(), client.ObjectKey{Namespace: map[bool]string{true: r.namespace}[name == "one"], Name: name},
			o); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s: %v", o, name, err)
		}
	}
}

func TestEditedAndDeletedObjectsArePutBack(t *testing.T) {
	r := newRig(t)
	work := r.place("work", nil, configMap("one", "a: b"))
	r.applied(work)
	r.edit("one", func(c *corev1.ConfigMap) { c.Data = map[string]string{"a": "edited", "more": "kept"} })
	r.untilData("one", "a", "b")
	if r.mustConfigMap("one").Data["more"] != "kept" {
		t.Error("a field that is not in the manifest is gone")
	}
	r.edit("one", func(c *corev1.ConfigMap) { c.Labels, c.Data, c.OwnerReferences = nil, nil, nil })
	r.untilData("one", "a", "b")
	was := r.mustConfigMap("one")
	if was.Labels[labelWork] != work.Name || len(was.OwnerReferences) != 1 {
		t.Errorf("labels %v, owners %v", was.Labels, was.OwnerReferences)
	}
	r.check(r.Delete(context.Background(), was))
	r.untilData("one", "a", "b")
	// A user deletes the AppliedWork together with the objects that it owns, as kubectl does. It comes
	// back with all of them.
	r.check(r.Delete(context.Background(), r.owner(work), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	r.eventually("it is owned by another AppliedWork", func() error {
		is, err := r.configMap("one")
		if err == nil && (is.UID == was.UID || is.DeletionTimestamp != nil || is.OwnerReferences[0].UID == was.OwnerReferences[0].UID) {
			err = fmt.Errorf("it is %s of %v", is.UID, is.OwnerReferences)
		}
		return err
	})
}

func TestWhoKeepsChangingAnObjectIsNamedAndNotFoughtForever(t *testing.T) {
	r := newRig(t)
	work := r.place("work", nil, configMap("one", "a: b"))
	r.applied(work)
	for i := range 2 * patience {
		r.edit("one", func(c *corev1.ConfigMap) { c.Data["a"] = fmt.Sprint(i) })
		r.eventually("it is set right, or left for a while", func() error {
			r.refresh(work)
			if c := r.of(work, 0, placement.ConditionApplied); r.mustConfigMap("one").Data["a"] != "b" && c.Reason != reasons.Contested {
				return fmt.Errorf("%+v", c)
			}
			return nil
		})
	}
	if c := r.untilOf(work, 0, placement.ConditionApplied, reasons.Contested); !strings.HasPrefix(c.Message,
		"kubectl-edit keeps changing it on the member") {
		t.Errorf("the message is %q", c.Message)
	}
	r.untilData("one", "a", "b")
}

func TestWhatAWorkNoLongerHasIsRemovedAndNothingElse(t *testing.T) {
	r := newRig(t)
	work := r.place("work", nil, configMap("one", "a: b"), configMap("two", "a: b"), configMap("three", "a: b"))
	r.applied(work)
	// A user makes the ConfigMap three their own.
	r.halt()
	r.check(r.Delete(context.Background(), r.mustConfigMap("three")))
	r.check(r.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "three"}}))
	work = r.place("work", nil, configMap("two", "a: c"))
	r.start()
	r.untilData("two", "a", "c")
	r.untilGone("what was taken out", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "one"}})
	r.eventually("only what is left is listed", func() error {
		if list := r.owner(work).Status.AppliedResources; len(list) != 1 || list[0].Name != "two" {
			return fmt.Errorf("%+v", list)
		}
		return nil
	})
	r.mustConfigMap("three")
}

func TestAgentThatComesBackTouchesNothing(t *testing.T) {
	r := newRig(t)
	work := r.place("work", nil, configMap("one", "a: b"), widgets,
		"{apiVersion: NAME.example.com/v1, kind: Widget, metadata: {name: w, namespace: fleet-member-NAME}}")
	r.applied(work)
	r.until(work, placement.ConditionAvailable, placement.ReasonNotTrackable)
	versions := func() string {
		r.refresh(work)
		widget := r.object("{apiVersion: NAME.example.com/v1, kind: Widget, metadata: {name: w, namespace: fleet-member-NAME}}")
		r.refresh(widget)
		return strings.Join([]string{work.ResourceVersion, r.owner(work).ResourceVersion, r.mustConfigMap("one").ResourceVersion,
			widget.GetResourceVersion()}, " ")
	}
	before := versions()
	r.halt()
	r.start()
	// The new agent shows that it is at work by what comes after.
	other := r.place("other", nil, configMap("other", "a: b"))
	r.applied(other)
	r.edit("one", func(c *corev1.ConfigMap) { c.Data["more"] = "x" })
	r.edit("one", func(c *corev1.ConfigMap) { delete(c.Data, "more") })
	one := r.mustConfigMap("one").ResourceVersion
	before = strings.Join(slices.Replace(strings.Fields(before), 2, 3, one), " ")
	r.edit("other", func(c *corev1.ConfigMap) { c.Data["a"] = "edited" })
	r.untilData("other", "a", "b")
	if after := versions(); after != before {
		t.Errorf("versions were %s and are %s", before, after)
	}
}

func TestKindsAndNamespacesMayComeWithWhatNeedsThemOrLater(t *testing.T) {
	r := newRig(t)
	widget := "{apiVersion: NAME.example.com/v1, kind: Widget, metadata: {name: w, namespace: NAME-later}, spec: {size: 1}}"
	work := r.place("work", nil, widget, configMap("one", "a: b"))
	r.until(work, placement.ConditionApplied, placement.ReasonSomeNotApplied)
	if c := r.of(work, 0, "Applied"); c.Reason != reasons.KindNotServed || !strings.Contains(c.Message, "the member serves no Widget") {
		t.Errorf("condition %+v", c)
	}
	r.mustConfigMap("one")
	kinds := r.place("kinds", nil, widgets)
	r.applied(kinds)
	c := r.untilOf(work, 0, "Applied", reasons.NamespaceMissing)
	if !strings.Contains(c.Message, "the member has no namespace "+r.name+"-later") {
		t.Errorf("condition %+v", c)
	}
	r.applied(r.place("namespaces", nil, "{apiVersion: v1, kind: Namespace, metadata: {name: NAME-later}}"))
	r.applied(work)
	// Readiness is watched, too.
	for reason, status := range map[string]string{"SomeManifestsAreNotAvailable": "False", "AllManifestsAvailable": "True"} {
		object := r.object(widget)
		r.refresh(object)
		r.check(unstructured.SetNestedSlice(object.Object,
			[]any{map[string]any{"type": "Ready", "status": status, "reason": "Paint", "message": "waits for paint"}}, "status", "conditions"))
		r.check(r.Status().Update(context.Background(), object))
		if c := r.until(work, placement.ConditionAvailable, reason); status == "False" &&
			!strings.Contains(c.Message, "manifest 0 (Widget "+r.name+"-later/w): waits for paint") {
			t.Errorf("the message is %q", c.Message)
		}
	}
	// A kind that goes away takes its objects with it; both come back.
	r.check(r.Delete(context.Background(), r.object(widgets)))
	r.until(work, placement.ConditionApplied, placement.ReasonSomeNotApplied)
	r.applied(work)
}
