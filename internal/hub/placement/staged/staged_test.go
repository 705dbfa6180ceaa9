package staged

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/updaterun"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a run over the members a, b and c: a in the stage canary, which waits for an hour and an
// approval, b and c in the stage prod. All of them are picked, and hold an older version.
func world(change ...func(*Run)) Run {
	in := func(env string, order int) Member {
		return Member{Picked: true, Holds: true, Labels: map[string]string{"env": env, "order": fmt.Sprint(order)}}
	}
	selects := func(env string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}
	}
	r := Run{
		Name: "run", Generation: 2, Placement: "ClusterResourcePlacement web", UID: "uid", External: true,
		Versions: []string{"0", "1", "2"}, Latest: "2",
		Spec:         placement.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "plan", State: placement.StateRun},
		StrategyKind: "ClusterStagedUpdateStrategy",
		Members:      map[string]Member{"a": in("canary", 1), "b": in("prod", 2), "c": in("prod", 1)}, Requests: map[string]Request{},
		Strategy: &placement.UpdateStrategySpec{Stages: []placement.StageConfig{
			{Name: "canary", LabelSelector: selects("canary"), AfterStageTasks: []placement.StageTask{
				{Type: placement.TaskTimedWait, WaitTime: &metav1.Duration{Duration: time.Hour}}, {Type: placement.TaskApproval},
			}},
			{Name: "prod", LabelSelector: selects("prod"), SortingLabelKey: new("order")},
		}},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// play has members get what a run gives them at once, until nothing happens any more, and returns
// the status and when time alone makes a difference.
func (r *Run) play(at time.Time) Decision {
	for range 20 {
		d := Decide(*r, at)
		if cmp.Equal(d.Status, r.Before) && len(d.Create)+len(d.Accept) == 0 {
			return d
		}
		r.Before = d.Status
		for _, c := range d.Create {
			r.Requests[c.Name] = Request{Owned: true}
		}
		for _, name := range d.Accept {
			r.Requests[name] = Request{Owned: true, Approved: true, Accepted: true}
		}
		for name, turn := range Turns(r.Before) {
			m := r.Members[name]
			switch turn {
			case Update:
				m.Current, m.Holds, m.Ready = true, true, m.Trouble == ""
			case Remove:
				m.Holds = false
			case Keep, Repair:
			}
			r.Members[name] = m
		}
	}
	panic("the run never rests")
}

