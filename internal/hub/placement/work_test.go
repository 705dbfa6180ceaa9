package placement

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func configMap(name string, size int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"a": strings.Repeat("x", size)},
	}}
}

func TestPackFillsPartsInOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes []int
		want  []int // manifests of each part
	}{
		{"nothing is one part", nil, []int{0}},
		{"what fits", []int{100, 100, 100}, []int{3}},
		{"what does not", []int{400, 400, 400}, []int{2, 1}},
		{"an object beyond the limit is alone", []int{100, 2000, 100}, []int{1, 1, 1}},
		{"also as the first", []int{2000, 100}, []int{1, 1}},
	} {
		var objects []*unstructured.Unstructured
		for _, size := range c.sizes {
			objects = append(objects, configMap("a", size))
		}
		parts, err := pack(objects, 1000)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, p := range parts {
			got = append(got, len(p.manifests))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestTheDigestSurvivesTheServer(t *testing.T) {
	manifest := func(text string) []placement.Manifest {
		return []placement.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(text)}}}
	}
	written := digest(manifest(`{"kind":"A","apiVersion":"v1","data":{"a":"<b>","n":1}}`))
	if read := digest(manifest(`{"apiVersion": "v1", "data": {"n": 1, "a": "\u003cb\u003e"}, "kind": "A"}`)); read != written {
		t.Error("another way of writing the same gives another digest")
	}
	if other := digest(manifest(`{"kind":"A","apiVersion":"v1","data":{"a":"<b>","n":2}}`)); other == written {
		t.Error("another content gives the same digest")
	}
	if two := digest(append(manifest(`{}`), manifest(`{}`)...)); two == digest(manifest(`{}`)) {
		t.Error("two manifests give the digest of one")
	}
}

// placed is the cached form of what is written; a cache may transform an object twice.
func placed(t *testing.T, key types.NamespacedName, c cargo, i int) *placement.Work {
	t.Helper()
	var slim any = desiredWork(key, c, i, "m")
	for range 2 {
		var err error
		if slim, err = Slim(slim); err != nil {
			t.Fatal(err)
		}
	}
	return slim.(*placement.Work)
}

func TestDeletedWorksAreRetainedWhereTheAgentGoesOnWithWhatIsApplied(t *testing.T) {
	key := types.NamespacedName{Name: "web"}
	parts, err := pack([]*unstructured.Unstructured{configMap("a", 90)}, 100)
	if err != nil {
		t.Fatal(err)
	}
	goods := cargo{parts: parts, index: "1"}
	for _, c := range []struct {
		name             string
		deleted, retains bool
		claimed, surplus bool
		want             int
	}{
		{"a Work that is there", false, true, true, false, 0},
		{"a Work that somebody deleted", true, true, true, false, 1},
		{"one of KubeFleet's agent, which has begun to remove", true, false, true, false, 0},
		{"one that no agent has seen", true, true, false, false, 0},
		{"one that the member is not to have any more", true, true, true, true, 0},
	} {
		work := placed(t, key, goods, 0)
		if c.surplus {
			work.Name = "web-7"
		}
		if c.deleted {
			work.DeletionTimestamp = &metav1.Time{}
		}
		if c.retains {
			work.Annotations = map[string]string{placement.AnnotationRetains: "true"}
		}
		if c.claimed {
			work.Finalizers = []string{placement.FinalizerWork}
		}
		if got := len((&holding{works: []*placement.Work{work}}).retained(key, goods)); got != c.want {
			t.Errorf("%s: %d are retained, want %d", c.name, got, c.want)
		}
	}
}

