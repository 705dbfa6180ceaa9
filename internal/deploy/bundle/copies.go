package bundle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/chartfetch"
	"github.com/muster-fleet/muster/internal/delivery/chart"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// copies returns the objects in downstreamResources for the release, from their copies in the
// member namespace. They have no namespace, so the release puts them into its own.
func (d *Deployer) copies(ctx context.Context, options fleet.BundleDeploymentOptions) ([]*unstructured.Unstructured, error) {
	var copies []*unstructured.Unstructured
	for _, resource := range options.DownstreamResources {
		copied, err := d.copied(ctx, resource)
		if err != nil {
			return nil, fmt.Errorf("reading %s %s of downstreamResources on the hub: %s", resource.Kind, resource.Name, d.Hub.Explain(err))
		}
		encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(copied)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s of downstreamResources: %w", resource.Kind, resource.Name, err)
		}
		object := &unstructured.Unstructured{Object: encoded}
		unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
		copies = append(copies, object)
	}
	return copies, nil
}

func (d *Deployer) copied(ctx context.Context, resource fleet.DownstreamResource) (runtime.Object, error) {
	metadata := metav1.ObjectMeta{Name: resource.Name}
	switch resource.Kind {
	case "Secret":
		secret, err := d.Hub.Secret(ctx, resource.Name)
		if err != nil {
			return nil, err
		}
		return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metadata, Type: secret.Type,
			Data: secret.Data}, nil
	case "ConfigMap":
		configMap, err := d.Hub.ConfigMap(ctx, resource.Name)
		if err != nil {
			return nil, err
		}
		return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metadata, Data: configMap.Data,
			BinaryData: configMap.BinaryData}, nil
	}
	return nil, fmt.Errorf("the kind %q is neither Secret nor ConfigMap", resource.Kind)
}

// fetch fetches a chart from its repository or registry, with the credentials in the Secret of the
// options.
func (d *Deployer) fetch(ctx context.Context, options fleet.HelmOptions) (*chart.Archive, error) {
	var credentials *chartfetch.Credentials
	if options.SecretName != "" {
		secret, err := d.Hub.Secret(ctx, options.SecretName)
		if err != nil {
			return nil, withReason(reasons.DownstreamResourceUnreadable,
				fmt.Errorf("reading Secret %s of helm.secretName on the hub: %s", options.SecretName, d.Hub.Explain(err)))
		}
		if credentials, err = chartfetch.ParseCredentials(secret.Data); err != nil {
			return nil, withReason(reasons.ChartUnreadable, fmt.Errorf("reading Secret %s of helm.secretName: %w", options.SecretName, err))
		}
	}
	archive, err := d.charts.Fetch(ctx, options, credentials)
	if err != nil {
		return nil, withReason(reasons.ChartUnreadable, err)
	}
	return &chart.Archive{Archive: *archive, Incomplete: options.DisableDependencyUpdate}, nil
}
