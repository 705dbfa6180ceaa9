package clusterapi

import (
	"encoding/json"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

const (
	// maxAnnotation bounds a copied annotation, maxCopied the copied labels or annotations.
	maxAnnotation = 4096
	maxCopied     = 64
)

// copied is the metadata that the hub has copied to a Cluster, as in its annotation.
type copied struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// wanted returns the metadata to copy from a cluster of Cluster API. Keys with a meaning to the
// fleet are never copied, because the author of that cluster may have no right to set them.
func wanted(rule settings.ClusterAPI, from *unstructured.Unstructured) copied {
	w := copied{Labels: map[string]string{}, Annotations: map[string]string{}}
	for key, value := range from.GetLabels() {
		if covers(rule.Labels, key) && len(w.Labels) < maxCopied {
			w.Labels[key] = value
		}
	}
	for key, value := range from.GetAnnotations() {
		if covers(rule.Annotations, key) && len(value) <= maxAnnotation && len(w.Annotations) < maxCopied {
			w.Annotations[key] = value
		}
	}
	class := classOf(from)
	if rule.ClassLabel != "" && class != "" && !reserved(rule.ClassLabel) && len(validation.IsValidLabelValue(class)) == 0 {
		w.Labels[rule.ClassLabel] = class
	}
	return w
}

// classOf returns the name of the ClusterClass, from the field of either version of the API.
func classOf(from *unstructured.Unstructured) string {
	for _, path := range [][]string{{"spec", "topology", "classRef", "name"}, {"spec", "topology", "class"}} {
		if name, _, _ := unstructured.NestedString(from.Object, path...); name != "" {
			return name
		}
	}
	return ""
}

func covers(keys []string, key string) bool {
	if reserved(key) {
		return false
	}
	for _, allowed := range keys {
		if prefix, all := strings.CutSuffix(allowed, "*"); allowed == key || all && strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func reserved(key string) bool {
	return membernamespace.ReservedLabel(key) || strings.HasPrefix(key, fleet.LabelPrefixStamped) ||
		strings.HasPrefix(key, "kubectl.kubernetes.io/") || key == LabelClusterName
}

// carry replaces the metadata that an earlier reconcile has copied. It reports whether any differs.
// A label or annotation set or changed by a user stays.
func carry(cluster client.Object, w copied) (changed bool) {
	before := copied{}
	if err := json.Unmarshal([]byte(cluster.GetAnnotations()[fleet.AnnotationFromClusterAPI]), &before); err != nil {
		before = copied{} // there is none, or a user has edited it: everything counts as the user's
	}
	labels := replaced(cluster.GetLabels(), before.Labels, w.Labels)
	annotations := replaced(cluster.GetAnnotations(), before.Annotations, w.Annotations)
	mark := ""
	if len(w.Labels)+len(w.Annotations) > 0 {
		text, err := json.Marshal(w)
		if err != nil {
			panic(err) // texts
		}
		mark = string(text)
	}
	if delete(annotations, fleet.AnnotationFromClusterAPI); mark != "" {
		annotations[fleet.AnnotationFromClusterAPI] = mark
	}
	changed = !maps.Equal(labels, cluster.GetLabels()) || !maps.Equal(annotations, cluster.GetAnnotations())
	cluster.SetLabels(labels)
	cluster.SetAnnotations(annotations)
	return changed
}

// replaced returns values with the wanted ones in place of those copied before. It leaves out what
// has another value by now.
func replaced(values, before, w map[string]string) map[string]string {
	after := map[string]string{}
	maps.Copy(after, values)
	for key, value := range before {
		if after[key] == value && !reserved(key) {
			delete(after, key)
		}
	}
	for key, value := range w {
		if _, users := after[key]; !users {
			after[key] = value
		}
	}
	return after
}
