package inventory

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
)

// FuzzProperties takes properties of a member's report over. Each fits into a ClusterProfile.
func FuzzProperties(f *testing.F) {
	f.Add([]byte(`{"a":{"value":"1","observationTime":"2026-01-01T00:00:00Z"},"":{"value":"x"}}`))
	f.Add([]byte(`{"k8s.io/x":{"value":""},"y":{"value":"\u0000"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var reported map[string]clusterv1beta1.PropertyValue
		if json.Unmarshal(text, &reported) != nil {
			return
		}
		after, skipped := properties(reported, nil)
		if len(after)+len(skipped) > len(reported) {
			t.Errorf("%d properties became %d and %d", len(reported), len(after), len(skipped))
		}
		for _, property := range after {
			if property.Name == "" || utf8.RuneCountInString(property.Name) > inventory.MaxPropertyName ||
				property.Value == "" || utf8.RuneCountInString(property.Value) > inventory.MaxPropertyValue {
				t.Errorf("property %+v is taken over", property)
			}
		}
	})
}
