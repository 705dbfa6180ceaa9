package bundle

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// maxListed limits the objects kept of a report. Fewer are ever shown.
const maxListed = 5

// newValuesCache returns a cache of the metadata of the Secrets with the values of Bundles.
func newValuesCache(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	return controller.NewCache(ctx, mgr, "the values of Bundles", map[client.Object]cache.ByObject{
		kube.CoreMetadata("Secret"): {Field: fields.OneTermEqualSelector("type", fleet.SecretTypeBundleValues)},
	})
}

// WithoutResources keeps the resources of Bundles, megabytes each, out of the cache: they are
// read once per change.
func WithoutResources(o any) (any, error) {
	if b, ok := o.(*fleet.Bundle); ok {
		b.Spec.Resources = nil
		delete(b.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return cache.TransformStripManagedFields()(o)
}

// cachedDigest is the cache's annotation for the digest of a deployment's dropped fields. No
// object of an API server has an annotation with a space in its name.
const cachedDigest = "digest of options"

// digestOf returns the digest of a spec, used to detect an edit under the same deployment ID. It
// leaves out the separately compared fields.
func digestOf(spec fleet.BundleDeploymentSpec) (string, error) {
	spec.StagedOptions, spec.StagedDeploymentID, spec.DeploymentID = fleet.BundleDeploymentOptions{}, "", ""
	spec.Paused, spec.OffSchedule, spec.DependsOn, spec.DownstreamResourcesGeneration = false, false, nil, 0
	text, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("encoding a deployment: %w", err)
	}
	return naming.Digest(text)[:32], nil
}

// fromSource reports whether a deployment comes from a GitRepo or HelmOp with a list of its
// resources in the status.
func fromSource(d *fleet.BundleDeployment) bool {
	return d.Labels[fleet.LabelRepoName] != "" || d.Labels[fleet.LabelHelmOpName] != ""
}

// WithoutOptions drops fields without influence on decisions from the cache: options, except for
// their digest, and long lists of objects. A cache may transform an object twice.
func WithoutOptions(o any) (any, error) {
	if d, ok := o.(*fleet.BundleDeployment); ok {
		if d.Annotations[cachedDigest] == "" {
			digest, err := digestOf(d.Spec)
			if err != nil {
				return nil, err
			}
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, cachedDigest, digest)
		}
		d.Spec.Options, d.Spec.StagedOptions = fleet.BundleDeploymentOptions{}, fleet.BundleDeploymentOptions{}
		d.Spec.CorrectDrift, d.Spec.HelmChartOptions = nil, nil
		if fromSource(d) {
			d.Status.Resources = rollup.Shared(d.Status.Resources)
		} else {
			d.Status.Resources = nil
		}
		d.Status.ModifiedStatus = append([]fleet.ModifiedStatus(nil), d.Status.ModifiedStatus[:min(len(d.Status.ModifiedStatus), maxListed)]...)
		for i := range d.Status.ModifiedStatus {
			d.Status.ModifiedStatus[i].Patch = ""
		}
		d.Status.NonReadyStatus = rollup.Clipped(d.Status.NonReadyStatus, maxListed)
	}
	return cache.TransformStripManagedFields()(o)
}
