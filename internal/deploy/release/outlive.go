package release

import (
	"slices"
	"strings"

	helm "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-fleet/muster/internal/deploy/applied"
)

// secretKind is the kind of generated data of a hook, such as a password.
var secretKind = schema.GroupKind{Kind: "Secret"}

// outlives reports whether an object stays after its release is removed. As with Helm, a hook stays
// if it holds data and is not deleted after its success. Other hooks are removed with the release.
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
