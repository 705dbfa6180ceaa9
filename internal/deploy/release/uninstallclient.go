package release

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// uninstallClient is Helm's client for an uninstall. Objects whose kind is not served do not hold it up; failures are kept, because Helm only logs
// them; the namespace of the release is left for last, because the history is in it.
type uninstallClient struct {
	*kube.Client
	ctx      context.Context //nolint:containedctx // Helm's interface has none
	cluster  *Cluster
	release  ID
	failures []error
}

// Build implements kube.Interface. Only what is going to be created is validated, and that has to be of a kind that is served.
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
	var there []*unstructured.Unstructured
	for _, object := range objects {
		mapping, served, err := r.cluster.Find(r.ctx, object.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		if served && !isNamespace(object, r.release.Namespace) {
			object.SetAPIVersion(mapping.GroupVersionKind.GroupVersion().String())
			there = append(there, object)
		}
	}
	if len(there) == 0 {
		return nil, nil
	}
	encoded, err := encode(there)
	if err != nil {
		return nil, err
	}
	return r.Client.Build(bytes.NewReader(encoded.Bytes()), false)
}

// Delete implements kube.Interface.
func (r *uninstallClient) Delete(resources kube.ResourceList, policy metav1.DeletionPropagation) (*kube.Result, []error) {
	if len(resources) == 0 {
		return &kube.Result{}, nil
	}
	deleted, failures := r.Client.Delete(resources, policy)
	r.failures = append(r.failures, failures...)
	return deleted, failures
}
