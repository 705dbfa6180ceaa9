package work

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/deploy/applied"
)

// annotationTakenOver on an applied object, "true", says that the member had it before. The annotation
// stays when the object moves to another Work.
const annotationTakenOver = "muster/taken-over"

// stay is why an object stays on the member when its Work is gone, or has it no more.
type stay string

const (
	// goes: it was made for the Work.
	goes stay = ""
	// takenOver: it holds data, and was there before the Work.
	takenOver stay = "TakenOver"
	// kept: somebody has annotated it with helm.sh/resource-policy: keep.
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