func TestOnlyWhatDiffersIsWritten(t *testing.T) {
	key := types.NamespacedName{Name: "web"}
	load := func(index string, sizes ...int) cargo {
		var objects []*unstructured.Unstructured
		for _, size := range sizes {
			objects = append(objects, configMap("a", size))
		}
		parts, err := pack(objects, 100)
		if err != nil {
			t.Fatal(err)
		}
		return cargo{parts: parts, index: index}
	}
	now := load("1", 90, 90)
	strategy := now
	strategy.apply = &placement.ApplyStrategy{Type: placement.ApplyServerSide}
	deleting := placed(t, key, now, 1)
	deleting.DeletionTimestamp = &metav1.Time{}
	for _, c := range []struct {
		name    string
		have    []*placement.Work
		want    cargo
		missing []int
		surplus int
	}{
		{"a member that has nothing", nil, now, []int{0, 1}, 0},
		{"one that has all", []*placement.Work{placed(t, key, now, 0), placed(t, key, now, 1)}, now, nil, 0},
		{"one that lacks a part", []*placement.Work{placed(t, key, now, 0)}, now, []int{1}, 0},
		{"one that has another content", []*placement.Work{placed(t, key, load("1", 80), 0), placed(t, key, now, 1)}, now, []int{0}, 0},
		{"one that has an older selection", []*placement.Work{placed(t, key, load("0", 90, 90), 0), placed(t, key, now, 1)}, now, []int{0}, 0},
		{"one with another strategy", []*placement.Work{placed(t, key, now, 0), placed(t, key, now, 1)}, strategy, []int{0, 1}, 0},
		{"one with a part too many", []*placement.Work{placed(t, key, now, 0), placed(t, key, now, 1)}, load("1", 90), nil, 1},
		{"which is not deleted twice", []*placement.Work{placed(t, key, now, 0), deleting}, load("1", 90), nil, 0},
	} {
		h := &holding{works: c.have}
		missing, surplus := h.stale(key, c.want)
		if diff := cmp.Diff(c.missing, missing); diff != "" || len(surplus) != c.surplus {
			t.Errorf("%s: %d too many, missing (-want +got):\n%s", c.name, len(surplus), diff)
		}
	}
}

func TestNamesAndLabelsOfWorksAreThoseOfTheWire(t *testing.T) {
	c := cargo{parts: []part{{}, {}}, index: "3"}
	for _, w := range []struct {
		key    types.NamespacedName
		i      int
		name   string
		labels map[string]string
	}{
		{types.NamespacedName{Name: "web"}, 0, "web-work", nil},
		{types.NamespacedName{Name: "web"}, 1, "web-1", nil},
		{types.NamespacedName{Namespace: "shop", Name: "web"}, 0, "shop.web-work", map[string]string{"kubernetes-fleet.io/parent-placement-namespace": "shop"}},
		{types.NamespacedName{Namespace: "shop", Name: "web"}, 1, "shop.web-1", map[string]string{"kubernetes-fleet.io/parent-placement-namespace": "shop"}},
	} {
		labels := map[string]string{
			"fleet.cattle.io/managed": "true", "kubernetes-fleet.io/parent-CRP": "web", "kubernetes-fleet.io/parent-resource-binding": "web-m",
			"kubernetes-fleet.io/parent-resource-snapshot-index": "3",
		}
		for key, value := range w.labels {
			labels[key] = value
		}
		want := metav1.ObjectMeta{Namespace: "m", Name: w.name, Labels: labels, Annotations: map[string]string{"kubernetes-fleet.io/parent-resource-snapshot-name": "web-3-snapshot"}}
		got := desiredWork(w.key, c, w.i, "m")
		if diff := cmp.Diff(want, got.ObjectMeta); diff != "" {
			t.Errorf("%s (-want +got):\n%s", w.name, diff)
		}
		if of, ok := parentOf(got); !ok || of != w.key {
			t.Errorf("%s leads back to %s", w.name, of)
		}
	}
}

