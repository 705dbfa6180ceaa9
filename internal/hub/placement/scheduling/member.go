package scheduling

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// Member is what scheduling needs to know of a member, a MemberCluster or a Cluster.
type Member struct {
	// Name is the MemberCluster's, or <workspace>/<name> of a Cluster.
	Name string
	// Namespace is the member namespace, Epoch how often the member was revoked.
	Namespace string
	Epoch     int
	// Labels of the record.
	Labels map[string]string
	Taints []clusterv1beta1.Taint
	// Properties and Usage are what the member reports.
	Properties map[string]clusterv1beta1.PropertyValue
	Usage      clusterv1beta1.ResourceUsage
	// Namespaces are those that the member reports to have; empty if its agent does not collect them.
	// MoreNamespaces: it has others.
	Namespaces     map[string]string
	MoreNamespaces bool
	// AdmittedNamespaces are those whose ResourcePlacements the member admits;
	// AnyNamespace stands for all.
	AdmittedNamespaces []string
	// Leaving: the record is being deleted or revoked, and what the agent has applied is left to it.
	Leaving bool
	// Obstacle is why the member gets nothing new; zero if it may.
	Obstacle Obstacle
}

// AnyNamespace stands for all namespaces.
const AnyNamespace = "*"

// Admits says whether the member admits placements of a namespace. Every member admits
// ClusterResourcePlacements, which have none.
func (m *Member) Admits(namespace string) bool {
	return namespace == "" || slices.Contains(m.AdmittedNamespaces, namespace) || slices.Contains(m.AdmittedNamespaces, AnyNamespace)
}

// lacks says whether the member reports its namespaces and has not this one.
func (m *Member) lacks(namespace string) bool {
	_, has := m.Namespaces[namespace]
	return !has && len(m.Namespaces) > 0 && !m.MoreNamespaces
}

// Obstacle is why a member cannot be picked, whatever a policy says.
type Obstacle struct{ Reason, Message string }

// The prefixes of the properties that stand for the resource usage of a member.
const (
	totalPrefix       = "resources.kubernetes-fleet.io/total-"
	allocatablePrefix = "resources.kubernetes-fleet.io/allocatable-"
	availablePrefix   = "resources.kubernetes-fleet.io/available-"
)

// property returns the value of a property, and whether the member has it.
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
