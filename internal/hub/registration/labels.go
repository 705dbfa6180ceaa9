package registration

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/membership"
)

// acceptLabels returns the labels that an agent may give its Cluster, and the keys, sorted, of those that were dropped.
func acceptLabels(asked map[string]string) (accepted map[string]string, dropped []string) {
	accepted = map[string]string{}
	for key, value := range asked {
		if membership.ReservedLabel(key) && key != fleet.LabelCreatedByAgentPod {
			dropped = append(dropped, key)
			continue
		}
		accepted[key] = value
	}
	slices.Sort(dropped)
	return accepted, dropped
}

// labelProblem says which label Kubernetes would refuse and why, or "".
func labelProblem(labels map[string]string) string {
	keys := make([]string, 0, len(labels))
	for key := range labels {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Sprintf("label key %q: %s", key, problems[0])
		}
		if problems := validation.IsValidLabelValue(labels[key]); len(problems) > 0 {
			return fmt.Sprintf("label %s has the value %q: %s", key, labels[key], problems[0])
		}
	}
	return ""
}
