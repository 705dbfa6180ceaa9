package lifecycle

import (
	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// RollUpProperties returns the reported properties for a status. A property with the same value
// keeps its earlier time, because a new time alone justifies no write.
func RollUpProperties(reported, before map[string]clusterv1beta1.PropertyValue) map[string]clusterv1beta1.PropertyValue {
	if len(reported) == 0 {
		return nil
	}
	after := make(map[string]clusterv1beta1.PropertyValue, len(reported))
	for name, value := range reported {
		if old, known := before[name]; known && old.Value == value.Value {
			value = old
		}
		after[name] = value
	}
	return after
}
