package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/naming"
)

// told has the lists of deliveries unknown to the hub, in order.
type told struct {
	mu    sync.Mutex
	lists [][]string
}

func (k *told) take(kept []applied.Kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := []string{}
	for _, one := range kept {
		list = append(list, one.Name)
	}
	k.lists = append(k.lists, list)
}

func (k *told) all() [][]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.lists)
}

// keeps waits until exactly these deliveries are reported as unknown.
func (r *rig) keeps(names ...string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("unknown to the hub are %v", names), func() error {
		all := r.kept.all()
		if len(all) == 0 {
			return errors.New("nothing is reported")
		}
		if last := all[len(all)-1]; strings.Join(last, ", ") != strings.Join(names, ", ") {
			return fmt.Errorf("they are %v", last)
		}
		return nil
	})
}

// lose deletes a Work behind the agent's back, as after the loss of a hub.
func (r *rig) lose(works ...*placement.Work) {
	r.t.Helper()
	for _, work := range works {
		r.refresh(work)
		work.Finalizers = nil
		r.check(r.Update(r.t.Context(), work))
		r.check(r.Delete(r.t.Context(), work))
	}
}

// TestWorksOfALostHubAreReportedUntilTheyAreThereAgain restores a hub without one of three Works,
// and with another one that lacks an object.
func TestWorksOfALostHubAreReportedUntilTheyAreThereAgain(t *testing.T) {
	r := newRig(t)
	r.halt()
	r.membership = types.UID("of-the-lost-hub-" + r.name)
	r.start()
	part := []string{configMap("one", "a: b"), configMap("two", "a: b"), configMap("three", "a: b")}
	works := []*placement.Work{
		r.place("part", nil, part...), r.place("later", nil, configMap("later", "a: b")),
		r.place("unwanted", nil, configMap("unwanted", "a: b")),
	}
	for _, work := range works {
		r.applied(work)
	}
	r.keeps()
	r.halt()
	r.lose(works...)
	before := map[string]types.UID{}
	for _, name := range []string{"one", "two", "three", "later", "unwanted"} {
		before[name] = r.mustConfigMap(name).UID
	}
	r.lost, r.membership = []string{string(r.membership)}, "of-the-restored-hub"
	r.kept = &told{}
	work := r.place("part", nil, part[0])
	r.start()
	r.applied(work)
	object := func(name string) string {
		return fmt.Sprintf("ConfigMap %s/%s of Work %s", r.namespace, name, work.Name)
	}
	unknown := func(suffix string) string { return "Work " + r.name + "-" + suffix }
	r.keeps(object("three"), object("two"), unknown("later"), unknown("unwanted"))
	r.halt()
	r.kept = &told{}
	r.start() // the next process knows it, too
	r.keeps(object("three"), object("two"), unknown("later"), unknown("unwanted"))
	if all := r.kept.all(); len(all) > 1 {
		t.Errorf("it is reported bit by bit: %v", all)
	}

	r.check(r.Delete(t.Context(), &placement.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: r.name + "-unwanted"}},
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
	r.keeps(object("three"), object("two"), unknown("later"))
	r.check(r.Delete(t.Context(), r.mustConfigMap("three")))
	r.keeps(object("two"), unknown("later"))
	r.applied(r.place("part", nil, part[:2]...))
	r.keeps(unknown("later"))
	r.applied(r.place("later", nil, configMap("later", "a: b")))
	r.keeps()
	for _, name := range []string{"one", "two", "later"} {
		if r.mustConfigMap(name).UID != before[name] {
			t.Errorf("%s was replaced", name)
		}
	}
	if noted := r.owner(work).Annotations[annotationKept]; noted != "" {
		t.Errorf("the AppliedWork still notes %s", noted)
	}
	r.applied(r.place("part", nil, part[0]))
	two := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "two"}}
	r.untilGone("an object that a user removed after that", two)
}

func TestOnlyDeliveriesOfALostHubAreUnknown(t *testing.T) {
	of := func(name, member, namespace string) placement.AppliedWork {
		a := placement.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: placement.AppliedWorkSpec{WorkNamespace: namespace}}
		if member != "" {
			a.Labels = map[string]string{naming.LabelMember: member}
		}
		return a
	}
	noting := of("noting", "now", "here")
	noting.Annotations = map[string]string{annotationKept: `[{"ordinal":1,"kind":"ConfigMap","namespace":"shop","name":"a"}]`}
	broken, others := *noting.DeepCopy(), *noting.DeepCopy()
	broken.Annotations[annotationKept], others.Spec.WorkNamespace = "{", "elsewhere"
	going := of("going", "before", "here")
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	c := &Controller{Deps: Deps{Namespace: "here", Membership: "now", Lost: []string{"before"}}}
	for name, row := range map[string]struct {
		work    string
		applied placement.AppliedWork
		want    string
	}{
		"of the lost hub":                     {"", of("web", "before", "here"), "Work web"},
		"of an earlier member namespace":      {"", of("web", "before", "there"), "Work web"},
		"of the lost hub, with a Work":        {"web", of("web", "before", "here"), ""},
		"of this report":                      {"", of("web", "now", "here"), ""},
		"of another hub":                      {"", of("web", "other", "here"), ""},
		"of an agent that names no report":    {"", of("web", "", "here"), ""},
		"in deletion":                         {"", going, ""},
		"with an object that its Work lacks":  {"noting", noting, "ConfigMap shop/a of Work noting"},
		"with notes that a user has broken":   {"noting", broken, ""},
		"with such an object, and of another": {"noting", others, ""},
	} {
		var works []placement.Work
		if row.work != "" {
			works = []placement.Work{{ObjectMeta: metav1.ObjectMeta{Name: row.work}}}
		}
		got := ""
		for _, one := range c.keptOf(works, []placement.AppliedWork{row.applied}) {
			got += one.Name
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheNotesOfAnAppliedWorkAreBounded(t *testing.T) {
	r := newRig(t)
	r.applied(r.place("work", nil, configMap("one", "a: b")))
	a := r.owner(&placement.Work{ObjectMeta: metav1.ObjectMeta{Name: r.name + "-work"}})
	r.halt()
	var many []placement.AppliedResource
	for i := range 2 * maxKeptObjects {
		id := placement.WorkResourceIdentifier{Kind: "ConfigMap", Version: "v1", Resource: "configmaps", Name: fmt.Sprint("lost-", i)}
		many = append(many, placement.AppliedResource{WorkResourceIdentifier: id})
	}
	r.check(r.agent.noteKept(context.Background(), a, many))
	r.check(r.agent.noteKept(context.Background(), a, many))
	if got := notedIn(r.owner(&placement.Work{ObjectMeta: metav1.ObjectMeta{Name: a.Name}})); len(got) != maxKeptObjects {
		t.Errorf("%d objects are noted", len(got))
	}
}
