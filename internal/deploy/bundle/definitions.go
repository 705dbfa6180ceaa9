package bundle

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// crds is the last comparison of the definitions in crds/ of a chart with those on the member.
type crds struct {
	// release is the compared release, with its revision.
	release string
	// noted are the digests of the definitions by name. A new map replaces it.
	noted map[string]string
	// stale is set after a change of one of them.
	stale      bool
	difference release.CRDDifference
}

// observeCRDs compares the definitions of the chart with those on the member, if one of either has
// changed since the last comparison.
func (d *Deployer) observeCRDs(ctx context.Context, watched *delivery) (release.CRDDifference, error) {
	d.mu.Lock()
	if watched.crds.release != watched.release.String() {
		watched.crds = crds{release: watched.release.String(), noted: release.NotedCRDs(watched.release.CRDs), stale: true}
	}
	noted, stale := watched.crds.noted, watched.crds.stale
	watched.crds.stale = false
	d.mu.Unlock()
	if !stale || len(noted) == 0 {
		return watched.crds.difference, nil
	}
	difference, err := d.Cluster.CompareCRDs(ctx, noted)
	if err != nil {
		d.mu.Lock()
		watched.crds.stale = true
		d.mu.Unlock()
		return difference, err
	}
	watched.crds.difference = difference
	return difference, nil
}

// definitionChanged enqueues the deployments with a definition in crds/ of their chart.
func (d *Deployer) definitionChanged(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for deployment, of := range d.deliveries {
		if _, noted := of.crds.noted[name]; noted {
			of.crds.stale = true
			d.queue.AddAfter(deployment, debounce)
		}
	}
}

// definitionEvents handles the events of CustomResourceDefinitions.
func (d *Deployer) definitionEvents() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(added any) {
			d.crdChanged()
			if object, ok := added.(metav1.Object); ok {
				d.definitionChanged(object.GetName())
			}
		},
		UpdateFunc: func(before, after any) {
			d.crdChanged()
			was, isObject := before.(metav1.Object)
			if object, ok := after.(metav1.Object); ok && (!isObject || was.GetGeneration() != object.GetGeneration()) {
				d.definitionChanged(object.GetName()) // a change of the status is none of its content
			}
		},
		DeleteFunc: func(deleted any) {
			if missed, ok := deleted.(cache.DeletedFinalStateUnknown); ok {
				deleted = missed.Obj
			}
			if object, ok := deleted.(metav1.Object); ok {
				d.definitionChanged(object.GetName())
			}
		},
	}
}

// crdSetting returns the setting of a deployment for crds/ of its chart.
func crdSetting(options fleet.BundleDeploymentOptions) string {
	if options.Helm == nil || options.Helm.CRDs == "" {
		return fleet.CRDsCreate
	}
	return options.Helm.CRDs
}
