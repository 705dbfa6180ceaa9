package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/naming"
)

const held = "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: fleet-member-NAME, finalizers: [example.com/paint]}}"

// dry takes the foreign finalizer off.
func (r *rig) dry() {
	r.t.Helper()
	r.edit("held", func(c *corev1.ConfigMap) { c.Finalizers = nil })
}

func TestDeletedWorkNamesWhatHoldsItAndGoesWhenNothingIsLeft(t *testing.T) {
	r := newRig(t)
	work := r.place("work", nil, configMap("one", "a: b"), held)
	r.applied(work)
	r.check(r.Delete(context.Background(), work))
	r.untilGone("what nothing holds", r.mustConfigMap("one"))
	r.eventually("the finalizer is named", func() error {
		r.refresh(work)
		appliedWork := meta.FindStatusCondition(work.Status.Conditions, placement.ConditionApplied)
		if want := "1 object left; ConfigMap " + r.namespace +
			"/held waits for finalizer example.com/paint"; appliedWork.Reason != reasons.Removing || appliedWork.Message != want {
			return fmt.Errorf("%+v", appliedWork)
		}
		return nil
	})
	// An agent that comes back goes on where the one before it ended.
	r.halt()
	r.start()
	r.dry()
	r.untilGone("the Work", work)
	r.untilGone("its AppliedWork", &placement.AppliedWork{ObjectMeta: work.ObjectMeta})
}

func TestAbandonedObjectsStayAndBelongToNobody(t *testing.T) {
	r := newRig(t)
	abandon := func(spec *placement.WorkSpec) {
		spec.DeleteStrategy = &placement.DeleteStrategy{PropagationPolicy: placement.PropagationAbandon}
	}
	work := r.place("work", abandon, configMap("one", "a: b"), "{apiVersion: v1, kind: Namespace, metadata: {name: NAME-stays}}")
	r.applied(work)
	uid := r.mustConfigMap("one").UID
	r.check(r.Delete(context.Background(), work))
	r.untilGone("the Work", work)
	r.untilGone("its AppliedWork", &placement.AppliedWork{ObjectMeta: work.ObjectMeta})
	one := r.mustConfigMap("one")
	if one.UID != uid || one.DeletionTimestamp != nil || len(one.OwnerReferences) > 0 || one.Labels[labelWork] != "" ||
		one.Annotations[annotationHash] != "" {
		t.Errorf("what was abandoned is %+v", one.ObjectMeta)
	}
	r.check(r.Get(context.Background(), client.ObjectKey{Name: r.name + "-stays"}, &corev1.Namespace{}))
	// It may be placed again.
	r.applied(r.place("again", nil, configMap("one", "a: c")))
	r.untilData("one", "a", "c")
}

