package scheduling

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// Member is what picking needs to know of a member, whichever record it has.
type Member struct {
	// Name is the MemberCluster's, or <workspace>/<name> of a Cluster.
	Name string
	// Namespace is the member namespace.
	Namespace string
	// Labels of the record.
	Labels map[string]string
	Taints []clusterv1beta1.Taint
	// Properties and Usage are what the member reports.
	Properties map[string]clusterv1beta1.PropertyValue
	Usage      clusterv1beta1.ResourceUsage
	// Leaving: the record is being deleted. What is there goes its own way.
	Leaving bool
	// Obstacle is why the member is not given anything new; empty if it may be.
	Obstacle Obstacle
}

// Obstacle keeps new work from a member, whatever a policy says.
type Obstacle struct{ Reason, Message string }

// The prefixes of the properties that stand for what a member reports of its resources.
const (
	totalPrefix       = "resources.kubernetes-fleet.io/total-"
	allocatablePrefix = "resources.kubernetes-fleet.io/allocatable-"
	availablePrefix   = "resources.kubernetes-fleet.io/available-"
)

// property returns the value of a property as text, and whether the member has it.
func (m *Member) property(name string) (string, bool) {
	of := func(list corev1.ResourceList, resource string) (string, bool) {
		quantity, known := list[corev1.ResourceName(resource)]
		return quantity.String(), known
	}
	if resource, found := strings.CutPrefix(name, totalPrefix); found {
		return of(m.Usage.Capacity, resource)
	}
	if resource, found := strings.CutPrefix(name, allocatablePrefix); found {
		return of(m.Usage.Allocatable, resource)
	}
	if resource, found := strings.CutPrefix(name, availablePrefix); found {
		return of(m.Usage.Available, resource)
	}
	value, known := m.Properties[name]
	return value.Value, known
}
