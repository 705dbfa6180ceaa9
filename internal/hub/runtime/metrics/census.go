// Package metrics counts requests and Bundles by their states in muster get, and the held removals.
// Alerts then show an administrator the failing objects and the ones waiting for a decision.
//
// Metrics counts the objects in the hub's cache at scrape time, and writes nothing.
package metrics

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/runtime/anyform"
	"github.com/muster-fleet/muster/internal/ui/view"
)

var (
	requestsMetric = prometheus.NewDesc("muster_hub_requests",
		"ClusterRegistrations by state. Pending requests wait for an approval or a denial.", []string{"state"}, nil)
	bundlesMetric = prometheus.NewDesc("muster_hub_bundles", "Bundles by their worst state on a Cluster.", []string{"state"},
		nil)
	heldMetric = prometheus.NewDesc("muster_hub_removals_held", "Bundles and placements waiting for the confirmation of a removal.",
		[]string{"kind"}, nil)
	sourcesMetric = prometheus.NewDesc("muster_hub_sources_failing",
		"GitRepos and HelmOps with a repository, commit or chart that cannot be used.", []string{"kind"}, nil)
)

// Census is a collector for Prometheus.
type Census struct {
	client.Reader
	// Sources: the hub has a program that reads GitRepos and HelmOps.
	Sources bool
}

// Describe implements prometheus.Collector.
func (c Census) Describe(into chan<- *prometheus.Desc) {
	into <- requestsMetric
	into <- bundlesMetric
	into <- heldMetric
	into <- sourcesMetric
}

// Collect implements prometheus.Collector.
func (c Census) Collect(into chan<- prometheus.Metric) {
	c.count(into, requestsMetric, &fleet.ClusterRegistrationList{}, view.StateNew, string(fleet.RegistrationWaiting),
		string(fleet.RegistrationPending),
		string(fleet.RegistrationConflict), string(fleet.RegistrationDenied), string(fleet.RegistrationGranted))
	c.count(into, bundlesMetric, &fleet.BundleList{}, view.StateNew, string(fleet.StateErrApplied), string(fleet.StateWaitApplied),
		string(fleet.StateModified),
		string(fleet.StateOutOfSync), string(fleet.StatePending), string(fleet.StateNotReady), string(fleet.StateWaitingForDependency),
		string(fleet.StateOutsideWindow), string(fleet.StatePaused), view.StateWaitingForApproval, string(fleet.StateReady))
	c.countHeld(into, "Bundle", &fleet.BundleList{})
	c.countHeld(into, "ClusterResourcePlacement", &placement.ClusterResourcePlacementList{})
	c.countHeld(into, "ResourcePlacement", &placement.ResourcePlacementList{})
	if c.Sources {
		c.countSources(into, "GitRepo")
		c.countSources(into, "HelmOp")
	}
}

// each calls a function with each object of a kind.
func (c Census) each(list client.ObjectList, do func(client.Object)) error {
	if err := c.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the counted objects: %w", err)
	}
	return meta.EachListItem(list, func(o runtime.Object) error {
		do(o.(client.Object))
		return nil
	})
}

// countHeld counts the objects of a kind with a removal to confirm.
func (c Census) countHeld(into chan<- prometheus.Metric, kind string, list client.ObjectList) {
	held := 0
	err := c.each(list, func(o client.Object) {
		if _, value := view.HeldRemoval(o); value != "" {
			held++
		}
	})
	if err != nil {
		into <- prometheus.NewInvalidMetric(heldMetric, err)
		return
	}
	into <- prometheus.MustNewConstMetric(heldMetric, prometheus.GaugeValue, float64(held), kind)
}

// countSources counts the GitRepos or HelmOps whose source the program could not use last.
func (c Census) countSources(into chan<- prometheus.Metric, kind string) {
	failing := 0
	err := c.each(anyform.List(kind), func(o client.Object) {
		if failed, _, _ := unstructured.NestedBool(o.(*unstructured.Unstructured).Object, "status", "display", "error"); failed {
			failing++
		}
	})
	if err != nil {
		into <- prometheus.NewInvalidMetric(sourcesMetric, err)
		return
	}
	into <- prometheus.MustNewConstMetric(sourcesMetric, prometheus.GaugeValue, float64(failing), kind)
}

// count counts objects by state. It includes states without objects, so alerts see them end.
func (c Census) count(into chan<- prometheus.Metric, metric *prometheus.Desc, list client.ObjectList, states ...string) {
	counts := map[string]int{}
	for _, state := range states {
		counts[state] = 0
	}
	if err := c.each(list, func(o client.Object) { counts[view.State(o)]++ }); err != nil {
		into <- prometheus.NewInvalidMetric(metric, err)
		return
	}
	for state, n := range counts {
		into <- prometheus.MustNewConstMetric(metric, prometheus.GaugeValue, float64(n), state)
	}
}
