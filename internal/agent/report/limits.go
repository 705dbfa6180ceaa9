package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Limits in the schema of the report. The hub's API server refuses a report beyond them.
const (
	maxMessage      = 2048
	maxResources    = 48
	maxResourceName = 128
)

// limited leaves out resources beyond the limits of a report. Kubernetes' own resources come first,
// the others by name.
func limited(resources corev1.ResourceList) corev1.ResourceList {
	tooLong := func(name corev1.ResourceName) bool { return len(name) > maxResourceName }
	if len(resources) <= maxResources && !slices.ContainsFunc(slices.Collect(maps.Keys(resources)), tooLong) {
		return resources
	}
	names := slices.DeleteFunc(slices.SortedFunc(maps.Keys(resources), func(a, b corev1.ResourceName) int {
		return cmp.Or(strings.Count(string(a), "/")-strings.Count(string(b), "/"), strings.Compare(string(a), string(b)))
	}), tooLong)
	kept := corev1.ResourceList{}
	for _, name := range names[:min(len(names), maxResources)] {
		kept[name] = resources[name]
	}
	return kept
}
