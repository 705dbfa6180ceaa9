package hub_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// waits reports, as an agent does, that a deployment waits for other Bundles.
func waits(t *testing.T, f fixture, d fleet.BundleDeployment, says string) {
	t.Helper()
	reportDeployment(t, f, d, func(s map[string]any) {
		s["appliedDeploymentID"], s["ready"] = "", false
		s["conditions"] = []any{map[string]any{"type": "Deployed", "status": "Unknown", "reason": "WaitingForDependency", "message": says}}
	})
}

// becomes waits until the condition Ready of a Bundle has a reason and its columns a state.
func (f fixture) becomes(name, reason, state string) fleet.Bundle {
	f.t.Helper()
	var b fleet.Bundle
	f.eventually(fmt.Sprintf("Bundle %s is %s", name, reason), func() error {
		if err := f.get(&b, f.workspace, name); err != nil {
			return err
		}
		if got := kube.ReasonOf(b.Status.Conditions, fleet.ConditionReady); got != reason || b.Status.Display.State != state {
			return fmt.Errorf("it is %s, %+v", got, b.Status)
		}
		return nil
	})
	return b
}

func TestABundleThatWaitsForAnotherIsNoErrorAndNamesIt(t *testing.T) {
	f := newFixture(t)
	p := f.place("c1", nil)
	f.bundle("base", configMap+"targets: [{clusterSelector: {}}]\n")
	f.bundle("after", configMap+"targets: [{clusterSelector: {}}]\ndependsOn: [{name: base}]\n")
	const says = "waiting for Bundle base, which is WaitApplied on this cluster and must be [Ready]"
	d := p.deployment("after", there)
	waits(t, f, d, says)
	b := f.becomes("after", "WaitingForDependency", "WaitingForDependency")
	if s := b.Status.Summary; s.WaitingForDependency != 1 || s.ErrApplied != 0 || s.NonReadyResources[0].State != "WaitingForDependency" {
		t.Errorf("the summary is %+v", s)
	}
	f.untilBundle("after", "Ready", corev1.ConditionFalse, "WaitingForDependency(1) [Cluster c1: "+says+"]")
	f.untilBundle("after", "Processed", corev1.ConditionTrue)
	p.shows("after", fleet.BundleDeploymentDisplay{Deployed: "Unknown: " + says, State: "WaitingForDependency"})
	ready(t, f, p.deployment("base", there))
	ready(t, f, d)
	f.becomes("after", reasons.Ready, "Ready")
}

func TestACircleOfBundlesIsNamedAndEndsWithTheChangeOfAnyOfThem(t *testing.T) {
	f := newFixture(t)
	p := f.place("c1", nil)
	f.bundle("a", configMap+"targets: [{clusterSelector: {}}]\ndependsOn: [{name: b}]\n")
	f.untilBundle("a", "Processed", corev1.ConditionFalse, "no Bundle of workspace "+f.workspace+": b")
	waits(t, f, p.deployment("a", there), "waiting for Bundle b, which is not deployed to this cluster")
	f.becomes("a", "ErrApplied", "ErrApplied") // by itself it never ends

	f.bundle("b", configMap+"targets: [{clusterSelector: {}}]\ndependsOn: [{name: c}]\n")
	f.becomes("a", "WaitingForDependency", "WaitingForDependency")
	c := f.bundle("c", configMap+"targets: [{clusterSelector: {}}]\ndependsOn: [{name: a}]\n")
	for name, circle := range map[string]string{"a": "a → b → c → a", "b": "b → c → a → b", "c": "c → a → b → c"} {
		waits(t, f, p.deployment(name, there), "waiting")
		b := f.untilBundle(name, "Processed", corev1.ConditionFalse, "spec.dependsOn is a circle", circle)
		if got := kube.ReasonOf(b.Status.Conditions, "Processed"); got != reasons.DependencyCircle {
			t.Errorf("the reason is %s", got)
		}
		f.untilBundle(name, "Ready", corev1.ConditionFalse, "ErrApplied(1) [Cluster c1: ", circle)
	}
	f.change(c, func() { c.Spec.DependsOn = nil })
	for _, name := range []string{"a", "b", "c"} {
		f.untilBundle(name, "Processed", corev1.ConditionTrue)
	}
	f.becomes("a", "WaitingForDependency", "WaitingForDependency")
	f.check(f.Delete(context.Background(), c))
	f.untilBundle("b", "Processed", corev1.ConditionFalse, "no Bundle of workspace "+f.workspace+": c")
}

func TestAPausedBundleSaysSoAndClientsOfRancherFleetReadPending(t *testing.T) {
	f := newFixture(t)
	p := f.place("c1", nil)
	b := f.bundle("app", configMap+"targets: [{clusterSelector: {}}]\n")
	ready(t, f, p.deployment("app", there))
	f.becomes("app", reasons.Ready, "Ready")
	f.change(b, func() {
		b.Spec.Paused = true
		b.Spec.Resources = append(slices.Clone(b.Spec.Resources), fleet.BundleResource{Name: "NOTES.md", Content: "two"})
	})
	got := f.becomes("app", "Paused", "Pending")
	if s := got.Status.Summary; s.Pending != 1 || s.Paused != 1 || s.NonReadyResources[0].State != "Pending" {
		t.Errorf("the summary is %+v", s)
	}
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "Pending(1) [Cluster c1: the Bundle is paused]")
}
