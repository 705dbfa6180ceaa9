package applied

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var scalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

// Scalers returns the autoscalers in a namespace. A cluster without this kind has none. An agent
// without the right to list them must not write a number of replicas.
func Scalers(ctx context.Context, member dynamic.Interface, namespace string) ([]*unstructured.Unstructured, error) {
	if namespace == "" {
		return nil, nil
	}
	list, err := member.Resource(scalers).Namespace(namespace).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("a HorizontalPodAutoscaler of namespace %s may own the replicas: give the agent the right to list them: %w",
			namespace, err)
	case err != nil:
		return nil, fmt.Errorf("listing the HorizontalPodAutoscalers of namespace %s: %w", namespace, err)
	}
	found := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		found[i] = &list.Items[i]
	}
	return found, nil
}
