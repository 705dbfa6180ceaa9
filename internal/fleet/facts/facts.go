// Package facts names the facts reported by agents about their members, and turns them into labels.
//
// A fact is a property in a report. Names of the agent's own facts contain a slash, and names of
// custom facts do not. Its invariant: no custom fact has a name of the agent, Kubernetes or a
// fleet. No label of a fact is outside the domains of facts.
package facts

import (
	"maps"
	"slices"
	"strings"
)

// The facts of the agent, read from the nodes. The version also shows the distribution. Commas
// separate the entries of lists.
const (
	Provider      = prefix + "provider"
	Region        = prefix + "region"
	Zones         = prefix + "zones"
	Distribution  = prefix + "distribution"
	Architectures = prefix + "architectures"
	NodePools     = prefix + "node-pools"
	// ExtendedResources lists resources beside Kubernetes' own, such as nvidia.com/gpu=8.
	ExtendedResources = prefix + "extended-resources"

	// KubernetesVersion and NodeCount have the names of KubeFleet's agents.
	KubernetesVersion = "k8s.io/k8s-version"
	NodeCount         = "kubernetes-fleet.io/node-count"

	prefix = "muster/"
)

// NodePoolCount returns the name of the property with the number of nodes in a pool.
func NodePoolCount(pool string) string { return NodePools + "/" + pool + "/count" }

// InstanceTypeCount returns the name of the property with the number of nodes of an instance type.
func InstanceTypeCount(instanceType string) string {
	return prefix + "instance-types/" + instanceType + "/count"
}

// SKUCount returns the same property's name from KubeFleet's agents on Azure.
func SKUCount(sku string) string { return "kubernetes.azure.com/vm-sizes/" + sku + "/count" }

// The limits of custom facts, in entries and bytes.
const (
	MaxCustom      = 32
	MaxCustomName  = 63
	MaxCustomValue = 256
)

// The names of KEP-2149 for the identity of a cluster and its ClusterSet, the only custom facts
// under a reserved domain.
const (
	ClusterID  = "cluster.clusterset.k8s.io"
	ClusterSet = "clusterset.k8s.io"
)

// reserved lists the domains of the agent, of fleets, and of Kubernetes (KEP-2149).
var reserved = []string{"muster", "muster-fleet.github.io", "k8s.io", "kubernetes.io", "kubernetes-fleet.io", "cattle.io", "azure.com"}

// Admits reports whether a user of the member may report a custom fact.
func Admits(name, value string) bool {
	switch {
	case name == "", len(name) > MaxCustomName, len(value) > MaxCustomValue, strings.Contains(name, "/"), value == "":
		return false
	case name == ClusterID, name == ClusterSet:
		return true
	}
	return !slices.ContainsFunc(reserved, func(domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) })
}

// Custom returns the custom facts permitted in a report: the first of them, by name.
func Custom(all map[string]string) map[string]string {
	admitted := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(admitted) < MaxCustom && Admits(name, all[name]) {
			admitted[name] = all[name]
		}
	}
	return admitted
}

// maxList bounds the value of a list, in bytes.
const maxList = 512

// List returns the value of a fact with several entries. A long list ends with dots.
func List(entries []string) string {
	var list strings.Builder
	for i, entry := range entries {
		if i > 0 {
			list.WriteByte(',')
		}
		if list.Len()+len(entry) > maxList {
			return list.String() + more
		}
		list.WriteString(entry)
	}
	return list.String()
}

// more ends a shortened list.
const more = "..."
