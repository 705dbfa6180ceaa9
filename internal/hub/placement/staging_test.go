package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/updaterun"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/hub/placement/staged"
)

// reportingBack is a field that Muster does not do.
func reportingBack(o *observed) {
	o.spec.Strategy.ReportBackStrategy = &runtime.RawExtension{Raw: []byte("{}")}
}

// byRuns has runs roll out what is selected: version 1 is what is selected now, and version 0 is
// what members have if that is something else.
func byRuns(t *testing.T) func(*observed) {
	return func(o *observed) {
		parts, err := pack(o.selected.Objects, nil, maxManifests, true)
		if err != nil {
			t.Fatal(err)
		}
		o.spec.Strategy.Type, o.now = placement.RolloutExternal, now
		o.staging = &staging{hash: hashParts(parts), selected: selection.Resources{Objects: o.selected.Objects}}
		if was := o.before.ResourceHash; was != o.staging.hash && was != "" {
			o.staging.versions = append(o.staging.versions, version{index: 0, hash: was}, version{index: 1, hash: o.staging.hash})
			return
		}
		o.staging.versions = []version{{index: 0, hash: o.staging.hash}}
	}
}

// begun has a run for version 1 update some members.
func begun(members ...string) func(*observed) {
	return func(o *observed) {
		r := run("r1", now)
		r.status.ResourceSnapshotIndexUsed = "1"
		for _, m := range members {
			c := placement.ClusterUpdatingStatus{
				ClusterName: m, Conditions: []metav1.Condition{{Type: "Started", Status: "True", LastTransitionTime: metav1.NewTime(now)}},
			}
			r.status.StagesStatus[0].Clusters = append(r.status.StagesStatus[0].Clusters, c)
		}
		o.runs = append(o.runs, r)
		o.staging.target = &o.staging.versions[len(o.staging.versions)-1]
	}
}

// run is one that is initialized; it has begun at a time, or never if that is zero.
func run(name string, at time.Time) observedRun {
	r := &placement.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	r.Spec.State = placement.StateRun
	r.Status.StagedUpdateStrategySnapshot = &placement.UpdateStrategySpec{Stages: []placement.StageConfig{{Name: "all"}}}
	r.Status.StagesStatus = []placement.StageUpdatingStatus{{StageName: "all"}}
	r.Status.Conditions = []metav1.Condition{{Type: "Initialized", Status: "True"}}
	if !at.IsZero() {
		r.Status.Begun = &metav1.MicroTime{Time: at}
	}
	return observedRun{genericRun: ofClusterRun(r)}
}

