package settings

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// HealthCheck sets how many results in a row change the shown health of a member.
type HealthCheck struct {
	// FailureThreshold and SuccessThreshold are numbers of results.
	FailureThreshold, SuccessThreshold int32
}

// maxThreshold is the maximum of a threshold, as in the definition of a report.
const maxThreshold = 60

// wireHealthCheck is the form of HealthCheck in the ConfigMap; missing fields mean the default.
type wireHealthCheck struct {
	FailureThreshold *int32 `json:"failureThreshold"`
	SuccessThreshold *int32 `json:"successThreshold"`
}

func (w wireHealthCheck) parse(parsed HealthCheck) (HealthCheck, error) {
	for _, threshold := range []struct {
		name        string
		value, into *int32
	}{
		{"failureThreshold", w.FailureThreshold, &parsed.FailureThreshold},
		{"successThreshold", w.SuccessThreshold, &parsed.SuccessThreshold},
	} {
		if threshold.value == nil {
			continue
		}
		if number := *threshold.value; number < 1 || number > maxThreshold {
			return HealthCheck{}, fmt.Errorf("healthCheck.%s %d: want 1 to %d", threshold.name, number, maxThreshold)
		}
		*threshold.into = *threshold.value
	}
	return parsed, nil
}

// In returns the thresholds for the Clusters of a workspace, changed by the annotations of its
// Namespace. In ignores an invalid annotation; an admission policy of the chart refuses such
// annotations.
func (h HealthCheck) In(workspace metav1.Object) HealthCheck {
	for annotation, into := range map[string]*int32{
		fleet.AnnotationFailureThreshold: &h.FailureThreshold, fleet.AnnotationSuccessThreshold: &h.SuccessThreshold,
	} {
		number, err := strconv.ParseInt(workspace.GetAnnotations()[annotation], 10, 32)
		if err == nil && number >= 1 && number <= maxThreshold {
			*into = int32(number)
		}
	}
	return h
}

// Thresholds returns the form for a report; nil if each result counts.
func (h HealthCheck) Thresholds() *clusterv1beta1.HealthCheck {
	if h.FailureThreshold <= 1 && h.SuccessThreshold <= 1 {
		return nil
	}
	return &clusterv1beta1.HealthCheck{FailureThreshold: h.FailureThreshold, SuccessThreshold: h.SuccessThreshold}
}
