package manifest

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	replicas = path{"spec", "replicas"}
	// ScalerKind is the kind of autoscalers.
	ScalerKind = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
)

// NoReplicas stands for an object without a number of replicas.
const NoReplicas = -1

// Bounds are the limits of the autoscaler of an object. Nil stands for an object without one.
type Bounds struct{ Min, Max int64 }

// Hold reports whether a number of replicas is within the limits.
func (b *Bounds) Hold(number int64) bool {
	return b != nil && number != NoReplicas && b.Min <= number && number <= b.Max
}

// Replicas returns the number of replicas in the spec of an object, or NoReplicas.
func Replicas(o *unstructured.Unstructured) int64 {
	value, _ := replicas.get(o.Object)
	switch number := value.(type) {
	case int64:
		return number
	case float64:
		return int64(number)
	}
	return NoReplicas
}

// BoundsOf returns the limits of the first autoscaler with an object as its target; nil without
// one.
func BoundsOf(scalers []*unstructured.Unstructured, o *unstructured.Unstructured) *Bounds {
	for _, scaler := range scalers {
		target, _ := path{"spec", "scaleTargetRef"}.get(scaler.Object)
		reference, _ := target.(map[string]any)
		version, _ := reference["apiVersion"].(string)
		group, err := schema.ParseGroupVersion(version)
		if reference["kind"] != o.GetKind() || reference["name"] != o.GetName() || err != nil ||
			version != "" && group.Group != o.GroupVersionKind().Group {
			continue
		}
		limit := func(field string, otherwise int64) int64 {
			switch number := valueAt(scaler, "spec", field).(type) {
			case int64:
				return number
			case float64:
				return int64(number)
			}
			return otherwise
		}
		return &Bounds{Min: limit("minReplicas", 1), Max: limit("maxReplicas", 0)}
	}
	return nil
}

func valueAt(o *unstructured.Unstructured, fields ...any) any {
	value, _ := path(fields).get(o.Object)
	return value
}

// Rescaled reports whether an object has another number of replicas than its manifest names. Only
// then its autoscaler matters.
func Rescaled(wanted, found *unstructured.Unstructured) bool {
	number := Replicas(wanted)
	return number != NoReplicas && Replicas(found) != NoReplicas && Replicas(found) != number
}

// Scalers returns the autoscalers of a namespace after a delivery. A delivered manifest replaces
// the live autoscaler of its name.
func Scalers(live, delivered []*unstructured.Unstructured, dropped func(*unstructured.Unstructured) bool) []*unstructured.Unstructured {
	after := slices.Clone(delivered)
	for _, scaler := range live {
		replaced := slices.ContainsFunc(delivered, func(d *unstructured.Unstructured) bool { return d.GetName() == scaler.GetName() })
		if !replaced && !dropped(scaler) {
			after = append(after, scaler)
		}
	}
	return after
}
