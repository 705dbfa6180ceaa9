package rollup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
)

// deployment is one that is as it should be, changed.
func deployment(change func(*fleet.BundleDeployment)) *fleet.BundleDeployment {
	d := &fleet.BundleDeployment{}
	d.Spec.DeploymentID, d.Spec.StagedDeploymentID = "s-a:1", "s-a:1"
	d.Status.AppliedDeploymentID, d.Status.Ready, d.Status.NonModified = "s-a:1", true, true
	d.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: corev1.ConditionTrue}}
	change(d)
	return d
}

func noteError(t *testing.T, d *fleet.BundleDeployment) {
	t.Helper()
	noted, err := delivery.ErrorDigest(d)
	if err != nil {
		t.Fatal(err)
	}
	d.Annotations = map[string]string{fleet.AnnotationEarlierError: noted}
}

func TestStateAndMessageOfADeployment(t *testing.T) {
	for _, c := range []struct {
		name      string
		change    func(*fleet.BundleDeployment)
		state     fleet.BundleState
		message   string
		available bool
	}{
		{"all is well", func(*fleet.BundleDeployment) {}, fleet.StateReady, "", true},
		{"nothing was reported yet", func(d *fleet.BundleDeployment) { d.Status = fleet.BundleDeploymentStatus{} },
			fleet.StateWaitApplied, "the agent has not reported it yet", false},
		{"an older one is in place", func(d *fleet.BundleDeployment) { d.Status.AppliedDeploymentID = "s-a:0" },
			fleet.StateWaitApplied, "the agent has not reported it yet", false},
		{"and the agent says what it does", func(d *fleet.BundleDeployment) {
			d.Status.AppliedDeploymentID = "s-a:0"
			d.Status.Conditions[0] = fleet.Condition{Type: fleet.ConditionDeployed, Status: corev1.ConditionUnknown, Message: "installing"}
		}, fleet.StateWaitApplied, "installing", false},
		{"an earlier agent of ours does it", func(d *fleet.BundleDeployment) {
			d.Status.AppliedDeploymentID = "s-a:0"
			d.Status.Conditions[0] = fleet.Condition{
				Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Reason: "Deploying", Message: "installing",
			}
		}, fleet.StateWaitApplied, "installing", false},
		{"a release that is not installed any more", func(d *fleet.BundleDeployment) {
			d.Status.NonModified, d.Status.Ready = false, false
			d.Status.Conditions = append(d.Status.Conditions, fleet.Condition{
				Type: fleet.ConditionInstalled, Status: corev1.ConditionFalse, Message: "it is gone",
			})
		}, fleet.StateNotReady, "it is gone", false},
		{"the next release cannot be installed", func(d *fleet.BundleDeployment) {
			d.Status.AppliedDeploymentID = "s-a:0"
			d.Status.Conditions = append(d.Status.Conditions, fleet.Condition{
				Type: fleet.ConditionInstalled, Status: corev1.ConditionFalse, Message: "no such chart",
			})
		}, fleet.StateErrApplied, "no such chart", false},
		{"the error was there before", func(d *fleet.BundleDeployment) {
			d.Status.AppliedDeploymentID = "s-a:0"
			d.Status.Conditions[0] = fleet.Condition{Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Message: "no such chart"}
			noteError(t, d)
		}, fleet.StateWaitApplied, "the agent has reported nothing new yet; before that it said: no such chart", false},
		{"and then there is another one", func(d *fleet.BundleDeployment) {
			d.Status.AppliedDeploymentID = "s-a:0"
			d.Status.Conditions[0] = fleet.Condition{Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Message: "no such chart"}
			noteError(t, d)
			d.Status.Conditions[0].Message = "no such repository"
		}, fleet.StateErrApplied, "no such repository", false},
		{"paused before it was carried out", func(d *fleet.BundleDeployment) { d.Status, d.Spec.Paused = fleet.BundleDeploymentStatus{}, true },
			fleet.StatePaused, "paused", false},
		{"a Schedule closed before it was carried out", func(d *fleet.BundleDeployment) {
			d.Status, d.Spec.OffSchedule = fleet.BundleDeploymentStatus{}, true
		}, fleet.StateOutsideWindow, "outside of the windows of its Schedules", false},
		{"a Schedule holds a newer one back", func(d *fleet.BundleDeployment) {
			d.Spec.StagedDeploymentID, d.Spec.OffSchedule = "s-a:2", true
		}, fleet.StateOutsideWindow, "outside of the windows of its Schedules", true},
		{"a Schedule is closed and holds nothing back", func(d *fleet.BundleDeployment) { d.Spec.OffSchedule = true },
			fleet.StateReady, "", true},
		{"it failed before a Schedule closed", func(d *fleet.BundleDeployment) {
			d.Status.AppliedDeploymentID, d.Spec.OffSchedule = "", true
			d.Status.Conditions[0] = fleet.Condition{Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Message: "no such chart"}
		}, fleet.StateErrApplied, "no such chart", false},
		{"it waits for another Bundle", func(d *fleet.BundleDeployment) {
			d.Status.AppliedDeploymentID = ""
			d.Status.Conditions[0] = fleet.Condition{
				Type: fleet.ConditionDeployed, Status: corev1.ConditionUnknown, Reason: "WaitingForDependency", Message: "waiting for Bundle base",
			}
		}, fleet.StateWaitingForDependency, "waiting for Bundle base", false},
		{"an agent of Rancher Fleet 0.17 reports that as False", func(d *fleet.BundleDeployment) {
			d.Status.AppliedDeploymentID = ""
			d.Status.Conditions[0] = fleet.Condition{
				Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Reason: "WaitingForDependency", Message: "waiting for base",
			}
		}, fleet.StateWaitingForDependency, "waiting for base", false},
		{"an earlier agent of ours has another reason for it", func(d *fleet.BundleDeployment) {
			d.Status.AppliedDeploymentID = ""
			d.Status.Conditions[0] = fleet.Condition{
				Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Reason: "Waiting", Message: "waiting for Bundle base",
			}
		}, fleet.StateWaitingForDependency, "waiting for Bundle base", false},
		{"it waited before, and is in place", func(d *fleet.BundleDeployment) {
			d.Status.Conditions[0] = fleet.Condition{
				Type: fleet.ConditionDeployed, Status: corev1.ConditionUnknown, Reason: "WaitingForDependency", Message: "waiting for Bundle base",
			}
		}, fleet.StateReady, "", true},
		{"it could not be carried out", func(d *fleet.BundleDeployment) {
			d.Status.AppliedDeploymentID = ""
			d.Status.Conditions[0] = fleet.Condition{Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Message: "no such\n  chart"}
		}, fleet.StateErrApplied, "no such chart", false},
		{
			"what another agent left to be shown does not count", func(d *fleet.BundleDeployment) { d.Status.Display.State = "ErrApplied" },
			fleet.StateReady, "", true,
		},
		{"it was changed downstream", func(d *fleet.BundleDeployment) {
			d.Status.NonModified = false
			d.Status.ModifiedStatus = []fleet.ModifiedStatus{
				{Kind: "A", Namespace: "n", Name: "a"}, {Kind: "B", Name: "b", Create: true},
				{Kind: "C", Name: "c", Delete: true}, {Kind: "D", Name: "d"},
			}
		}, fleet.StateModified, "A n/a was changed; B b is missing; C c should not be there; and 1 more", true},
		{
			"a newer one is held back", func(d *fleet.BundleDeployment) { d.Spec.StagedDeploymentID = "s-a:2" }, fleet.StatePending,
			"held back by the rollout", true,
		},
		{"it is not ready", func(d *fleet.BundleDeployment) {
			d.Status.Ready = false
			d.Status.NonReadyStatus = []fleet.NonReadyStatus{
				{
					Kind: "Deployment", Namespace: "n", Name: "web", Summary: fleet.ReadinessSummary{
						Message: []string{"0 of 1 ready", "image is missing"},
					},
				},
				{Kind: "Job", Namespace: "n", Name: "j", Summary: fleet.ReadinessSummary{State: "running"}},
			}
		}, fleet.StateNotReady, "Deployment n/web: 0 of 1 ready, image is missing; Job n/j: running", false},
	} {
		d := deployment(c.change)
		if state, message, available := delivery.EffectiveState(d), Message(d),
			Available(d); state != c.state || message != c.message || available != c.available {
			t.Errorf("%s: %s, %q, available %t", c.name, state, message, available)
		}
	}
}