func TestStanding(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	condition := func(kind, status, reason string, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: reason, ObservedGeneration: generation}
	}
	work := func(conditions ...metav1.Condition) *placement.Work {
		return &placement.Work{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: placement.WorkStatus{Conditions: conditions}}
	}
	applied, available := condition("Applied", "True", "x", 2), condition("Available", "True", "x", 2)
	failing := work(condition("Applied", "False", "Some", 2))
	failing.Status.ManifestConditions = []placement.ManifestCondition{
		{Identifier: placement.WorkResourceIdentifier{Kind: "ConfigMap", Namespace: "n", Name: "good"}, Conditions: []metav1.Condition{condition("Applied", "True", "", 2)}},
		{Identifier: placement.WorkResourceIdentifier{Kind: "ConfigMap", Namespace: "n", Name: "bad"}, Conditions: []metav1.Condition{condition("Applied", "False", "conflict", 2)}},
		{Identifier: placement.WorkResourceIdentifier{Kind: "Role", Namespace: "n", Name: "worse"}, Conditions: []metav1.Condition{condition("Applied", "False", "immutable", 2)}},
	}
	untracked := condition("Available", "True", placement.ReasonNotTrackable, 2)
	for _, c := range []struct {
		name               string
		works              []*placement.Work
		applied, available verdict
		works_             bool
		at                 time.Duration
	}{
		{"applied and available", []*placement.Work{work(applied, available)}, verdict{"True", reasonApplied, ""}, verdict{"True", reasonAvailable, ""}, true, 0},
		{"nobody has answered", []*placement.Work{work()}, verdict{"Unknown", reasonApplyPending, "waiting for the member's agent to apply it"}, verdict{"Unknown", reasonAvailableLater, "not everything is applied"}, false, 0},
		{"an old answer does not count", []*placement.Work{work(condition("Applied", "True", "x", 1), condition("Available", "True", "x", 1))},
			verdict{"Unknown", reasonApplyPending, "waiting for the member's agent to apply it"}, verdict{"Unknown", reasonAvailableLater, "not everything is applied"}, false, 0},
		{"one of two fails", []*placement.Work{work(applied, available), failing},
			verdict{"False", reasonNotApplied, "ConfigMap n/bad: conflict (and 1 more)"}, verdict{"Unknown", reasonAvailableLater, "not everything is applied"}, false, 0},
		{"a failure is worse than waiting", []*placement.Work{work(), failing},
			verdict{"False", reasonNotApplied, "ConfigMap n/bad: conflict (and 1 more)"}, verdict{"Unknown", reasonAvailableLater, "not everything is applied"}, false, 0},
		{"not available", []*placement.Work{work(applied, condition("Available", "False", "crashes", 2))}, verdict{"True", reasonApplied, ""}, verdict{"False", reasonNotAvailable, "crashes"}, false, 0},
		{"what cannot be tracked settles", []*placement.Work{work(applied, untracked)}, verdict{"True", reasonApplied, ""},
			verdict{"True", reasonUntrackable, "of some resources nobody can tell whether they work"}, false, time.Minute},
	} {
		h := &holding{works: c.works}
		got := h.stand(func(*placement.Work) time.Time { return now }, time.Minute, now)
		got.failed, got.reported = nil, verdict{}
		want := standing{applied: c.applied, available: c.available, works: c.works_}
		if c.at > 0 {
			want.availableAt = now.Add(c.at)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(standing{}, verdict{}, troubles{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	h := &holding{works: []*placement.Work{work(applied, untracked)}}
	if s := h.stand(func(*placement.Work) time.Time { return now }, time.Minute, now.Add(time.Minute)); !s.works {
		t.Error("after the period it does not count as available")
	}
	if s := (&holding{works: []*placement.Work{failing}}).stand(nil, 0, now); len(s.failed) != 2 || s.failed[0].Name != "bad" || s.failed[0].Condition.Reason != "conflict" {
		t.Errorf("the failed are %+v", s.failed)
	}
}

func TestReplacingLeavesNothingOldAndWhatIsNotTheHubs(t *testing.T) {
	there := placed(t, types.NamespacedName{Name: "web"}, cargo{parts: []part{{}}, index: "1"}, 0)
	there.Labels["mine"] = "x"
	with := desiredWork(types.NamespacedName{Name: "web"}, cargo{parts: []part{{}}, index: "2"}, 0, "m")
	patch, err := replacing(there, with)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"op":"add","path":"/spec","value":{"workload":{}}},` +
		`{"op":"add","path":"/metadata/labels","value":{"fleet.cattle.io/managed":"true","kubernetes-fleet.io/parent-CRP":"web",` +
		`"kubernetes-fleet.io/parent-resource-binding":"web-m","kubernetes-fleet.io/parent-resource-snapshot-index":"2","mine":"x"}},` +
		`{"op":"add","path":"/metadata/annotations","value":{"kubernetes-fleet.io/parent-resource-snapshot-name":"web-2-snapshot"}}]`
	if diff := cmp.Diff(want, string(patch)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