func TestOnlyMembersThatARunHasReachedAreWrittenTo(t *testing.T) {
	changed := func(o *observed) { o.selected.Objects[0] = configMap("settings", 11) }
	for _, c := range []struct {
		name                           string
		seen                           observed
		write, remove, waiting, record string
	}{
		{"nobody has it, and there is no run", world(t, byRuns(t)), "", "", "a b", ""},
		{"something else is selected", world(t, on(t, "a", "b"), byRuns(t), func(o *observed) { o.staging.hash = "new" }), "", "", "a b", "1"},
		{
			"a pause between versions",
			world(t, on(t, "a", "b"), byRuns(t), func(o *observed) { o.staging.hash, o.staging.recordAt = "new", now.Add(1) }), "", "", "a b", "",
		},
		{
			"too large for a version",
			world(t, on(t, "a", "b"), byRuns(t), func(o *observed) { o.staging.hash, o.staging.tooLarge = "new", "too large" }), "", "", "a b", "",
		},
		{
			"a selector that cannot be meant",
			world(t, on(t, "a", "b"), byRuns(t), func(o *observed) { o.staging.hash, o.selected.Problem = "new", "wrong" }), "", "", "", "",
		},
		{"a run has reached a", world(t, on(t, "a", "b"), changed, byRuns(t), begun("a")), "a", "", "b", ""},
		{"a run has reached a, which has nothing", world(t, on(t, "b"), changed, byRuns(t), begun("a")), "a", "", "b", ""},
		{
			"the version of the run is not kept any more", world(t, on(t, "a", "b"), changed, byRuns(t), begun("a"),
				func(o *observed) { o.staging.target, o.staging.targetProblem = nil, "lost" }), "", "", "a b", "",
		},
		{"the author may not read the version", world(t, on(t, "a", "b"), changed, byRuns(t), begun("a"), func(o *observed) {
			o.staging.hash, o.staging.targetProblem = "new", "no right"
		}), "", "", "a b", "2"},
		{
			"b is not picked any more", world(t, requiring("env=prod"), on(t, "a", "b"), byRuns(t),
				func(o *observed) { o.members[1].Labels, o.before.PolicyHash = nil, "others" }), "", "", "b", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decide(c.seen)
			names := func(targets []target) string {
				var all []string
				for _, t := range targets {
					all = append(all, t.name)
				}
				return strings.Join(all, " ")
			}
			record := ""
			if d.record != nil {
				record = d.record.String()
			}
			got := []string{names(d.plan.write), names(d.plan.remove), names(d.plan.waiting), record}
			if diff := cmp.Diff([]string{c.write, c.remove, c.waiting, c.record}, got); diff != "" {
				t.Errorf("written, removed, waiting, recorded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoseTurnItIs(t *testing.T) {
	all := []target{
		{name: "begun", wanted: true, exists: true}, {name: "blocked", wanted: true, exists: true, blocked: true}, {
			name: "going", exists: true, deleting: true,
		},
		{name: "kept", wanted: true, exists: true}, {name: "lacking", wanted: true, incomplete: true}, {
			name: "later", wanted: true, exists: true,
		},
		{name: "leaving", exists: true}, {name: "lost", wanted: true, exists: true, unreachable: true}, {name: "unpicked", exists: true},
	}
	turns := map[string]staged.Turn{
		"begun": staged.Update, "blocked": staged.Update, "going": staged.Remove, "kept": staged.Repair, "lacking": staged.Repair,
		"leaving": staged.Remove, "lost": staged.Update,
	}
	p := planStages(all, turns)
	got := fmt.Sprint(listNames(p.write), " / ", listNames(p.remove), " / ", listNames(p.waiting))
	if want := "begun, lacking / leaving / kept, later, lost, unpicked"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAtMostOneRunIsInProgress(t *testing.T) {
	stopped := func(r observedRun) observedRun {
		r.spec.State = placement.StateStop
		r.status.Conditions = append(r.status.Conditions, metav1.Condition{
			Type: "Progressing", Status: "False", Reason: placement.ReasonRunStopped,
		})
		return r
	}
	waiting := func(r observedRun) observedRun {
		r.status.StagesStatus[0].Clusters = []placement.ClusterUpdatingStatus{{ClusterName: "a"}, {ClusterName: "b"}}
		r.status.ResourceSnapshotIndexUsed = "0"
		return r
	}
	foreign := func(r observedRun) observedRun {
		r.foreign, r.status.PlacementUID = true, "old"
		return r
	}
	for _, c := range []struct {
		name string
		runs []observedRun
		want string
	}{
		{"one is of a placement of that name that is gone", []observedRun{foreign(waiting(run("r1", now))), waiting(run("r2", time.Time{}))},
			"r1 fails, r2 begins"},
		{"two that have not begun", []observedRun{waiting(run("r1", time.Time{})), waiting(run("r2", time.Time{}))}, "r1 begins, r2 waits"},
		{"one is in progress", []observedRun{waiting(run("r1", now)), waiting(run("r2", time.Time{}))}, "r1 goes on, r2 waits"},
		{"one was stopped", []observedRun{stopped(waiting(run("r1", now))), waiting(run("r2", time.Time{}))}, "r1 goes on, r2 begins"},
		{"one has begun later", []observedRun{waiting(run("r1", now)), waiting(run("r2", now.Add(time.Second)))}, "r1 fails, r2 goes on"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := world(t, on(t, "a", "b"), byRuns(t), func(o *observed) { o.runs = c.runs })
			seen.staging.target = &seen.staging.versions[0]
			d := decide(seen)
			var got []string
			for _, r := range d.runs {
				does := "goes on"
				switch {
				case updaterun.Ended(r.Status):
					does = "fails"
				case r.run.status.Begun == nil && r.Status.Begun != nil:
					does = "begins"
				case r.Status.Begun == nil:
					does = "waits"
				}
				got = append(got, r.run.GetName()+" "+does)
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
			if d.begins() && len(d.plan.write) > 0 {
				t.Error("what was observed is written for a run that begins now")
			}
		})
	}
}

func TestARunForTheLatestVersionSaysThatItIsTooLarge(t *testing.T) {
	r := run("r1", time.Time{})
	r.status.Conditions, r.status.StagedUpdateStrategySnapshot = nil, nil
	r.strategy = &placement.UpdateStrategySpec{}
	seen := world(t, on(t, "a", "b"), byRuns(t), func(o *observed) {
		o.staging.hash, o.staging.tooLarge, o.runs = "new", "it is too large", []observedRun{r}
	})
	if d := decide(seen); !strings.Contains(d.runs[0].Status.Message, "it is too large") || d.record != nil {
		t.Errorf("it says %q, and records %v", d.runs[0].Status.Message, d.record)
	}
}

func TestAVersionIsWhatWasSelected(t *testing.T) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(
		[]byte(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"n"},"data":{"<a>":"1"},"number":9007199254740993,"part":0.5}`,
		),
	); err != nil {
		t.Fatal(err)
	}
	wrapped := placement.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "n", Name: "c"}
	was := selection.Resources{Objects: []*unstructured.Unstructured{o, configMap("more", 10)},
		Envelopes: map[placement.ResourceIdentifier]placement.EnvelopeIdentifier{
			wrapped: {Name: "e", Namespace: "n", Type: "ResourceEnvelope"},
		}}
	packed, err := packVersion(was)
	if err != nil {
		t.Fatal(err)
	}
	is, err := unpackVersion(version{}, packed)
	if diff := cmp.Diff(was, is); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	digest := func(r selection.Resources) string {
		parts, err := pack(r.Objects, nil, maxManifests, true)
		if err != nil {
			t.Fatal(err)
		}
		return hashParts(parts)
	}
	if digest(was) != digest(is) {
		t.Error("its hash is another one")
	}
	if err := checkVersion(version{hash: digest(was)}, is); err != nil {
		t.Error(err)
	}
	if err := checkVersion(version{hash: "other"}, is); err == nil {
		t.Error("what was changed counts")
	}
	again, err := packVersion(is)
	if err != nil || !slices.Equal(again, packed) {
		t.Errorf("packed again, it differs: %v", err)
	}
	if _, err := unpackVersion(version{}, packed[:len(packed)/2]); !errors.As(err, new(unusableError)) {
		t.Errorf("half of it is %v", err)
	}
}

func TestWhichVersionsAreKept(t *testing.T) {
	var all []version
	for i := range 14 {
		all = append(all, version{index: i})
	}
	for _, c := range []struct {
		name  string
		limit *int32
		used  map[string]bool
		want  string
	}{
		{"ten by default", nil, nil, "[0 1 2 3]"},
		{"as many as asked for", new(int32(12)), nil, "[0 1]"},
		{"more than there are", new(int32(20)), nil, "[]"},
		{"one that a run uses", nil, map[string]bool{"1": true}, "[0 2 3]"},
	} {
		if got := fmt.Sprint(surplus(all, c.limit, c.used)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestTheIndexCountsOnWhenTheStrategyChanges(t *testing.T) {
	for _, c := range []struct {
		name string
		seen observed
		want string
	}{
		{"to runs", world(t, on(t, "a"), func(o *observed) { o.before.ObservedResourceIndex = "5" }, func(o *observed) {
			o.staging = &staging{hash: o.before.ResourceHash}
		}), "5"},
		{"to runs, and something else is selected",
			world(t, on(t, "a"), func(o *observed) { o.before.ObservedResourceIndex = "5" }, func(o *observed) {
				o.staging = &staging{hash: "new"}
			}), "6"},
		{"from runs", world(t, on(t, "a"),
			func(o *observed) { o.before.ObservedResourceIndex, o.before.ResourceIndexes = "", []string{"6", "7"} }), "7"},
		{"from runs, and something else is selected", world(t, on(t, "a"), func(o *observed) {
			o.before.ObservedResourceIndex, o.before.ResourceIndexes, o.before.ResourceHash = "6", []string{"6", "7"}, "old"
		}), "8"},
	} {
		if got := c.seen.desiredWorks().index; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestAnApprovalCountsOnlyForTheRunThatOwnsIt(t *testing.T) {
	r := run("web", now)
	request := func(change func(*placement.ClusterApprovalRequest)) updaterun.ApprovalRequest {
		o := &placement.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: "web-after-canary", Generation: 1,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: placement.GroupVersion.String(), Kind: "ClusterStagedUpdateRun", Name: "web", UID: r.GetUID(), Controller: new(true)},
			}}}
		o.Spec = placement.ApprovalRequestSpec{TargetUpdateRun: "web", TargetStage: "canary"}
		o.Status.Conditions = []metav1.Condition{{Type: "Approved", Status: "True", ObservedGeneration: 1}}
		change(o)
		got, _ := updaterun.ApprovalRequestOf(o)
		return got
	}
	for _, c := range []struct {
		name   string
		change func(*placement.ClusterApprovalRequest)
		want   staged.Request
	}{
		{"as it is meant", func(*placement.ClusterApprovalRequest) {}, staged.Request{Owned: true, Approved: true}},
		{"of a run of the same name that is gone", func(o *placement.ClusterApprovalRequest) { o.OwnerReferences[0].UID = "old" },
			staged.Request{Approved: true}},
		{"of nobody", func(o *placement.ClusterApprovalRequest) { o.OwnerReferences = nil }, staged.Request{Approved: true}},
		{"for another run", func(o *placement.ClusterApprovalRequest) { o.Spec.TargetUpdateRun = "other" }, staged.Request{Approved: true}},
		{"for another stage", func(o *placement.ClusterApprovalRequest) { o.Spec.TargetStage = "prod" }, staged.Request{Approved: true}},
		{"for what it was before", func(o *placement.ClusterApprovalRequest) { o.Generation = 2 }, staged.Request{Owned: true, Outdated: true}},
		{"denied", func(o *placement.ClusterApprovalRequest) { o.Status.Conditions[0].Status = "False" }, staged.Request{Owned: true}},
		{"not answered", func(o *placement.ClusterApprovalRequest) { o.Status.Conditions = nil }, staged.Request{Owned: true}},
	} {
		if got := ofRequest(r.genericRun, request(c.change)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