func TestSummarize(t *testing.T) {
	var entries []Entry
	for range 12 {
		entries = append(entries, Entry{Name: "n", State: fleet.StateNotReady, Message: "m"})
	}
	secret := deployment(func(d *fleet.BundleDeployment) {
		d.Status.ModifiedStatus = []fleet.ModifiedStatus{{Kind: "Secret", Name: "s", Patch: "hunter2"}}
	})
	entries = append(entries, Entry{Name: "z", State: fleet.StateErrApplied, Message: "e", Deployment: secret}, Entry{
		Name: "r", State: fleet.StateReady,
	})
	got := Summarize(entries)
	if got.NotReady != 12 || got.ErrApplied != 1 || got.Ready != 1 || got.DesiredReady != 14 || len(got.NonReadyResources) != 10 {
		t.Errorf("got %+v", got)
	}
	want := fleet.NonReadyResource{
		Name: "z", State: fleet.StateErrApplied, Message: "e", ModifiedStatus: []fleet.ModifiedStatus{{Kind: "Secret", Name: "s"}},
	}
	if diff := cmp.Diff(want, got.NonReadyResources[0]); diff != "" {
		t.Errorf("the worst comes first, without what is in objects (-want +got):\n%s", diff)
	}
	text := Explain("Cluster", got)
	if !strings.HasPrefix(text, "ErrApplied(1) [Cluster z: e], NotReady(12) [Clusters n, n, n and 6 more: m") {
		t.Errorf("explained as %q", text)
	}
	if Worst(got) != fleet.StateErrApplied || Worst(fleet.BundleSummary{}) != fleet.StateReady || Ready(got) != "1/14" {
		t.Errorf("worst %s, ready %s", Worst(got), Ready(got))
	}
	total := got
	Add(&total, got)
	if total.NotReady != 24 || total.DesiredReady != 28 || len(total.NonReadyResources) != 10 {
		t.Errorf("twice that is %+v", total)
	}
}

