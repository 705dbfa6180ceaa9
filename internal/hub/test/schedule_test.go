package hub_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	always = "* * * * * *"
	never  = "0 0 0 31 2 ?" // there is no such day
)

// schedule makes a Schedule with windows of an hour for the Clusters that a selector selects.
func (f fixture) schedule(name, cron string, labels map[string]string) *fleet.Schedule {
	f.t.Helper()
	s := &fleet.Schedule{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}}
	s.Spec = fleet.ScheduleSpec{Schedule: cron, Duration: "1h"}
	s.Spec.Targets.Clusters = []fleet.ScheduleTarget{{ClusterSelector: &metav1.LabelSelector{MatchLabels: labels}}}
	f.check(f.Create(context.Background(), s))
	return s
}

// window waits until the window of a Cluster is as said.
func (p place) window(scheduled, open bool) *fleet.Cluster {
	p.t.Helper()
	cluster := &fleet.Cluster{}
	p.eventually(fmt.Sprintf("Cluster %s: scheduled %t, open %t", p.name, scheduled, open), func() error {
		if err := p.get(cluster, p.workspace, p.name); err != nil {
			return err
		}
		if s := cluster.Status; s.Scheduled != scheduled || s.ActiveSchedule != open || (s.Window != nil) != scheduled {
			return fmt.Errorf("status is %+v, window %+v", s.Scheduled, s.Window)
		}
		return nil
	})
	return cluster
}

// grow changes the content of a Bundle.
func (f fixture) grow(b *fleet.Bundle) {
	f.t.Helper()
	f.change(b, func() {
		b.Spec.Resources = append(slices.Clone(b.Spec.Resources), fleet.BundleResource{Name: fmt.Sprintf("N%d.md", len(b.Spec.Resources))})
	})
}

func TestAClosedScheduleHoldsAnUpdateBackUntilItOpens(t *testing.T) {
	f := newFixture(t)
	there1, other := f.place("c1", map[string]string{"env": "prod"}), f.place("c2", map[string]string{"env": "test"})
	b := f.bundle("app", configMap+"targets: [{clusterSelector: {}}]\n")
	first := there1.deployment("app", there)
	ready(t, f, first)
	ready(t, f, other.deployment("app", there))
	s := f.schedule("nights", never, map[string]string{"env": "prod"})
	there1.window(true, false)
	other.window(false, false)
	there1.deployment("app", func(d fleet.BundleDeployment) error {
		if !d.Spec.OffSchedule {
			return fmt.Errorf("it is not off its schedule")
		}
		return nil
	})
	f.becomes("app", reasons.Ready, "Ready") // nothing waits

	f.grow(b)
	ready(t, f, other.deployment("app", func(d fleet.BundleDeployment) error {
		if d.Spec.DeploymentID == first.Spec.DeploymentID || d.Spec.OffSchedule {
			return fmt.Errorf("it has %+v", d.Spec)
		}
		return nil
	}))
	f.becomes("app", "OutsideWindow", "Pending")
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "Pending(1) [Cluster c1: outside of the windows of its Schedules, ", "none opens")
	held := there1.deployment("app", settled)
	if held.Spec.DeploymentID != first.Spec.DeploymentID || held.Spec.StagedDeploymentID == first.Spec.DeploymentID {
		t.Errorf("it was changed outside of its window: %+v", held.Spec)
	}
	there1.eventually("the Cluster says so", func() error {
		cluster := there1.window(true, false)
		if reason := kube.ReasonOf(cluster.Status.Conditions, fleet.ConditionReady); cluster.Status.Summary.OutsideWindow != 1 {
			return fmt.Errorf("it is %s: %+v", reason, cluster.Status.Summary)
		}
		return nil
	})

	f.change(s, func() { s.Spec.Schedule = always })
	there1.window(true, true)
	ready(t, f, there1.deployment("app", func(d fleet.BundleDeployment) error {
		if d.Spec.DeploymentID != held.Spec.StagedDeploymentID || d.Spec.OffSchedule {
			return fmt.Errorf("it has %+v", d.Spec)
		}
		return nil
	}))
	f.becomes("app", reasons.Ready, "Ready")
	f.check(f.Delete(context.Background(), s))
	there1.window(false, false)
}

