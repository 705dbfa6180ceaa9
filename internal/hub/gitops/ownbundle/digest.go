package ownbundle

import (
	"encoding/json"
	"fmt"
	"maps"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// annotationWritten on a Bundle is the part written by its owner, as JSON.
	annotationWritten = "muster/written-by-gitops"
	// annotationDigest is the digest of the spec of a Bundle, only in the cache. The cache lacks the
	// spec itself. No object of an API server has an annotation with a space in its name.
	annotationDigest = "digest of spec"
)

// written is the part of a Bundle that its owner wrote.
type written struct {
	// Spec is the digest of the spec.
	Spec string `json:"spec"`
	// Labels are the keys of the labels.
	Labels []string `json:"labels"`
}

func writtenTo(bundle *fleet.Bundle) (w written) {
	_ = json.Unmarshal([]byte(bundle.Annotations[annotationWritten]), &w) // a Bundle without it differs
	return w
}

// Slim is the transform of the cache for Bundles: it replaces the spec by its digest. A cache may
// transform an object twice.
func Slim(o any) (any, error) {
	bundle, isBundle := o.(*fleet.Bundle)
	if !isBundle || bundle.Annotations[annotationDigest] != "" {
		return o, nil
	}
	digest, err := digestOf(&bundle.Spec)
	if err != nil {
		return nil, err
	}
	bundle.Annotations = maps.Clone(bundle.Annotations)
	if bundle.Annotations == nil {
		bundle.Annotations = map[string]string{}
	}
	bundle.Annotations[annotationDigest], bundle.Spec, bundle.ManagedFields = digest, fleet.BundleSpec{}, nil
	return bundle, nil
}

// digestOf returns the digest of a spec, the same before and after the API server has stored it.
func digestOf(spec *fleet.BundleSpec) (string, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("encoding the spec of a Bundle: %w", err)
	}
	var value map[string]any
	if err := utiljson.Unmarshal(text, &value); err != nil { // writes numbers as the API server does
		return "", fmt.Errorf("decoding the spec of a Bundle: %w", err)
	}
	if text, err = json.Marshal(value); err != nil {
		return "", fmt.Errorf("encoding the spec of a Bundle: %w", err)
	}
	return naming.Digest(text), nil
}

// Unchanged reports whether a cached Bundle still has the spec written by its owner.
func Unchanged(bundle *fleet.Bundle) bool {
	return bundle.Annotations[annotationDigest] == writtenTo(bundle).Spec
}
