package membernamespace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/facts"
	"github.com/muster-fleet/muster/internal/kube"
)

// reservedPrefixes lists label prefixes with a meaning to fleets. reservedDomains lists the
// reserved domains, including their subdomains.
var (
	reservedPrefixes = []string{"fleet.cattle.io/", "management.cattle.io/", "kubernetes-fleet.io/", "muster/"}
	reservedDomains  = []string{".fleet.cattle.io", ".kubernetes-fleet.io"}
)

// ReservedLabel reports whether a label has a meaning to a fleet. No agent may set such a label,
// and no consumer of the inventory sees it.
func ReservedLabel(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return facts.IsLabel(key) || slices.ContainsFunc(reservedPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) ||
		slices.ContainsFunc(reservedDomains, func(reserved string) bool { return strings.HasSuffix(domain, reserved) })
}

// maxShownKey bounds the shown part of an agent's key or value.
const maxShownKey = 80

// LabelProblem names the first label invalid in Kubernetes, with the cause, or returns "".
func LabelProblem(labels map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Sprintf("label key %q: %s", kube.Clip(key, maxShownKey), problems[0])
		}
		if problems := validation.IsValidLabelValue(labels[key]); len(problems) > 0 {
			return fmt.Sprintf("label %s has the value %q: %s", key, kube.Clip(labels[key], maxShownKey), problems[0])
		}
	}
	return ""
}

// StampProblem returns the first fault in the stamped or allowed labels of a token, or "".
func StampProblem(spec fleet.ClusterRegistrationTokenSpec) string {
	for _, key := range slices.Sorted(maps.Keys(spec.Labels)) {
		if ReservedLabel(key) {
			return fmt.Sprintf("spec.labels: keys that begin with %s are the fleet's own, %s among them: choose another key",
				strings.Join(reservedPrefixes, ", "), kube.Clip(key, maxShownKey))
		}
	}
	if problem := LabelProblem(spec.Labels); problem != "" {
		return "spec.labels: " + problem
	}
	for _, pattern := range spec.AllowedLabelKeys {
		key := pattern
		if prefix, all := strings.CutSuffix(pattern, "/*"); all {
			key = prefix + "/x"
		}
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Sprintf("spec.allowedLabelKeys: %q is neither a label key nor a prefix such as example.com/*: %s",
				kube.Clip(pattern, maxShownKey), problems[0])
		}
	}
	return ""
}

// LabelRecord is stored with a Cluster, in an annotation that agents cannot write.
type LabelRecord struct {
	// Token is the ClusterRegistrationToken with stamped labels; empty if there are none.
	Token string `json:"token,omitempty"`
	// Stamped holds the labels stamped by Token.
	Stamped map[string]string `json:"stamped,omitempty"`
	// Dropped lists the requested labels dropped by the hub, each as `key: why`.
	Dropped []string `json:"dropped,omitempty"`
}

// ReadLabelRecord reads the annotation. An unreadable annotation counts as empty.
func ReadLabelRecord(cluster *fleet.Cluster) LabelRecord {
	var record LabelRecord
	if err := json.Unmarshal([]byte(cluster.Annotations[fleet.AnnotationRegistrationLabels]), &record); err != nil {
		return LabelRecord{}
	}
	return record
}

// Store writes the LabelRecord into the annotations, possibly nil, and returns them.
func (r LabelRecord) Store(annotations map[string]string) (map[string]string, error) {
	if len(r.Stamped) == 0 && len(r.Dropped) == 0 {
		delete(annotations, fleet.AnnotationRegistrationLabels)
		return annotations, nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("writing the annotation %s: %w", fleet.AnnotationRegistrationLabels, err)
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[fleet.AnnotationRegistrationLabels] = string(text)
	return annotations, nil
}

// Restamp returns the labels of a Cluster for its registration with a token. It removes unchanged
// labels of an earlier token, and sets the labels of this one.
func (r LabelRecord) Restamp(labels, stamps map[string]string) map[string]string {
	after := maps.Clone(labels)
	if after == nil {
		after = map[string]string{}
	}
	for key, value := range r.Stamped {
		if after[key] == value {
			delete(after, key)
		}
	}
	maps.Copy(after, stamps)
	return after
}