// said is what a run says: its conditions, then its stages with their members.
func said(status placement.UpdateRunStatus) string {
	list := func(conditions []metav1.Condition) string {
		var all []string
		for _, c := range conditions {
			all = append(all, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
		}
		return strings.Join(all, " ")
	}
	text := list(status.Conditions)
	for _, s := range status.StagesStatus {
		text += "\n" + s.StageName + ": " + list(s.Conditions)
		for _, c := range s.Clusters {
			text += "\n  " + c.ClusterName + " " + list(c.Conditions)
		}
		for _, task := range append(slices.Clone(s.BeforeStageTaskStatus), s.AfterStageTaskStatus...) {
			text += "\n  " + task.Type + " " + list(task.Conditions)
		}
	}
	return text
}

const done = "Started=True/ClusterUpdatingStarted Succeeded=True/ClusterUpdatingSucceeded"

func TestARunGoesThroughItsStagesInOrder(t *testing.T) {
	r := world()
	d := r.play(now)
	want := "Initialized=True/UpdateRunInitializedSuccessfully Progressing=False/UpdateRunWaiting\ncanary: " +
		"Progressing=False/StageUpdatingWaiting\n  a " + done +
		"\n  TimedWait \n  Approval ApprovalRequestCreated=True/StageTaskApprovalRequestCreated\nprod: \n  c \n  b "
	if diff := cmp.Diff(want, said(d.Status)); diff != "" {
		t.Errorf("it waits after the first stage (-want +got):\n%s", diff)
	}
	if !d.At.Equal(now.Add(time.Hour)) || !strings.Contains(d.Status.Message, "approval request run-after-canary") ||
		d.Status.ResourceSnapshotIndexUsed != "2" {
		t.Errorf("it waits until %s, and says %q", d.At, d.Status.Message)
	}
	r.Requests["run-after-canary"] = Request{Owned: true, Approved: true}
	if d = r.play(now.Add(time.Hour - time.Second)); meta.IsStatusConditionTrue(d.Status.Conditions, placement.ConditionSucceeded) ||
		!strings.Contains(d.Status.Message, "until 2026-01-02T04:04:05Z") {
		t.Errorf("it does not wait for the time: %q", d.Status.Message)
	}
	d = r.play(now.Add(time.Hour))
	want = "Initialized=True/UpdateRunInitializedSuccessfully Progressing=False/UpdateRunSucceeded Succeeded=True/UpdateRunSucceeded\n" +
		"canary: Progressing=False/StageUpdatingSucceeded Succeeded=True/StageUpdatingSucceeded\n  a " + done +
		"\n  TimedWait WaitTimeElapsed=True/AfterStageTaskWaitTimeElapsed" +
		"\n  Approval ApprovalRequestCreated=True/StageTaskApprovalRequestCreated ApprovalRequestApproved=True/StageTaskApprovalRequestApproved" +
		"\nprod: Progressing=False/StageUpdatingSucceeded Succeeded=True/StageUpdatingSucceeded\n  c " + done + "\n  b " + done
	if diff := cmp.Diff(want, said(d.Status)); diff != "" || d.Status.Message != "" {
		t.Errorf("it ends, and says %q (-want +got):\n%s", d.Status.Message, diff)
	}
	r.Spec.State = placement.StateStop
	if after := Decide(r, now.Add(time.Hour*24)); !cmp.Equal(after.Status, d.Status) {
		t.Errorf("what has ended goes on: %s", said(after.Status))
	}
}

func TestWhatARunCannotBeginWith(t *testing.T) {
	stage := func(change func(*placement.StageConfig)) func(*Run) {
		return func(r *Run) { change(&r.Strategy.Stages[0]) }
	}
	for _, c := range []struct {
		name  string
		run   Run
		says  string
		final bool
	}{
		{"no placement", world(func(r *Run) { r.Missing = true }), "there is no ClusterResourcePlacement web", false},
		{"no strategy", world(func(r *Run) { r.Strategy = nil }), "there is no ClusterStagedUpdateStrategy plan", false},
		{"a placement that the hub rolls out", world(func(r *Run) { r.External = false }), "set its spec.strategy.type to External", false},
		{"nothing can be rolled out", world(func(r *Run) { r.Problem = "no rights" }), "cannot be rolled out: no rights", false},
		{"the version is yet to be recorded", world(func(r *Run) { r.Latest = "" }), "is being stored", false},
		{
			"a version that is not kept", world(func(r *Run) { r.Spec.ResourceSnapshotIndex = "7" }),
			"version 7 of ClusterResourcePlacement web is not kept; kept are 0, 1, 2", true,
		},
		{"no stage", world(func(r *Run) { r.Strategy.Stages = nil }), "it has no stage", true},
		{"two stages of one name", world(stage(func(s *placement.StageConfig) { s.Name = "prod" })), "two stages are called prod", true},
		{
			"a member in two stages", world(stage(func(s *placement.StageConfig) { s.LabelSelector = &metav1.LabelSelector{} })),
			"member b is in the stages canary and prod", true,
		},
		{"a member in no stage", world(stage(func(s *placement.StageConfig) { s.LabelSelector = nil })), "no stage selects a, which", true},
		{
			"an order that is no number", world(stage(func(s *placement.StageConfig) { s.SortingLabelKey = new("env") })),
			`label env of member a is "canary", and not a whole number`, true,
		},
		{
			"no member at once", world(stage(func(s *placement.StageConfig) { s.MaxConcurrency = new(intstr.FromInt32(0)) })),
			"maxConcurrency 0 is neither", true,
		},
		{"a wait without a time", world(stage(func(s *placement.StageConfig) { s.AfterStageTasks[0].WaitTime = nil })), "needs a waitTime", true},
		{
			"an approval with a time", world(stage(func(s *placement.StageConfig) { s.AfterStageTasks[1].WaitTime = &metav1.Duration{} })),
			"has no waitTime", true,
		},
		{
			"two waits", world(stage(func(s *placement.StageConfig) { s.AfterStageTasks[1] = s.AfterStageTasks[0] })),
			"has the type TimedWait twice", true,
		},
		{
			"a wait before a stage", world(stage(func(s *placement.StageConfig) { s.BeforeStageTasks = s.AfterStageTasks[:1] })),
			"beforeStageTasks can only have", true,
		},
		{"no member", world(func(r *Run) { r.Members = nil }), "picks 0 members", true},
		{"too many members", world(func(r *Run) {
			for i := range MaxMembers {
				r.Members[fmt.Sprint(i)] = Member{Picked: true}
			}
		}), "at most 1000", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(c.run, now)
			is := meta.FindStatusCondition(d.Status.Conditions, placement.ConditionInitialized)
			if is == nil || is.Status != metav1.ConditionFalse || is.Reason != placement.ReasonRunInitFailed ||
				!strings.Contains(is.Message, c.says) {
				t.Errorf("it says %+v", is)
			}
			if len(Turns(d.Status)) > 0 || updaterun.Ended(d.Status) != c.final {
				t.Errorf("turns %v, ended %t", Turns(d.Status), updaterun.Ended(d.Status))
			}
			healthy := world()
			healthy.Before = d.Status
			if again := Decide(healthy, now); Initialized(again.Status) == c.final {
				t.Errorf("when it is mended, it is %s", said(again.Status))
			}
		})
	}
}