func TestAWindowOpensByItself(t *testing.T) {
	f := newFixture(t)
	p := f.place("c1", nil)
	start := time.Now().UTC().Add(15 * time.Second)
	s := f.schedule("soon", start.Format("5 4 15 2 1 ?"), nil)
	cluster := p.window(true, false)
	if opens := cluster.Status.Window.Opens; opens == nil || opens.Unix() != start.Unix() {
		t.Fatalf("it opens at %s, not at %s", opens, start)
	}
	p.window(true, true)
	if time.Now().Before(start.Truncate(time.Second)) {
		t.Error("it opened too early")
	}
	f.eventually("the Schedule says so", func() error {
		if err := f.get(s, f.workspace, s.Name); err != nil {
			return err
		}
		if !s.Status.Active || s.Status.NextStartTime == nil || kube.ReasonOf(s.Status.Conditions, fleet.ConditionReady) != reasons.Ready {
			return fmt.Errorf("status is %+v", s.Status)
		}
		return nil
	})
}

func TestAnInvalidScheduleIsClosedAndNamesTheField(t *testing.T) {
	f := newFixture(t)
	p := f.place("c1", map[string]string{"env": "prod"})
	s := f.schedule("broken", "0 0 24 * * ?", nil)
	p.window(true, false)
	f.eventually("the Schedule says so", func() error {
		if err := f.get(s, f.workspace, s.Name); err != nil {
			return err
		}
		c := kube.FindCondition(s.Status.Conditions, fleet.ConditionReady)
		if c == nil || c.Status != corev1.ConditionFalse || c.Reason != reasons.Invalid {
			return fmt.Errorf("status is %+v", s.Status)
		}
		return nil
	})
	// One open window is enough, and a label of the Cluster decides.
	f.schedule("open", always, map[string]string{"env": "prod"})
	cluster := p.window(true, true)
	f.change(cluster, func() { cluster.Labels["env"] = "test" })
	p.window(true, false)
}

// TestAScheduleHoldsNoRemovalBack: what a user takes away goes at once, in a window or not.
func TestAScheduleHoldsNoRemovalBack(t *testing.T) {
	f := newFixture(t)
	p, leaving := f.place("c1", nil), f.place("c2", nil)
	b := f.bundle("app", configMap+"targets: [{clusterSelector: {}}]\n")
	ready(t, f, p.deployment("app", there))
	f.schedule("closed", never, nil)
	p.window(true, false)
	f.check(f.Delete(context.Background(), leaving.window(true, false)))
	f.eventually("the Cluster has left", func() error { return gone(f.get(&fleet.Cluster{}, f.workspace, "c2")) })
	f.check(f.Delete(context.Background(), b))
	p.without("app")
}

// TestAScheduleActsOnlyInItsWorkspace: an editor of Schedules closes no Cluster of others.
func TestAScheduleActsOnlyInItsWorkspace(t *testing.T) {
	f := newFixture(t)
	n := f.neighbour()
	p, theirs := f.place("c1", nil), n.place("c1", nil)
	editor, _ := n.userWith(n.workspace, "editor", rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"schedules"}, Verbs: []string{"create"},
	})
	s := &fleet.Schedule{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "closed"}}
	s.Spec = fleet.ScheduleSpec{Schedule: never, Duration: "1h"}
	s.Spec.Targets.Clusters = []fleet.ScheduleTarget{{ClusterSelector: &metav1.LabelSelector{}}}
	if err := editor.Create(context.Background(), s.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("a Schedule in another workspace: %v", err)
	}
	s.Namespace = n.workspace
	f.check(editor.Create(context.Background(), s))
	theirs.window(true, false)
	p.window(false, false)
	b := f.bundle("app", configMap+"targets: [{clusterSelector: {}}]\n")
	if d := p.deployment("app", there); d.Spec.OffSchedule {
		t.Errorf("Bundle %s is held back by the Schedule of another workspace", b.Name)
	}
}
