package release

import (
	"slices"
	"strings"

	helm "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-fleet/muster/internal/deploy/applied"
)

// secretKind holds what a hook has generated, such as a password.
var secretKind = schema.GroupKind{Kind: "Secret"}

// outlives says whether an object stays when its release is removed, as Helm leaves it: a hook that
// holds data and is not to go when it has succeeded. Other hooks go with the release.
func outlives(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind().GroupKind()
	if !isHook(object) || !applied.HoldsData(kind) && kind != secretKind {
		return false
	}
	policies := strings.Split(object.GetAnnotations()[helm.HookDeleteAnnotation], ",")
	return kind == crdKind || !slices.ContainsFunc(policies, func(policy string) bool {
		return strings.EqualFold(strings.TrimSpace(policy), string(helm.HookSucceeded))
	})
}