func TestALongMessageIsCut(t *testing.T) {
	const maxMessage = 400
	d := deployment(func(d *fleet.BundleDeployment) {
		d.Status.Conditions[0] = fleet.Condition{
			Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Message: strings.Repeat("ä", maxMessage),
		}
	})
	if got := Message(d); len(got) > maxMessage+len("...") || !strings.HasSuffix(got, "ä...") {
		t.Errorf("%d bytes ending in %q", len(got), got[len(got)-8:])
	}
}

func TestOnlyWhatTheHubItselfShowsWakesNobody(t *testing.T) {
	shown := func(version string, change func(*fleet.BundleDeployment)) *fleet.BundleDeployment {
		d := deployment(func(d *fleet.BundleDeployment) { d.ResourceVersion = version })
		d.Status.Display = delivery.Display(d)
		change(d)
		return d
	}
	before := deployment(func(d *fleet.BundleDeployment) { d.ResourceVersion = "1" })
	for _, c := range []struct {
		name  string
		after *fleet.BundleDeployment
		want  bool
	}{
		{"the hub's columns", shown("2", func(*fleet.BundleDeployment) {}), true},
		{"another's columns", shown("2", func(d *fleet.BundleDeployment) { d.Status.Display.State = "ErrApplied" }), false},
		{"a report with them", shown("2", func(d *fleet.BundleDeployment) { d.Status.Release = "a/b:2" }), false},
		{"something else", deployment(func(d *fleet.BundleDeployment) { d.ResourceVersion, d.Status.Release = "2", "a/b:2" }), false},
		{"nothing", before, false},
	} {
		if got := OnlyShown(before, c.after); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
