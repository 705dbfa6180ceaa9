package membernamespace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// reservedPrefixes are the prefixes of labels on which fleets themselves act, reservedDomains those of which the domains below are reserved, too.
var (
	reservedPrefixes = []string{"fleet.cattle.io/", "management.cattle.io/", "kubernetes-fleet.io/", "muster/"}
	reservedDomains  = []string{".fleet.cattle.io", ".kubernetes-fleet.io"}
)

// ReservedLabel returns whether a label of a record means something to a fleet. No agent may set such a label, and no consumer of the inventory sees
// it.
func ReservedLabel(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return slices.ContainsFunc(reservedPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) ||
		slices.ContainsFunc(reservedDomains, func(reserved string) bool { return strings.HasSuffix(domain, reserved) })
}

// maxShownKey bounds what is shown of a key or value that an agent chose.
const maxShownKey = 80

// LabelProblem returns which label Kubernetes would refuse and why, or "".
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

// StampProblem returns what is wrong with the labels that a token stamps, or with those that it allows in requests, or "".
func StampProblem(spec fleet.ClusterRegistrationTokenSpec) string {
	for _, key := range slices.Sorted(maps.Keys(spec.Labels)) {
		if ReservedLabel(key) {
			return fmt.Sprintf("spec.labels: keys that begin with %s are the fleet's own, %s among them: choose another key", strings.Join(reservedPrefixes, ", "), kube.Clip(key, maxShownKey))
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
			return fmt.Sprintf("spec.allowedLabelKeys: %q is neither a label key nor a prefix such as example.com/*: %s", kube.Clip(pattern, maxShownKey), problems[0])
		}
	}
	return ""
}

// LabelRecord is kept with a Cluster, in an annotation that no agent can write.
type LabelRecord struct {
	// Token is the ClusterRegistrationToken whose labels are stamped; empty if none are.
	Token string `json:"token,omitempty"`
	// Stamped are these labels.
	Stamped map[string]string `json:"stamped,omitempty"`
	// Dropped are the labels that were asked for and not taken, each as `key: why`.
	Dropped []string `json:"dropped,omitempty"`
}

// ReadLabelRecord reads the annotation. An annotation that cannot be decoded counts as empty.
func ReadLabelRecord(cluster *fleet.Cluster) LabelRecord {
	var record LabelRecord
	if err := json.Unmarshal([]byte(cluster.Annotations[fleet.AnnotationRegistrationLabels]), &record); err != nil {
		return LabelRecord{}
	}
	return record
}

// Store writes the record into the annotations, which may be nil, and returns them.
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

// Restamp returns the labels of a Cluster that registers with a token: labels that an earlier token has stamped and nobody has changed are removed,
// and the labels of this token are set.
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
