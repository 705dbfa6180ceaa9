package work

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hubclient"
)

// neverTakenOver makes the agent refuse whatever it did not apply itself.
func neverTakenOver(spec *placement.WorkSpec) {
	spec.ApplyStrategy = &placement.ApplyStrategy{Type: placement.ApplyClientSide, WhenToTakeOver: placement.TakeOverNever}
}

// deleteKind deletes the CustomResourceDefinition of a resource of the placement API.
func (r *rig) deleteKind(resource string) client.Object {
	r.t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.SetName(resource + "." + placement.GroupVersion.Group)
	r.check(r.Delete(context.Background(), crd))
	return crd
}

func (r *rig) untilLogged(text string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("the agent logs %q", text), func() error {
		if log := r.log.String(); !strings.Contains(log, text) {
			return fmt.Errorf("it has logged %s", log)
		}
		return nil
	})
}

// dropFinalizer does what the hub does with a Work that it still wants.
func (r *rig) dropFinalizer(work *placement.Work) {
	r.t.Helper()
	r.refresh(work)
	before := work.DeepCopy()
	work.Finalizers = nil
	r.check(r.Patch(context.Background(), work, client.MergeFrom(before)))
	r.untilGone("the Work", work)
}

func TestAppliedWorksDeletedWithTheirKindLeaveWhatIsApplied(t *testing.T) {
	r := newRigOn(t, "work-applied-kind")
	work := r.place("work", neverTakenOver, configMap("one", "a: b"))
	r.applied(work)
	one := r.mustConfigMap("one")
	r.untilGone("the kind", r.deleteKind("appliedworks"))
	r.place("other", nil, configMap("two", "a: b"))
	stop := r.stop
	r.stop = nil
	stop() // the agent ended by itself, and says why; muster-deployer begins anew
	if is := r.mustConfigMap("one"); is.UID != one.UID || is.DeletionTimestamp != nil {
		t.Fatalf("ConfigMap one was %s and is %+v", one.UID, is.ObjectMeta)
	}
	r.cluster.InstallCRDs(t)
	r.start()
	r.eventually("the ConfigMap is owned again", func() error {
		is, err := r.configMap("one")
		if err == nil && (is.UID != one.UID || len(is.OwnerReferences) != 1 || is.OwnerReferences[0].UID == one.OwnerReferences[0].UID) {
			err = fmt.Errorf("it is %s of %v", is.UID, is.OwnerReferences)
		}
		return err
	})
	r.applied(work)
}

func TestWorkDeletedWhileNoAppliedWorksAreServedWaitsUntilTheyAre(t *testing.T) {
	r := newRigOn(t, "work-applied-unserved")
	work := r.place("work", neverTakenOver, configMap("one", "a: b"))
	r.applied(work)
	one := r.mustConfigMap("one")
	r.untilGone("the kind", r.deleteKind("appliedworks"))
	r.check(r.Delete(context.Background(), work))
	<-r.agent.unserved // it ends by itself: that is how muster-deployer learns to wait for the kind
	r.halt()
	r.refresh(work)
	if is := r.mustConfigMap("one"); is.UID != one.UID || is.DeletionTimestamp != nil ||
		!controllerutil.ContainsFinalizer(work, placement.FinalizerWork) {
		t.Fatalf("ConfigMap one was %s and is %+v; the Work has finalizers %v", one.UID, is.ObjectMeta, work.Finalizers)
	}
	r.cluster.InstallCRDs(t)
	r.start()
	r.untilGone("the Work", work)
	r.untilGone("what was applied of it", one)
}

func TestWorksDeletedWithTheirKindLeaveWhatIsApplied(t *testing.T) {
	r := newRigOn(t, "work-kind")
	r.halt()
	hub, err := hubclient.Dial(hubclient.Target{Server: r.hub.Host, CA: r.hub.CAData}, r.hub.BearerToken, clock.RealClock{})
	r.check(err)
	member, err := hub.Member(r.namespace, r.name)
	r.check(err)
	r.stays = func(ctx context.Context) error { return member.Serves(ctx, hubclient.Works) }
	r.start()
	work := r.place("work", nil, configMap("one", "a: b"))
	r.applied(work)
	one := r.mustConfigMap("one")
	kind := r.deleteKind("works")
	r.untilLogged("the hub is deleting the CustomResourceDefinition of works.placement.kubernetes-fleet.io")
	r.dropFinalizer(work)
	r.untilGone("the kind", kind)
	r.cluster.InstallCRDs(t)
	r.applied(r.place("work", nil, configMap("one", "a: b")))
	if is := r.mustConfigMap("one"); is.UID != one.UID || is.ResourceVersion != one.ResourceVersion {
		t.Errorf("ConfigMap one was touched: %+v, then %+v", one.ObjectMeta, is.ObjectMeta)
	}
}

