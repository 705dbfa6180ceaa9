package view

import (
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// Fact is a fact about a member, as its agent reports it.
type Fact struct{ Name, Value string }

// Facts returns the facts about a member by name.
func Facts(record client.Object) (facts []Fact) {
	properties := propertiesOf(record)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		facts = append(facts, Fact{name, properties[name].Value})
	}
	return facts
}

func propertiesOf(record client.Object) map[string]clusterv1beta1.PropertyValue {
	switch o := record.(type) {
	case *fleet.Cluster:
		return o.Status.Properties
	case *clusterv1beta1.MemberCluster:
		return o.Status.Properties
	}
	return nil
}

// property returns the value of a fact about a member, or Nothing.
func property(record client.Object, name string) string { return Or(propertiesOf(record)[name].Value) }
