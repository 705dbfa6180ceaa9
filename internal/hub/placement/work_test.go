package placement

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
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
		{"an object beyond the limit is alone, and others fill what has room", []int{100, 2000, 100}, []int{2, 1}},
		{"also as the first", []int{2000, 100}, []int{1, 1}},
	} {
		var objects []*unstructured.Unstructured
		for i, size := range c.sizes {
			objects = append(objects, configMap(strconv.Itoa(i), size))
		}
		parts, err := pack(objects, nil, 1000, false)
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

// TestAnObjectStaysInItsPart packs again after each change, as the hub does, and
// follows where objects are.
func TestAnObjectStaysInItsPart(t *testing.T) {
	key := types.NamespacedName{Name: "web"}
	current := map[string]*currentWorks{}
	for _, step := range []struct {
		name    string
		objects []*unstructured.Unstructured
		want    [][]string
	}{
		{"two parts", []*unstructured.Unstructured{configMap("a", 400), configMap("b", 400), configMap("c", 400)}, [][]string{{"a", "b"}, {"c"}}},
		{"one that is sorted first comes last", []*unstructured.Unstructured{configMap("0", 300), configMap("a", 400), configMap("b", 400),
			configMap("c", 400)}, [][]string{{"a", "b"}, {"0", "c"}}},
		{"one that grows stays", []*unstructured.Unstructured{configMap("0", 300), configMap("a", 800), configMap("b", 400), configMap("c", 400)},
			[][]string{{"a", "b"}, {"0", "c"}}},
		{"one that is gone makes room for others, and moves nobody",
			[]*unstructured.Unstructured{configMap("0", 300), configMap("b", 400), configMap("c", 400), configMap("d", 300)},
			[][]string{{"b", "d"}, {"0", "c"}}},
		{"a part with nothing stays, so that those behind it keep their numbers",
			[]*unstructured.Unstructured{configMap("0", 300), configMap("c", 400)}, [][]string{nil, {"0", "c"}}},
		{"the last part goes with its objects", []*unstructured.Unstructured{configMap("e", 400)}, [][]string{{"e"}}},
	} {
		at, others := homes(key, current)
		if len(others) > 0 {
			t.Fatalf("%s: members differ", step.name)
		}
		parts, err := pack(step.objects, at, 1000, false)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		var got [][]string
		works := &currentWorks{}
		for i, p := range parts {
			var names []string
			for _, id := range p.objects {
				names = append(names, strings.TrimPrefix(id, "ConfigMap "))
			}
			got = append(got, names)
			works.works = append(works.works, placed(t, key, desiredWorks{parts: parts}, i))
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		current["m"] = works
	}
}

// TestAMemberThatHasAnObjectElsewhereKeepsItThere has two members of which a hub that packed
// otherwise has written one.
func TestAMemberThatHasAnObjectElsewhereKeepsItThere(t *testing.T) {
	key := types.NamespacedName{Name: "web"}
	objects := []*unstructured.Unstructured{configMap("a", 400), configMap("b", 400), configMap("c", 400)}
	have := func(parts ...[]*unstructured.Unstructured) *currentWorks {
		w := &currentWorks{}
		var all []part
		for _, p := range parts {
			packed, err := pack(p, nil, 10000, false)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, packed...)
		}
		for i := range all {
			w.works = append(w.works, placed(t, key, desiredWorks{parts: all}, i))
		}
		return w
	}
	common, others := homes(key, map[string]*currentWorks{"first": have(objects[:2], objects[2:]), "second": have(objects[:1], objects[1:])})
	if diff := cmp.Diff(home{"ConfigMap a": 0, "ConfigMap b": 0, "ConfigMap c": 1}, common); diff != "" {
		t.Errorf("what is common (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(home{"ConfigMap a": 0, "ConfigMap b": 1, "ConfigMap c": 1}, others["second"].home); diff != "" || len(others) != 1 {
		t.Errorf("what the second has, of %d (-want +got):\n%s", len(others), diff)
	}
}

func TestAWorkThatIsFullSaysSo(t *testing.T) {
	at := home{"ConfigMap a": 1, "ConfigMap b": 1}
	_, err := pack([]*unstructured.Unstructured{configMap("a", 700<<10), configMap("b", 700<<10)}, at, maxManifests, false)
	if err == nil || !strings.Contains(err.Error(), "Work number 1 of a member is full") {
		t.Errorf("the error is %v", err)
	}
	if parts, err := pack([]*unstructured.Unstructured{configMap("a", 500<<10), configMap("b", 600<<10)}, at, maxManifests,
		false); err != nil || len(parts) != 2 {
		t.Errorf("what has grown beyond what a Work is filled with is in %d parts (%v)", len(parts), err)
	}
}

// TestWhatHasGrownMovesToALaterWork packs while one object grows, as the hub does, also when it
// ended between two writes.
func TestWhatHasGrownMovesToALaterWork(t *testing.T) {
	key := types.NamespacedName{Name: "web"}
	size := map[string]int{"a": 400, "b": 700, "c": 500, "d": 100}
	objects := []*unstructured.Unstructured{}
	for _, name := range []string{"a", "b", "c", "d"} {
		objects = append(objects, configMap(name, size[name]<<10))
	}
	works := func(parts ...[]string) map[string]*currentWorks {
		w := &currentWorks{}
		desired := desiredWorks{}
		for _, names := range parts {
			var p part
			for _, name := range names {
				one, err := pack([]*unstructured.Unstructured{configMap(name, 1)}, nil, maxManifests, true)
				if err != nil {
					t.Fatal(err)
				}
				p.manifests, p.objects = append(p.manifests, one[0].manifests...), append(p.objects, one[0].objects...)
			}
			desired.parts = append(desired.parts, p)
		}
		for i := range desired.parts {
			w.works = append(w.works, placed(t, key, desired, i))
		}
		return map[string]*currentWorks{"m": w}
	}
	for _, c := range []struct {
		name    string
		current map[string]*currentWorks
		want    [][]string
		moves   bool
	}{
		{"the largest leaves, and as few as can", works([]string{"a", "b", "d"}), [][]string{{"a", "d"}, {"b"}, {"c"}}, true},
		{
			"to a part behind, also if there is room in one before", works([]string{"d"}, []string{"b", "c"}),
			[][]string{{"a", "d"}, {"c"}, {"b"}}, true,
		},
		{"what is in two Works is the later one's", works([]string{"a", "b", "d"}, []string{"b"}), [][]string{{"a", "d"}, {"b"}, {"c"}}, false},
		{"nothing moves while it fits", works([]string{"a", "b"}), [][]string{{"a", "b"}, {"c", "d"}}, false},
	} {
		at, _ := homes(key, c.current)
		parts, err := pack(objects, at, maxManifests, true)
		if err != nil {
			t.Fatal(err)
		}
		var got [][]string
		for _, p := range parts {
			var names []string
			for _, id := range p.objects {
				names = append(names, strings.TrimPrefix(id, "ConfigMap "))
			}
			got = append(got, names)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if moves := at.leaves(parts); moves != c.moves {
			t.Errorf("%s: it moves is %v", c.name, moves)
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
func placed(t *testing.T, key types.NamespacedName, c desiredWorks, i int) *placement.Work {
	t.Helper()
	var slim any = c.work(key, i, target{name: "m", namespace: "m"})
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
	parts, err := pack([]*unstructured.Unstructured{configMap("a", 90)}, nil, 100, false)
	if err != nil {
		t.Fatal(err)
	}
	desired := desiredWorks{parts: parts, index: "1"}
	for _, c := range []struct {
		name               string
		deleted, retains   bool
		finalizer, surplus bool
		removed            bool
		want               int
	}{
		{"a Work that is there", false, true, true, false, false, 0},
		{"a Work that somebody deleted", true, true, true, false, false, 1},
		{"one of KubeFleet's agent, which has begun to remove", true, false, true, false, false, 0},
		{"one that no agent has seen", true, true, false, false, false, 0},
		{"one that the member is not to have any more", true, true, true, true, false, 0},
		{"one that the hub has deleted, whose agent has begun to remove", true, true, true, false, true, 0},
	} {
		work := placed(t, key, desired, 0)
		if c.surplus {
			work.Name = "web-7"
		}
		if c.deleted {
			work.DeletionTimestamp = &metav1.Time{}
		}
		if c.retains {
			work.Annotations = map[string]string{placement.AnnotationRetains: "true"}
		}
		if c.removed {
			work.Annotations[placement.AnnotationRemoved] = "true"
		}
		if c.finalizer {
			work.Finalizers = []string{placement.FinalizerWork}
		}
		if got := len((&currentWorks{works: []*placement.Work{work}}).retained(key, desired)); got != c.want {
			t.Errorf("%s: %d are retained, want %d", c.name, got, c.want)
		}
	}
}

func TestOnlyWhatDiffersIsWritten(t *testing.T) {
	key := types.NamespacedName{Name: "web"}
	load := func(index string, sizes ...int) desiredWorks {
		var objects []*unstructured.Unstructured
		for _, size := range sizes {
			objects = append(objects, configMap("a", size))
		}
		parts, err := pack(objects, nil, 100, false)
		if err != nil {
			t.Fatal(err)
		}
		return desiredWorks{parts: parts, index: index}
	}
	now := load("1", 90, 90)
	strategy := now
	strategy.applyStrategy = &placement.ApplyStrategy{Type: placement.ApplyServerSide}
	deleting := placed(t, key, now, 1)
	deleting.DeletionTimestamp = &metav1.Time{}
	marked := placed(t, key, now, 1)
	marked.Annotations[placement.AnnotationRemoved] = "true"
	for _, c := range []struct {
		name    string
		have    []*placement.Work
		want    desiredWorks
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
		{"one with a part that the hub wants again before it deleted it", []*placement.Work{placed(t, key, now, 0), marked}, now, []int{1}, 0},
		{"which is not deleted twice", []*placement.Work{placed(t, key, now, 0), deleting}, load("1", 90), nil, 0},
	} {
		h := &currentWorks{works: c.have}
		missing, surplus := h.diff(key, c.want)
		if diff := cmp.Diff(c.missing, missing); diff != "" || len(surplus) != c.surplus {
			t.Errorf("%s: %d too many, missing (-want +got):\n%s", c.name, len(surplus), diff)
		}
	}
}

func TestNamesAndLabelsOfWorksAreThoseOfTheWire(t *testing.T) {
	c := desiredWorks{parts: []part{{}, {}}, index: "3"}
	for _, w := range []struct {
		key    types.NamespacedName
		i      int
		name   string
		labels map[string]string
	}{
		{types.NamespacedName{Name: "web"}, 0, "web-work", nil},
		{types.NamespacedName{Name: "web"}, 1, "web-1", nil},
		{
			types.NamespacedName{Namespace: "shop", Name: "web"}, 0, "shop.web-work", map[string]string{
				"kubernetes-fleet.io/parent-placement-namespace": "shop",
			},
		},
		{
			types.NamespacedName{Namespace: "shop", Name: "web"}, 1, "shop.web-1", map[string]string{
				"kubernetes-fleet.io/parent-placement-namespace": "shop",
			},
		},
	} {
		labels := map[string]string{
			"fleet.cattle.io/managed": "true", "kubernetes-fleet.io/parent-CRP": "web", "kubernetes-fleet.io/parent-resource-binding": "web-m",
			"kubernetes-fleet.io/parent-resource-snapshot-index": "3", "kubernetes-fleet.io/member-name": "m",
		}
		for key, value := range w.labels {
			labels[key] = value
		}
		want := metav1.ObjectMeta{
			Namespace: "m", Name: w.name, Labels: labels, Annotations: map[string]string{
				"kubernetes-fleet.io/parent-resource-snapshot-name": "web-3-snapshot",
			},
		}
		got := c.work(w.key, w.i, target{name: "m", namespace: "m"})
		if diff := cmp.Diff(want, got.ObjectMeta); diff != "" {
			t.Errorf("%s (-want +got):\n%s", w.name, diff)
		}
		if of, ok := parentOf(got); !ok || of != w.key {
			t.Errorf("%s leads back to %s", w.name, of)
		}
	}
}

func TestAWorkLeadsToNoPlacementThatHasNoneOfItsName(t *testing.T) {
	for _, c := range []struct {
		name, work, namespace, crp string
		managed                    string
		is, relabelled             bool
	}{
		{"as the hub wrote it", "web-work", "", "web", "true", true, false},
		{"its second part", "web-1", "", "web", "true", true, false},
		{"labelled for another placement", "web-work", "", "shop", "true", false, true},
		{"labelled for one of a namespace", "web-work", "shop", "web", "true", false, true},
		{"labelled for none", "web-work", "", "", "true", false, true},
		{"somebody else's", "web-work", "", "", "", false, false},
		{"of another hub", "web-work", "", "web", "", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Name: c.work, Labels: map[string]string{
				"fleet.cattle.io/managed": c.managed, placement.LabelParentCRP: c.crp, placement.LabelParentNamespace: c.namespace,
			}}}
			if _, is := parentOf(work); is != c.is || relabelled(work) != c.relabelled {
				t.Errorf("it leads to its placement: %t, it is relabelled: %t", is, relabelled(work))
			}
			patch, err := replacement(work,
				(desiredWorks{parts: []part{{}}}).work(types.NamespacedName{Name: "web"}, 0, target{name: "m", namespace: "m"}))
			if err != nil || bytes.Contains(patch, []byte(`"shop"`)) {
				t.Errorf("it is replaced by %s, %v", patch, err)
			}
		})
	}
}

func TestTheWorksOfAMemberAreRolledUp(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	reported := func(kind, status, reason string, generation int64) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: reason, ObservedGeneration: generation,
		}
	}
	work := func(conditions ...metav1.Condition) *placement.Work {
		return &placement.Work{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: placement.WorkStatus{Conditions: conditions}}
	}
	applied, available := reported("Applied", "True", "x", 2), reported("Available", "True", "x", 2)
	failing := work(reported("Applied", "False", "Some", 2))
	failing.Status.ManifestConditions = []placement.ManifestCondition{
		{
			Identifier: placement.WorkResourceIdentifier{Kind: "ConfigMap", Namespace: "n", Name: "good"},
			Conditions: []metav1.Condition{reported("Applied", "True", "", 2)},
		},
		{
			Identifier: placement.WorkResourceIdentifier{Kind: "ConfigMap", Namespace: "n", Name: "bad"},
			Conditions: []metav1.Condition{reported("Applied", "False", "conflict", 2)},
		},
		{
			Identifier: placement.WorkResourceIdentifier{Kind: "Role", Namespace: "n", Name: "worse"},
			Conditions: []metav1.Condition{reported("Applied", "False", "immutable", 2)},
		},
	}
	untracked := reported("Available", "True", placement.ReasonNotTrackable, 2)
	for _, c := range []struct {
		name               string
		works              []*placement.Work
		applied, available condition
		ready              bool
		at                 time.Duration
	}{
		{
			"applied and available", []*placement.Work{work(applied, available)}, condition{"True", reasons.AllWorkHaveBeenApplied, ""},
			condition{"True", reasons.AllWorkAreAvailable, ""}, true, 0,
		},
		{
			"nobody has answered", []*placement.Work{work()},
			condition{"Unknown", reasons.ApplyPending, "waiting for the member's agent to apply it"}, condition{}, false, 0,
		},
		{"an old answer does not count", []*placement.Work{work(reported("Applied", "True", "x", 1), reported("Available", "True", "x", 1))},
			condition{"Unknown", reasons.ApplyPending, "waiting for the member's agent to apply it"}, condition{}, false, 0},
		{"one of two fails", []*placement.Work{work(applied, available), failing},
			condition{"False", reasons.NotAllWorkHaveBeenApplied, "ConfigMap n/bad: conflict (and 1 more)"}, condition{}, false, 0},
		{"a failure is worse than waiting", []*placement.Work{work(), failing},
			condition{"False", reasons.NotAllWorkHaveBeenApplied, "ConfigMap n/bad: conflict (and 1 more)"}, condition{}, false, 0},
		{
			"not available", []*placement.Work{work(applied, reported("Available", "False", "crashes", 2))},
			condition{"True", reasons.AllWorkHaveBeenApplied, ""}, condition{"False", reasons.NotAllWorkAreAvailable, "crashes"}, false, 0,
		},
		{"what cannot be tracked settles", []*placement.Work{work(applied, untracked)}, condition{"True", reasons.AllWorkHaveBeenApplied, ""},
			condition{"True", reasons.NotAllWorkAreAvailabilityTrackable, "the availability of some resources cannot be checked"}, false,
			time.Minute},
	} {
		h := &currentWorks{works: c.works}
		got := h.status(func(*placement.Work) time.Time { return now }, time.Minute, now)
		got.failed, got.diffReported = nil, condition{}
		want := worksStatus{applied: c.applied, available: c.available, works: c.available.status == "True", ready: c.ready}
		if c.at > 0 {
			want.readyAt = now.Add(c.at)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(worksStatus{}, condition{}, resourceStatus{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	h := &currentWorks{works: []*placement.Work{work(applied, untracked)}}
	if s := h.status(func(*placement.Work) time.Time { return now }, time.Minute, now.Add(time.Minute)); !s.ready {
		t.Error("after the period it does not count as available")
	}
	if s := (&currentWorks{works: []*placement.Work{failing}}).status(nil, 0, now); len(s.failed) != 2 || s.failed[0].Name != "bad" ||
		s.failed[0].Condition.Reason != "conflict" {
		t.Errorf("the failed are %+v", s.failed)
	}
}

func TestReplacingLeavesNothingOldAndWhatIsNotTheHubs(t *testing.T) {
	there := placed(t, types.NamespacedName{Name: "web"}, desiredWorks{parts: []part{{}}, index: "1"}, 0)
	there.Labels["mine"] = "x"
	there.Annotations[placement.AnnotationRemoved] = "true"
	with := (desiredWorks{parts: []part{{}}, index: "2"}).work(types.NamespacedName{Name: "web"}, 0, target{name: "m", namespace: "m"})
	patch, err := replacement(there, with)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"op":"add","path":"/spec","value":{"workload":{}}},` +
		`{"op":"add","path":"/metadata/labels",` +
		`"value":{"fleet.cattle.io/managed":"true","kubernetes-fleet.io/member-name":"m","kubernetes-fleet.io/parent-CRP":"web",` +
		`"kubernetes-fleet.io/parent-resource-binding":"web-m","kubernetes-fleet.io/parent-resource-snapshot-index":"2","mine":"x"}},` +
		`{"op":"add","path":"/metadata/annotations","value":{"kubernetes-fleet.io/parent-resource-snapshot-name":"web-2-snapshot"}},` +
		`{"op":"add","path":"/metadata/managedFields","value":[{}]}]`
	if diff := cmp.Diff(want, string(patch)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWorksOfKubeFleetsHubAreKnownByTheirNames(t *testing.T) {
	crp, rp := types.NamespacedName{Name: "web"}, types.NamespacedName{Namespace: "shop", Name: "web"}
	for _, c := range []struct {
		of    types.NamespacedName
		name  string
		part  int
		known bool
	}{
		{crp, "web-work", 0, true}, {crp, "web-1", 1, true}, {crp, "web-12", 12, true}, {rp, "shop.web-work", 0, true},
		{rp, "shop.web-2", 2, true},
		{crp, "web-0", 0, false}, {crp, "web-01", 0, false}, {crp, "web-envelope-7f5c", 0, false}, {crp, "other-work", 0, false},
		{crp, "shop.web-work", 0, false}, {rp, "web-work", 0, false},
	} {
		part, known := partOf(c.of, c.name)
		if known != c.known || known && part != c.part {
			t.Errorf("%s of %s: part %d, %t; want %d, %t", c.name, c.of, part, known, c.part, c.known)
		}
	}
}

func TestLeftoversOfAResourcePlacementAreNamedInItsNamespace(t *testing.T) {
	s := ofRP(&placement.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	got := describeLeftovers(s, []string{"2 resourcebindings"}, []string{"resourcebindings"}, nil)
	want := `KubeFleet's hub left 2 resourcebindings of the placement. Nothing uses them, and the hub deletes them together with the ` +
		`placement. If KubeFleet's hub is gone for good: kubectl delete --wait=false resourcebindings -n shop -l ` +
		`kubernetes-fleet.io/parent-CRP=web,fleet.cattle.io/managed!=true; ` +
		`for o in $(kubectl get -o name resourcebindings -n shop -l kubernetes-fleet.io/parent-CRP=web,fleet.cattle.io/managed!=true); do ` +
		`kubectl patch -n shop $o --type=merge -p '{"metadata":{"finalizers":null}}'; done`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatWouldMoveBetweenWorksOfKubeFleetsHubIsNamed(t *testing.T) {
	manifest := func(text string) placement.Manifest {
		return placement.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}}
	}
	namespace, role := manifest(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`),
		manifest(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"namespace":"n","name":"r"}}`)
	gone := manifest(`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"n","name":"gone"}}`)
	parts := []part{{manifests: []placement.Manifest{namespace}}, {manifests: []placement.Manifest{role}}}
	for _, c := range []struct {
		name      string
		manifests []placement.Manifest
		want      string
	}{
		{"web-work", []placement.Manifest{namespace, gone}, ""}, {"web-1", []placement.Manifest{role}, ""},
		{"web-work", []placement.Manifest{namespace, role}, "has Role.rbac.authorization.k8s.io n/r. Muster would move it to Work web-1,"},
		{"web-1", []placement.Manifest{namespace}, "has Namespace n. Muster would move it to Work web-work,"},
	} {
		work := &placement.Work{
			ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: c.name}, Spec: placement.WorkSpec{
				Workload: placement.WorkloadTemplate{Manifests: c.manifests},
			},
		}
		if got := moves(types.NamespacedName{Name: "web"}, parts, work); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s of %d: %q, want %q", c.name, len(c.manifests), got, c.want)
		}
	}
}

// TestTheDigestsOfWorksNeverChange has golden vectors: members report such digests, and Works and
// snapshots are named by them.
func TestTheDigestsOfWorksNeverChange(t *testing.T) {
	raw := []byte(`{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"1"}}`)
	manifests := []placement.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	if got := digest(manifests); got != "5bd7dee1dfca136f" {
		t.Errorf("the manifests have the digest %s", got)
	}
	if got := hashParts([]part{{digest: "one"}, {digest: "two"}}); got != "c3f9c8c283a2b1f2" {
		t.Errorf("the parts have the digest %s", got)
	}
}
