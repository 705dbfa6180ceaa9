package release

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/delivery/manifest"
	"github.com/muster-fleet/muster/internal/kube"
)

// annotationFile has the file of an object, for a post-renderer.
const annotationFile = "postrenderer.helm.sh/postrender-filename"

// normalize returns the first mistake in one of the objects, before any of them is applied. It
// prepares correct objects for server-side apply.
func normalize(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		problem := manifest.Check(object)
		if problem == "" && object.GetName() == "" && !isHook(object) {
			problem = "it has no metadata.name; with a generateName, each deployment would create another object"
		}
		if problem != "" {
			name := kube.Name(object.GetKind(), object.GetNamespace(), object.GetName())
			return fmt.Errorf("%s%s: %s", strings.TrimSpace(name), fileOf(object), problem)
		}
		manifest.Normalize(object)
	}
	return nil
}

// fileOf names the file of a rendered object. Helm's path begins with the name of the chart.
func fileOf(object *unstructured.Unstructured) string {
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, "metadata", "annotations", annotationFile)
	path, _ := value.(string)
	if err != nil || path == "" {
		return ""
	}
	if _, inside, found := strings.Cut(path, "/templates/"); found {
		path = inside
	}
	return " in " + path
}
