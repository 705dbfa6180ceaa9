package hub_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// TestAnAgentThatReplacesItselfStaysReady: for a moment, only the condition AgentUpToDate shows the
// update. The Cluster, the Bundle and the deployment cost no writes for a state that passes.
func TestAnAgentThatReplacesItselfStaysReady(t *testing.T) {
	f := newFixture(t)
	m := f.managed("replaces")
	first := m.sent("")
	ready(t, f.Client, first)
	m.says(m.name, "UpToDate")
	var cluster fleet.Cluster
	f.eventually("its own Bundle counts as ready", func() error {
		if err := f.get(&cluster, f.workspace, m.name); err != nil {
			return err
		}
		if s := cluster.Status.Summary; s.Ready != 1 || s.DesiredReady != 1 {
			return fmt.Errorf("%d of %d are", s.Ready, s.DesiredReady)
		}
		return nil
	})
	unready := m.unready()
	f.change(&cluster, func() { cluster.Spec.AgentEnvVars = []corev1.EnvVar{{Name: "A", Value: "b"}} })
	second := m.sent(first.Labels[fleet.LabelAgent])
	m.says(m.name, "Updating")
	time.Sleep(3 * time.Second) // longer than the hub gathers reports
	reportDeployment(t, f.Client, second, func(s map[string]any) {
		s["display"] = map[string]any{"deployed": "True", "state": "Ready"} // as Muster's agent
	})
	m.says(m.name, "UpToDate")
	for _, state := range unready() {
		t.Errorf("during the update, %s", state)
	}
}

// unready watches a Cluster, its agent's Bundle and its deployment. It returns a function for the
// states that were not ready.
func (m managed) unready() func() []string {
	m.t.Helper()
	var mu sync.Mutex
	var states []string
	for _, list := range []client.ObjectList{&fleet.ClusterList{}, &fleet.BundleList{}, &fleet.BundleDeploymentList{}} {
		namespace := m.workspace
		if _, deployments := list.(*fleet.BundleDeploymentList); deployments {
			namespace = naming.MemberNamespace(m.workspace, m.name)
		}
		events := m.follow(list, client.InNamespace(namespace))
		go func() {
			for event := range events {
				mu.Lock()
				states = append(states, stateUnlessReady(event.Object, m)...)
				mu.Unlock()
			}
		}()
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return states
	}
}

// stateUnlessReady returns the shown state of an object of an agent, unless it is ready.
func stateUnlessReady(object any, m managed) []string {
	switch o := object.(type) {
	case *fleet.Cluster:
		if s := o.Status.Summary; o.Name == m.name && s.Ready != s.DesiredReady {
			return []string{fmt.Sprintf("the Cluster had %d of %d Bundles ready, %s", s.Ready, s.DesiredReady,
				kube.ReasonOf(o.Status.Conditions, fleet.ConditionReady))}
		}
	case *fleet.Bundle:
		if o.Name == m.bundleName() && o.Status.Display.State != "Ready" {
			return []string{"the Bundle was " + o.Status.Display.State}
		}
	case *fleet.BundleDeployment:
		if o.Name == m.bundleName() && o.Status.Display.State != "Ready" {
			return []string{"the deployment was " + o.Status.Display.State}
		}
	}
	return nil
}
