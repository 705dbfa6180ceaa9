package work

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// placeOf creates a Work of a placement, or gives it other manifests.
func (r *rig) placeOf(parent, suffix string, documents ...string) *placement.Work {
	r.t.Helper()
	work := &placement.Work{}
	if err := r.Get(context.Background(), client.ObjectKey{Namespace: r.namespace, Name: r.name + "-" + suffix}, work); err == nil {
		return r.place(suffix, neverTakenOver, documents...)
	}
	work.Namespace, work.Name = r.namespace, r.name+"-"+suffix
	work.Labels = map[string]string{placement.LabelParentCRP: parent}
	work.Spec.Workload.Manifests = r.manifests(documents...)
	neverTakenOver(&work.Spec)
	r.check(r.Create(context.Background(), work))
	return work
}

// remove deletes a Work as the hub does.
func (r *rig) remove(work *placement.Work) {
	r.t.Helper()
	r.refresh(work)
	before := work.DeepCopy()
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, placement.AnnotationRemoved, "true")
	r.check(r.Patch(context.Background(), work, client.MergeFrom(before)))
	r.check(r.Delete(context.Background(), work))
}

// ownedBy waits until one Work owns a ConfigMap, which has to be the same one as before.
func (r *rig) ownedBy(name string, uid types.UID, work *placement.Work) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("ConfigMap %s is owned by Work %s alone", name, work.Name), func() error {
		is := r.mustConfigMap(name)
		if is.UID != uid {
			r.t.Fatalf("ConfigMap %s was deleted and made anew: its UID was %s and is %s", name, uid, is.UID)
		}
		if len(is.OwnerReferences) != 1 || is.OwnerReferences[0].Name != work.Name || is.Labels[labelWork] != work.Name {
			return fmt.Errorf("its owners are %v, its labels %v", is.OwnerReferences, is.Labels)
		}
		return nil
	})
}

func TestAnObjectMovesBetweenTheWorksOfAPlacement(t *testing.T) {
	r := newRig(t)
	one, two, three := configMap("one", "a: b"), configMap("two", "a: b"), configMap("three", "a: b")
	first, second := r.placeOf("web", "work", one, two), r.placeOf("web", "1", three)
	r.applied(first)
	r.applied(second)
	before := r.mustConfigMap("two").UID
	r.placeOf("web", "1", three, configMap("two", "a: c"))
	r.untilOf(second, 1, placement.ConditionApplied, reasons.AppliedByAnotherWork) // the first one lists it still
	r.placeOf("web", "work", one)
	r.ownedBy("two", before, second)
	r.untilData("two", "a", "c")
	r.applied(first)
	r.applied(second)
	r.eventually("the first Work lists one object", func() error {
		if listed := r.owner(first).Status.AppliedResources; len(listed) != 1 {
			return fmt.Errorf("it lists %v", listed)
		}
		return nil
	})
	// All at once, to a Work that is written while the agent does not run, from one that is deleted.
	r.halt()
	third := r.placeOf("web", "2", three, configMap("two", "a: c"))
	r.remove(second)
	r.start()
	r.ownedBy("two", before, third)
	r.untilGone("the second Work", second)
	r.applied(third)
	r.remove(third)
	r.untilGone("the third Work", third)
	if _, err := r.configMap("two"); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("ConfigMap two of the Work that is deleted: %v", err)
	}
}

func TestAWorkOfAnotherPlacementTakesNothingOver(t *testing.T) {
	r := newRig(t)
	one, two := configMap("one", "a: b"), configMap("two", "a: b")
	first := r.placeOf("web", "work", one, two)
	r.applied(first)
	before := r.mustConfigMap("two").UID
	other := r.placeOf("api", "api", two)
	r.untilOf(other, 0, placement.ConditionApplied, reasons.AppliedByAnotherWork)
	r.placeOf("web", "work", one)
	r.applied(other)
	if is := r.mustConfigMap("two"); is.UID == before || is.Labels[labelWork] != other.Name {
		t.Errorf("what leaves a placement is its own no more: it was %s and is %s of %s", before, is.UID, is.Labels[labelWork])
	}
}