func TestLeavingRemovesEverythingAndCountsDown(t *testing.T) {
	r := newRig(t)
	one := r.place("one", nil, configMap("one", "a: b"), held)
	two := r.place("two", nil, "{apiVersion: v1, kind: Namespace, metadata: {name: NAME-two}}", configMap("two", "a: b"))
	stranger := &placement.AppliedWork{}
	stranger.Name, stranger.Spec = r.name+"-stranger", placement.AppliedWorkSpec{WorkName: "stranger", WorkNamespace: "fleet-member-other"}
	r.check(r.Create(context.Background(), stranger))
	earlier := &placement.AppliedWork{}
	earlier.Name, earlier.Labels = r.name+"-earlier", map[string]string{naming.LabelMember: "earlier"}
	earlier.Spec = placement.AppliedWorkSpec{WorkName: "earlier", WorkNamespace: r.namespace}
	r.check(r.Create(context.Background(), earlier))
	r.applied(one)
	r.applied(two)
	heard := make(chan applied.Remaining, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.agent.RemoveAll(ctx, func(left applied.Remaining) { heard <- left }) }()
	want := applied.Remaining{Left: 1, Held: []string{"ConfigMap " + r.namespace + "/held waits for finalizer example.com/paint"}}
	for left := range heard {
		if cmp.Equal(want, left) {
			break
		}
	}
	// What comes now is not applied.
	late := r.place("late", nil, configMap("late", "a: b"))
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted leave: %v", err)
	}
	r.halt()
	r.start()
	var last []applied.Remaining
	go func() {
		done <- r.agent.RemoveAll(context.Background(), func(left applied.Remaining) { last = append(last, left) })
	}()
	r.dry()
	r.check(<-done)
	if len(last) == 0 || last[len(last)-1].Left != 0 {
		t.Errorf("heard of %+v", last)
	}
	for _, name := range []string{"one", "two", "held"} {
		if found, err := r.configMap(name); err == nil {
			t.Errorf("ConfigMap %s is left: %v", name, found.Finalizers)
		}
	}
	for _, work := range []*placement.Work{one, two, late} {
		r.refresh(work)
		if len(work.Finalizers) > 0 {
			t.Errorf("Work %s keeps %v", work.Name, work.Finalizers)
		}
	}
	if _, err := r.configMap("late"); err == nil && slices.Contains(late.Finalizers, placement.FinalizerWork) {
		t.Error("a Work was applied while leaving")
	}
	r.refresh(stranger)
	r.refresh(earlier)
}

func TestHubThatTakesTheWorksAwayLeavesWhatIsApplied(t *testing.T) {
	// So a KubeFleet hub ends a leave: all finalizers off, then the namespace.
	r := newRig(t)
	work := r.place("work", nil, configMap("one", "a: b"))
	r.applied(work)
	r.halt()
	r.refresh(work)
	work.Finalizers = nil
	r.check(r.Update(context.Background(), work))
	r.check(r.Delete(context.Background(), work))
	r.start()
	r.applied(r.place("other", nil, configMap("other", "a: b")))
	r.mustConfigMap("one")
	r.owner(work)
	// A Work of the same name takes it up again.
	version := r.mustConfigMap("one").ResourceVersion
	r.applied(r.place("work", nil, configMap("one", "a: b")))
	if is := r.mustConfigMap("one").ResourceVersion; is != version {
		t.Errorf("it was touched: %s, %s", version, is)
	}
}

func TestNothingOfASecretIsShownOrLogged(t *testing.T) {
	r := newRig(t)
	secret := func(value string) string {
		return "{apiVersion: v1, kind: Secret, immutable: true, metadata: {name: s, namespace: fleet-member-NAME}, stringData: {password: " +
			value + "}}"
	}
	work := r.place("work", nil, secret("hush-first"))
	r.applied(work)
	r.place("work", nil, secret("hush-second"),
		`{apiVersion: v1, kind: Secret, metadata: {name: t, namespace: fleet-member-NAME}, data: {password: "hush-malformed"}}`,
		`{apiVersion: v1, kind: Secret, type: kubernetes.io/dockerconfigjson, metadata: {name: u, namespace: fleet-member-NAME}, stringData: `+
			`{.dockerconfigjson: "hush-config"}}`)
	r.until(work, placement.ConditionApplied, placement.ReasonSomeNotApplied)
	if c := r.untilOf(work, 0, "Applied", reasons.ImmutableField); !strings.Contains(c.Message, "data") {
		t.Errorf("condition %+v", c)
	}
	r.untilOf(work, 1, "Applied", reasons.Rejected)
	r.untilOf(work, 2, "Applied", reasons.Rejected)
	r.halt()
	if status := fmt.Sprintf("%+v", work.Status); strings.Contains(status, "hush") {
		t.Errorf("the status has a secret: %s", status)
	}
	if strings.Contains(r.log.String(), "hush") {
		t.Errorf("the log has a secret:\n%s", r.log)
	}
	if len(r.log.String()) == 0 {
		t.Error("nothing was logged")
	}
}
