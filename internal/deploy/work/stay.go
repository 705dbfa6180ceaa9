package work

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/deploy/applied"
)

// annotationTakenOver is "true" on an applied object from before its Work. The annotation stays if
// the object moves to another Work.
const annotationTakenOver = "muster/taken-over"

// stay is the reason for an object to stay on the member without its Work.
type stay string

const (
	// goes: it was created for the Work.
	goes stay = ""
	// takenOver: it holds data, and existed before the Work.
	takenOver stay = "TakenOver"
	// kept: a user annotated it with helm.sh/resource-policy: keep.
	kept stay = "Kept"
)

func stayOf(object *unstructured.Unstructured) stay {
	switch {
	case object.GetAnnotations()[annotationTakenOver] != "":
		return takenOver
	case applied.Keeps(object):
		return kept
	}
	return goes
}
