package release

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/muster-fleet/muster/internal/deploy/removal"
)

// uninstallClient is Helm's client for an uninstall. Objects without a served kind do not block it.
// It keeps failures, because Helm only logs them. It deletes the namespace of the release last,
// because the namespace holds the history.
type uninstallClient struct {
	*kube.Client
	ctx context.Context //nolint:containedctx // Helm's interface has none
	// cluster looks up the served kinds, acting deletes the objects.
	cluster, acting *Cluster
	release         ID
	failures        []error
	hooks           uninstallHooks
	owner           hookOwner
}

// Build implements kube.Interface. It validates only objects to be created, and their kind must be
// served.
func (r *uninstallClient) Build(reader io.Reader, validate bool) (kube.ResourceList, error) {
	if validate {
		return r.Client.Build(reader, validate)
	}
	resources, err := r.existing(reader)
	if err != nil {
		r.failures = append(r.failures, err)
	}
	return resources, err
}

func (r *uninstallClient) existing(reader io.Reader) (kube.ResourceList, error) {
	manifest, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	objects, err := parse(manifest)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of the release: %w", err)
	}
	var manifests []*unstructured.Unstructured
	for _, object := range objects {
		mapping, served, err := r.cluster.Find(r.ctx, object.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		if served && !isNamespace(object, r.release.Namespace) {
			object.SetAPIVersion(mapping.GroupVersionKind.GroupVersion().String())
			manifests = append(manifests, object)
		}
	}
	if len(manifests) == 0 {
		return nil, nil
	}
	encoded, err := encode(manifests)
	if err != nil {
		return nil, err
	}
	return r.Client.Build(bytes.NewReader(encoded.Bytes()), false)
}

// Delete implements kube.Interface. An object with a keep annotation stays, whether a user or its
// chart has set it. A hook is deleted regardless, to make way for the next one of its name.
func (r *uninstallClient) Delete(resources kube.ResourceList, _ metav1.DeletionPropagation) (*kube.Result, []error) {
	result, failures := &kube.Result{}, []error(nil)
	hooks, err := r.hooksToDelete(resources.Filter(ofHook))
	if err != nil {
		failures = append(failures, err)
	}
	if len(hooks) > 0 {
		result, failures = r.owner.delete(r.ctx, r.acting, hooks)
	}
	for _, info := range resources {
		if ofHook(info) {
			continue
		}
		deleted, err := drop(r.ctx, r.acting, []ID{r.release}, info, removal.ReleaseGone)
		if err != nil {
			failures = append(failures, err)
		}
		if deleted {
			result.Deleted = append(result.Deleted, info)
		}
	}
	r.failures = append(r.failures, failures...)
	return result, failures
}

func ofHook(info *resource.Info) bool {
	object, is := info.Object.(*unstructured.Unstructured)
	return is && isHook(object)
}
