package release

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// removeNamespace deletes the namespace of a release that was deployed to take it along, if it was made for this release and holds nothing
// of anybody else's. Otherwise it says why the namespace stays.
func (c *Cluster) removeNamespace(ctx context.Context, s Summary) (stays string, err error) {
	if !s.DeleteNamespace {
		return "", nil
	}
	if c.mayNotGo(s.Namespace) {
		return fmt.Sprintf("namespace %s stays: no Bundle may take it along", s.Namespace), nil
	}
	found, err := c.Kube.CoreV1().Namespaces().Get(ctx, s.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading namespace %s of release %s: %w", s.Namespace, s, err)
	case found.DeletionTimestamp != nil:
		return "", nil
	case found.Annotations[annotationMadeFor] != madeFor(s.Owner()):
		return fmt.Sprintf("namespace %s stays: it was not made for this release; delete it by hand if nobody needs it", s.Namespace), nil
	}
	held, err := c.holds(ctx, s.Namespace)
	if err != nil {
		return "", fmt.Errorf("looking for what else is in namespace %s of release %s, which is to go with it: %w", s.Namespace, s, err)
	}
	if held != "" {
		return fmt.Sprintf("namespace %s stays: it holds %s, which is not of this release", s.Namespace, held), nil
	}
	acting, err := c.As(s.ServiceAccount)
	if err != nil {
		return "", err
	}
	err = acting.Kube.CoreV1().Namespaces().Delete(ctx, s.Namespace, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &found.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("deleting namespace %s of release %s: %w", s.Namespace, s, err)
	}
	return "", nil
}

// holds names the first object in a namespace that neither Kubernetes put there nor goes by itself.
func (c *Cluster) holds(ctx context.Context, namespace string) (string, error) {
	kinds, err := discovery.ServerPreferredNamespacedResources(c.live)
	if err != nil {
		return "", err
	}
	for _, list := range kinds {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return "", fmt.Errorf("reading what is served of %s: %w", list.GroupVersion, err)
		}
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") || !slices.Contains(kind.Verbs, "delete") {
				continue // such as metrics, which nobody put there
			}
			objects, err := c.Metadata.Resource(version.WithResource(kind.Name)).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return "", fmt.Errorf("listing %s: %w", kind.Name, err)
			}
			for i := range objects.Items {
				if !ofKubernetes(kind.Kind, &objects.Items[i].ObjectMeta) {
					return kind.Kind + " " + objects.Items[i].Name, nil
				}
			}
		}
	}
	return "", nil
}

// ofKubernetes says whether an object was put into a namespace by Kubernetes itself, or goes with another one.
func ofKubernetes(kind string, object *metav1.ObjectMeta) bool {
	switch {
	case object.DeletionTimestamp != nil, len(object.OwnerReferences) > 0:
		return true
	case kind == "Event", kind == "Endpoints", kind == "EndpointSlice":
		return true
	case kind == serviceAccountKind:
		return object.Name == "default"
	case kind == "ConfigMap":
		return object.Name == rootCA
	}
	return false
}

const (
	serviceAccountKind = "ServiceAccount"
	// rootCA is the ConfigMap that Kubernetes puts into every namespace.
	rootCA = "kube-root-ca.crt"
)

// mayNotGo is for namespaces that no Bundle may take with it.
func (c *Cluster) mayNotGo(namespace string) bool {
	return slices.Contains([]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease, c.AgentNamespace}, namespace)
}