func TestWorkDeletedByMistakeCostsNothingIfTheHubStillWantsIt(t *testing.T) {
	r := newRig(t)
	work := r.place("work", nil, configMap("one", "a: b"))
	r.applied(work)
	if work.Annotations[placement.AnnotationRetains] != "true" {
		t.Errorf("the Work has annotations %v", work.Annotations)
	}
	one := r.mustConfigMap("one")
	r.check(r.Delete(context.Background(), work))
	r.dropFinalizer(work)
	r.applied(r.place("work", nil, configMap("one", "a: b")))
	if is := r.mustConfigMap("one"); is.UID != one.UID || is.ResourceVersion != one.ResourceVersion {
		t.Errorf("ConfigMap one was touched: %+v, then %+v", one.ObjectMeta, is.ObjectMeta)
	}
}

func TestAnObjectWithoutTheAgentsLabelIsLookedForBeforeItCountsAsGone(t *testing.T) {
	r := newRig(t)
	work := r.place("work", nil, held)
	r.applied(work)
	r.halt()
	found := r.mustConfigMap("held")
	found.Labels = nil
	r.check(r.Update(context.Background(), found))
	r.start()
	done := make(chan error, 1)
	heard := make(chan applied.Remaining, 100)
	go func() {
		done <- r.agent.RemoveAll(context.Background(), func(left applied.Remaining) { heard <- left })
	}()
	if first := <-heard; first.Left != 1 {
		t.Errorf("first %+v was left", first)
	}
	r.dry()
	r.check(<-done)
}

func TestWatchThatStaysBehindIsBelieved(t *testing.T) {
	m := manifest{hash: "h", key: key{schema.GroupKind{Kind: "ConfigMap"}, types.NamespacedName{Name: "one"}}}
	c, e := &Controller{}, attempt{
		hash: "h", outcome: outcome{reason: reasons.ManifestApplied}, as: summary{uid: "1", version: "100"}, triedAt: noon,
	}
	for _, row := range []struct {
		name    string
		after   time.Duration
		version string
		again   time.Duration
	}{
		{"a watch may be behind for a while", 10 * time.Second, "100", applied.CatchUp},
		{"a watch that stays behind is believed", applied.CatchUp, "", 0},
	} {
		p, now := &pass{}, noon.Add(row.after)
		c.observe(p, m, e, now)
		var again time.Duration
		if !p.requeue.IsZero() {
			again = p.requeue.Sub(noon)
		}
		if version := e.waitsFor(now); version != row.version || again != row.again {
			t.Errorf("%s: version %q is awaited, looked at again after %s", row.name, version, again)
		}
	}
}

func TestWhatAnOlderWorkLacksStays(t *testing.T) {
	r := newRig(t)
	work := r.place("work", nil, configMap("one", "a: b"))
	r.applied(work)
	before := work.DeepCopy()
	work = r.place("work", nil, configMap("one", "a: b"), configMap("two", "a: b"))
	r.applied(work)
	r.halt()
	owner := r.owner(work)
	err := r.agent.pruneAndList(t.Context(), &pass{work: before, manifests: manifestsOf(before), attempts: map[key]attempt{}}, owner)
	if err == nil || !strings.Contains(err.Error(), "the hub has generation 2 of it, and generation 1 was applied") {
		t.Errorf("pruning by an older Work ends with %v", err)
	}
	r.mustConfigMap("two")
	r.check(r.agent.pruneAndList(t.Context(), &pass{work: work, manifests: manifestsOf(work), attempts: map[key]attempt{}}, owner))
	r.mustConfigMap("two")
}

// TestWhatTheFirstWorkOfAnotherHubLacksStays loses a hub. Another one of the same fleet has only
// one of the two objects of a Work so far.
func TestWhatTheFirstWorkOfAnotherHubLacksStays(t *testing.T) {
	r := newRig(t)
	r.applied(r.place("work", nil, configMap("one", "a: b"), configMap("two", "a: b")))
	r.halt()
	lost := r.place("work", nil, configMap("one", "a: b"), configMap("two", "a: b"))
	lost.Finalizers = nil
	r.check(r.Update(t.Context(), lost))
	r.check(r.Delete(t.Context(), lost))
	one, two := r.mustConfigMap("one"), r.mustConfigMap("two")
	r.membership = "of-another-report"
	work := r.place("work", nil, configMap("one", "a: b"))
	r.start()
	r.applied(work)
	lists := func(want int) {
		t.Helper()
		r.eventually(fmt.Sprintf("it lists %d objects", want), func() error {
			if got := r.owner(work).Status.AppliedResources; len(got) != want {
				return fmt.Errorf("it lists %v", got)
			}
			return nil
		})
	}
	lists(1)
	if r.mustConfigMap("one").UID != one.UID || r.mustConfigMap("two").UID != two.UID {
		t.Error("an object was replaced")
	}
	if says := r.log.String(); !strings.Contains(says, "Objects of an earlier membership stay") {
		t.Errorf("the log does not say so: %s", says)
	}
	// The other hub has the object, and then a user removes it.
	r.applied(r.place("work", nil, configMap("one", "a: b"), configMap("two", "a: b")))
	lists(2)
	if r.mustConfigMap("two").UID != two.UID {
		t.Error("the object was replaced")
	}
	r.applied(r.place("work", nil, configMap("one", "a: b")))
	r.untilGone("the object that a user removed", two)
}
