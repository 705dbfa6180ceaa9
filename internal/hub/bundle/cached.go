package bundle

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// maxListed is how many objects of a report are kept: more than are ever shown.
const maxListed = 5

// WithoutResources keeps the resources of Bundles, megabytes each, out of the cache: they are read once per change.
func WithoutResources(o any) (any, error) {
	if b, ok := o.(*fleet.Bundle); ok {
		b.Spec.Resources = nil
		delete(b.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return cache.TransformStripManagedFields()(o)
}

// WithoutOptions keeps what nobody decides on out of the cache: options, which the deployment ID stands for, and long lists of objects.
func WithoutOptions(o any) (any, error) {
	if d, ok := o.(*fleet.BundleDeployment); ok {
		d.Spec.Options, d.Spec.StagedOptions = fleet.BundleDeploymentOptions{}, fleet.BundleDeploymentOptions{}
		d.Spec.CorrectDrift, d.Spec.HelmChartOptions = nil, nil
		d.Status.Resources = nil
		d.Status.ModifiedStatus = append([]fleet.ModifiedStatus(nil), d.Status.ModifiedStatus[:min(len(d.Status.ModifiedStatus), maxListed)]...)
		for i := range d.Status.ModifiedStatus {
			d.Status.ModifiedStatus[i].Patch = ""
		}
		d.Status.NonReadyStatus = append([]fleet.NonReadyStatus(nil), d.Status.NonReadyStatus[:min(len(d.Status.NonReadyStatus), maxListed)]...)
	}
	return cache.TransformStripManagedFields()(o)
}
