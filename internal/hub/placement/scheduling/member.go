package scheduling

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// Member is the data of a MemberCluster or Cluster used by scheduling.
type Member struct {
	// Name is the MemberCluster's name, or <workspace>/<name> of a Cluster.
	Name string
	// Namespace is the member namespace. Epoch counts the revocations of the member.
	Namespace string
	Epoch     int
	// Labels of the membership object.
	Labels map[string]string
	Taints []clusterv1beta1.Taint
	// Properties and Usage are reported by the member.
	Properties map[string]clusterv1beta1.PropertyValue
	Usage      clusterv1beta1.ResourceUsage
	// Namespaces are reported by the member; empty if its agent does not collect them.
	// MoreNamespaces reports whether it has others.
	Namespaces     map[string]string
	MoreNamespaces bool
	// AdmittedNamespaces are the namespaces of the ResourcePlacements admitted by the member;
	// AnyNamespace stands for all.
	AdmittedNamespaces []string
	// Leaving: the membership object is being deleted or revoked, and the agent decides about
	// applied objects.
	Leaving bool
	// Cordoned: an administrator keeps new deliveries from the member.
	Cordoned bool
	// Paused: a user has paused or quarantined the member. Nothing changes on it.
	Paused bool
	// Quarantined: the member keeps its Works as they are, also if the placement is deleted.
	Quarantined bool
	// Obstacle is the reason why the member gets nothing new; zero without one.
	Obstacle Obstacle
	// Lost: the agent of the member sends no heartbeats. LastBeat is the last known one.
	Lost     bool
	LastBeat time.Time
}

// AnyNamespace stands for all namespaces.
const AnyNamespace = "*"

// Admits reports whether the member admits placements of a namespace. Every member admits
// ClusterResourcePlacements: they have no namespace.
func (m *Member) Admits(namespace string) bool {
	return namespace == "" || slices.Contains(m.AdmittedNamespaces, namespace) || slices.Contains(m.AdmittedNamespaces, AnyNamespace)
}

// lacks reports whether the member reports its namespaces without this one.
func (m *Member) lacks(namespace string) bool {
	_, has := m.Namespaces[namespace]
	return !has && len(m.Namespaces) > 0 && !m.MoreNamespaces
}

// Obstacle is a reason against picking a member, independent of the policy.
type Obstacle struct{ Reason, Message string }

// The prefixes of the properties for the resource usage of a member.
const (
	totalPrefix       = "resources.kubernetes-fleet.io/total-"
	allocatablePrefix = "resources.kubernetes-fleet.io/allocatable-"
	availablePrefix   = "resources.kubernetes-fleet.io/available-"
)

// property returns the value of a property, and reports whether the member has it.
func (m *Member) property(name string) (string, bool) {
	quantityOf := func(list corev1.ResourceList, resource string) (string, bool) {
		quantity, known := list[corev1.ResourceName(resource)]
		return quantity.String(), known
	}
	if resource, found := strings.CutPrefix(name, totalPrefix); found {
		return quantityOf(m.Usage.Capacity, resource)
	}
	if resource, found := strings.CutPrefix(name, allocatablePrefix); found {
		return quantityOf(m.Usage.Allocatable, resource)
	}
	if resource, found := strings.CutPrefix(name, availablePrefix); found {
		return quantityOf(m.Usage.Available, resource)
	}
	value, known := m.Properties[name]
	return value.Value, known
}