func TestNoMoreMembersThanMayBeAreUpdatedAtOnce(t *testing.T) {
	for _, c := range []struct {
		most *intstr.IntOrString
		want int
	}{
		{nil, 1}, {new(intstr.FromInt32(2)), 2}, {new(intstr.FromInt32(9)), 5}, {new(intstr.FromString("50%")), 2},
		{new(intstr.FromString("1%")), 1}, {new(intstr.FromString("100%")), 5},
	} {
		r := world(func(r *Run) {
			r.Strategy.Stages = []placement.StageConfig{{Name: "all", LabelSelector: &metav1.LabelSelector{}, MaxConcurrency: c.most}}
			r.Members = map[string]Member{}
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				r.Members[name] = Member{Picked: true}
			}
		})
		if d := Decide(r, now); len(Turns(d.Status)) != c.want || d.Status.Begun == nil {
			t.Errorf("%v: %v", c.most, Turns(d.Status))
		}
	}
}

func TestWhyARunRests(t *testing.T) {
	begun := func(change ...func(*Run)) Run { // a is being updated
		r := world()
		r.Before = Decide(r, now).Status
		for _, c := range change {
			c(&r)
		}
		return r
	}
	member := func(change func(*Member)) func(*Run) {
		return func(r *Run) {
			m := r.Members["a"]
			change(&m)
			r.Members["a"] = m
		}
	}
	current := member(func(m *Member) { m.Current, m.Ready = true, true })
	for _, c := range []struct {
		name        string
		run         Run
		at          time.Time
		progressing string
		says        string
		ended       bool
		wakes       time.Time
	}{
		{
			"only initialized", world(func(r *Run) { r.Spec.State = placement.StateInitialize }), now,
			"", "set spec.state to Run", false, time.Time{},
		},
		{
			"another is in progress", world(func(r *Run) { r.Other = "before" }), now, "False/UpdateRunWaiting", "run before of", false, time.Time{},
		},
		{"updating", begun(), now.Add(time.Minute), "True/UpdateRunProgressing", "updating a", false, now.Add(patience)},
		{"updating for long", begun(), now.Add(patience), "False/UpdateRunStuck", "a: not updated after 5m0s", false, time.Time{}},
		{"a failure", begun(member(func(m *Member) { m.Trouble = "conflict" })), now, "False/UpdateRunStuck", "a: conflict", false, time.Time{}},
		{
			"not ready before a time", begun(member(func(m *Member) { m.Current, m.ReadyAt = true, now.Add(time.Minute) })), now,
			"True/UpdateRunProgressing", "updating a", false, now.Add(time.Minute),
		},
		{
			"ready, with an older version", begun(member(func(m *Member) { m.Ready = true })), now,
			"True/UpdateRunProgressing", "updating a", false, now.Add(patience),
		},
		{
			"nothing can be rolled out", begun(current, func(r *Run) { r.Problem = "no rights"; r.Members = nil }), now,
			"False/UpdateRunStuck", "no rights", false, now.Add(patience),
		},
		{
			"a member is not picked any more", begun(member(func(m *Member) { m.Picked = false })), now,
			"False/UpdateRunFailed", "does not pick a any more", true, time.Time{},
		},
		{
			"a later run has begun", begun(func(r *Run) { r.Later = "next" }), now, "False/UpdateRunFailed", "run next has begun", true, time.Time{},
		},
		{"another placement has its name", begun(func(r *Run) { r.UID = "other" }), now, "False/UpdateRunFailed",
			"initialized for another ClusterResourcePlacement web", true, time.Time{}},
		{
			"another hub has initialized it", begun(func(r *Run) { r.Before.PlacementUID = "" }), now,
			"False/UpdateRunFailed", "or by another hub", true, time.Time{},
		},
		{
			"the placement is gone", begun(func(r *Run) { r.Missing = true }), now,
			"False/UpdateRunFailed", "there is no ClusterResourcePlacement web", true, time.Time{},
		},
		{
			"the hub rolls it out itself now", begun(func(r *Run) { r.External = false }), now,
			"False/UpdateRunFailed", "External any more", true, time.Time{},
		},
		{
			"stopped while a is being updated", begun(func(r *Run) { r.Spec.State = placement.StateStop }), now,
			"Unknown/UpdateRunStopping", "waiting for a", false, now.Add(patience),
		},
		{
			"stopped", begun(current, func(r *Run) { r.Spec.State = placement.StateStop }), now,
			"False/UpdateRunStopped", "set spec.state to Run", false, time.Time{},
		},
		{"a request of somebody else", begun(current, func(r *Run) {
			r.Requests["run-after-canary"] = Request{Approved: true}
		}), now.Add(2 * time.Hour), "False/UpdateRunWaiting", "not of this run and has no effect", false, now.Add(3 * time.Hour)},
		{"an approval of an older request", begun(current, func(r *Run) {
			r.Requests["run-after-canary"] = Request{Owned: true, Outdated: true}
		}), now.Add(2 * time.Hour), "False/UpdateRunWaiting", "without its metadata.generation as observedGeneration", false,
			now.Add(3 * time.Hour)},
		{"an approval before the first stage", world(func(r *Run) {
			r.Strategy.Stages[0].BeforeStageTasks = []placement.StageTask{{Type: placement.TaskApproval}}
		}), now, "False/UpdateRunWaiting", "approval request run-before-canary", false, time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(c.run, c.at)
			is, got := meta.FindStatusCondition(d.Status.Conditions, placement.ConditionProgressing), ""
			if is != nil {
				got = fmt.Sprintf("%s/%s", is.Status, is.Reason)
			}
			if got != c.progressing || !strings.Contains(d.Status.Message, c.says) || updaterun.Ended(d.Status) != c.ended || !d.At.Equal(c.wakes) {
				t.Errorf("%s, %q, ended %t, wakes %s", got, d.Status.Message, updaterun.Ended(d.Status), d.At)
			}
			c.run.Before = d.Status
			if again := Decide(c.run, c.at); !cmp.Equal(again.Status, d.Status) {
				t.Errorf("decided again, it differs:\n%s", cmp.Diff(d.Status, again.Status))
			}
		})
	}
}

