package anyform

import (
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/muster-fleet/muster/internal/naming"
)

// annotationDeployed is the digest of the deployed resources, only in the cache. The cache lacks
// the lists themselves.
const annotationDeployed = "muster/cached-deployed-digest"

// deployedFields are the fields of a status about deployed resources.
var deployedFields = []string{
	"desiredReadyClusters", "perClusterResourceCounts", "readyClusters", "resourceCounts", "resourceErrors", "resources",
}

// Slim is the transform of caches for GitRepos and HelmOps. It replaces the deployed resources, a
// long list, by a digest.
func Slim(o any) (any, error) {
	object, isMap := o.(*unstructured.Unstructured)
	if !isMap {
		return cache.TransformStripManagedFields()(o)
	}
	status, isMap := object.Object["status"].(map[string]any)
	annotations := object.GetAnnotations()
	if !isMap || annotations[annotationDeployed] != "" { // a cache may transform an object twice
		return cache.TransformStripManagedFields()(o)
	}
	digest, slim := DeployedDigest(status), maps.Clone(status)
	for _, field := range deployedFields {
		delete(slim, field)
	}
	object.Object["status"] = slim
	if digest != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationDeployed] = digest
		object.SetAnnotations(annotations)
	}
	return cache.TransformStripManagedFields()(o)
}

// DeployedDigest returns the digest of the deployed resources in a status; "" without any.
func DeployedDigest(status map[string]any) string {
	deployed := map[string]any{}
	for _, field := range deployedFields {
		switch value := status[field].(type) {
		case nil:
		case []any:
			if len(value) > 0 {
				deployed[field] = value
			}
		case map[string]any:
			if len(value) > 0 {
				deployed[field] = value
			}
		default:
			if value != int64(0) {
				deployed[field] = value
			}
		}
	}
	text, err := json.Marshal(deployed)
	if err != nil || len(deployed) == 0 {
		return ""
	}
	return naming.Digest(text)
}

// empty are the values of the fields if nothing is deployed.
var empty = map[string]any{
	"desiredReadyClusters": 0, "perClusterResourceCounts": map[string]any{}, "readyClusters": 0, "resourceCounts": map[string]any{},
	"resourceErrors": []any{}, "resources": []any{},
}

// DeployedPatch returns a JSON patch to replace the deployed resources in a status. A merge patch
// would leave former Clusters in the map.
func DeployedPatch(uid types.UID, status map[string]any) ([]byte, error) {
	patch := []map[string]any{{"op": "test", "path": "/metadata/uid", "value": uid}}
	for _, field := range deployedFields {
		value := status[field]
		if value == nil {
			value = empty[field]
		}
		patch = append(patch, map[string]any{"op": "add", "path": "/status/" + field, "value": value})
	}
	return json.Marshal(patch)
}

// CachedDigest returns the digest of the deployed resources of an object of the cache.
func CachedDigest(object *unstructured.Unstructured) string {
	return object.GetAnnotations()[annotationDeployed]
}
