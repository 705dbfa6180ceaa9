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

// removeNamespace deletes the namespace of a release with that option, if it was created for this release and holds nothing of anybody else;
// otherwise stays says why it stays.
func (c *Cluster) removeNamespace(ctx context.Context, s Summary) (stays string, err error) {
	if !s.DeleteNamespace {
		return "", nil
	}
	if c.isProtected(s.Namespace) {
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
	other, err := c.otherObject(ctx, s)
	if err != nil {
		return "", fmt.Errorf("looking for what else is in namespace %s of release %s, which is to go with it: %w", s.Namespace, s, err)
	}
	if other != "" {
		return fmt.Sprintf("namespace %s stays: it holds %s, which is not of this release", s.Namespace, other), nil
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

// otherObject names the first object in the namespace of a release that is neither Kubernetes' own nor of the history.
func (c *Cluster) otherObject(ctx context.Context, s Summary) (string, error) {
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
			objects, err := c.Metadata.Resource(version.WithResource(kind.Name)).Namespace(s.Namespace).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return "", fmt.Errorf("listing %s: %w", kind.Name, err)
			}
			for i := range objects.Items {
				if !ofKubernetes(kind.Kind, &objects.Items[i].ObjectMeta) && !s.isHistory(kind.Kind, &objects.Items[i].ObjectMeta) {
					return kind.Kind + " " + objects.Items[i].Name, nil
				}
			}
		}
	}
	return "", nil
}

// isHistory says whether an object is of the history of the release.
func (s Summary) isHistory(kind string, object *metav1.ObjectMeta) bool {
	return kind == "Secret" && object.Namespace == s.History && object.Labels["owner"] == "helm" && object.Labels["name"] == s.Name
}

// ofKubernetes says whether Kubernetes created an object, or deletes it with another one.
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

// isProtected says whether no Bundle may delete a namespace.
func (c *Cluster) isProtected(namespace string) bool {
	return slices.Contains([]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease, c.AgentNamespace}, namespace)
}