func TestAStoppedRunGoesOn(t *testing.T) {
	r := world(func(r *Run) { r.Strategy.Stages[0].AfterStageTasks = nil })
	r.Before = Decide(r, now).Status
	r.Spec.State = placement.StateStop
	if d := r.play(now); Turns(d.Status)["a"] != Repair || len(Turns(d.Status)) != 1 {
		t.Fatalf("stopped, it is %s", said(d.Status))
	}
	if !Stopped(r.Spec, r.Before) {
		t.Fatal("it is not stopped")
	}
	r.Spec.State = placement.StateRun
	if d := r.play(now); !meta.IsStatusConditionTrue(d.Status.Conditions, placement.ConditionSucceeded) {
		t.Errorf("it is %s", said(d.Status))
	}
}

func TestMembersThatAreNotPickedLoseItAfterTheLastStage(t *testing.T) {
	r := world(func(r *Run) {
		r.Strategy.Stages[0].AfterStageTasks = nil
		r.Members["gone"] = Member{Holds: true}
		r.Members["never"] = Member{}
	})
	d := Decide(r, now)
	if turns := Turns(d.Status); turns["gone"] != Keep || len(d.Status.DeletionStageStatus.Clusters) != 1 {
		t.Fatalf("turns %v, %+v", turns, d.Status.DeletionStageStatus)
	}
	d = r.play(now)
	if r.Members["gone"].Holds || !meta.IsStatusConditionTrue(d.Status.Conditions, placement.ConditionSucceeded) {
		t.Errorf("it has %+v, and is %s", r.Members["gone"], said(d.Status))
	}
}

func TestAStageWithoutMembersIsSkippedWithItsTasks(t *testing.T) {
	r := world(func(r *Run) { delete(r.Members, "a") })
	d := r.play(now)
	if stage := d.Status.StagesStatus[0]; !meta.IsStatusConditionTrue(d.Status.Conditions, placement.ConditionSucceeded) ||
		meta.FindStatusCondition(stage.Conditions, placement.ConditionSucceeded).Reason != placement.ReasonStageSkipped {
		t.Errorf("it is %s", said(d.Status))
	}
}
