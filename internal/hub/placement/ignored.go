package placement

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/kube"
)

// maxIdleRules is the maximum number of rules in a message.
const maxIdleRules = 3

// idleRules names the rules in ignoreDifferences without a matching resource of the placement.
func (o observed) idleRules() string {
	strategy := o.spec.Strategy.ApplyStrategy
	if strategy == nil {
		return ""
	}
	var idle []string
	for i, rule := range strategy.IgnoreDifferences {
		if slices.ContainsFunc(o.resources.Objects, func(object *unstructured.Unstructured) bool {
			return rule.Selects(object.GroupVersionKind().Group, object.GetKind(), object.GetNamespace(), object.GetName())
		}) {
			continue
		}
		kind := strings.TrimSuffix(rule.Kind+"."+rule.Group, ".")
		idle = append(idle, fmt.Sprintf("applyStrategy.ignoreDifferences[%d] is for kind %s and selects no resource of this placement", i, kind))
	}
	return kube.JoinTexts(idle[:min(len(idle), maxIdleRules)], len(idle))
}
