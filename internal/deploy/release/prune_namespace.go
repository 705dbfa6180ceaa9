package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/muster-fleet/muster/internal/deploy/removal"
)

// removeNamespace deletes the namespace of a release with the option DeleteNamespace, if it was
// created for this release and holds no objects of other owners. stays is the reason to keep it.
// Without the option, and for a missing or terminating namespace, stays is empty.
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
		return fmt.Sprintf("namespace %s stays: it was not created for this release; delete it by hand if you do not need it", s.Namespace), nil
	}
	holds, err := c.otherObjects(ctx, s)
	if err != nil {
		return "", fmt.Errorf("looking for what else is in namespace %s of release %s, which is to go with it: %w", s.Namespace, s, err)
	}
	if stays, err := holds.verdict(s, c.removedSince(s)); stays != "" || err != nil {
		return stays, err
	}
	acting, err := c.As(s.ServiceAccount)
	if err != nil {
		return "", err
	}
	err = removal.Delete(ctx, acting.Kube.CoreV1().Namespaces().Delete, found, removal.ReleaseGone)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("deleting namespace %s of release %s: %w", s.Namespace, s, err)
	}
	return "", nil
}

// patience bounds the wait of a namespace for an unavailable part of the API.
const patience = 10 * time.Minute

// computed are the groups with objects computed on reading, so users create none in a namespace.
// Their servers are unavailable more often than the rest of the API.
var computed = []string{"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"}

// contents describes the objects in a namespace besides a release.
type contents struct {
	// other names an object of another owner than the release and Kubernetes.
	other string
	// unasked names the unavailable parts of the API, with the reason.
	unasked []string
}

// verdict returns the reason to keep a namespace, or an error if it cannot be deleted yet.
//
// Unavailable parts of the API may hold objects of other owners. The wait for them is bounded,
// because a leaving member waits for the namespace.
func (h contents) verdict(s Summary, waited time.Duration) (stays string, err error) {
	switch {
	case h.other != "":
		return fmt.Sprintf("namespace %s stays: it holds %s, which is not of this release", s.Namespace, h.other), nil
	case len(h.unasked) == 0:
		return "", nil
	}
	slices.Sort(h.unasked)
	unknown := strings.Join(h.unasked[:min(len(h.unasked), 3)], "; ")
	if waited < patience {
		return "", fmt.Errorf("namespace %s of release %s may hold objects of others, because a part of the API does not answer: %s: "+
			"repair it, or delete the APIService; if that lasts for %s, the namespace stays", s.Namespace, s, unknown, patience)
	}
	return fmt.Sprintf("namespace %s stays: it may hold objects of others, because for %s a part of the API did not answer: %s; delete "+
		"it by hand if you do not need it",
		s.Namespace, patience, unknown), nil
}

// removedSince returns the time since the release was uninstalled; 0 if its history has no such
// time or cannot be read.
func (c *Cluster) removedSince(s Summary) time.Duration {
	history, err := revisions(c.configuration(c, s.Namespace, s.History, 0), s.Name)
	if err != nil || len(history) == 0 || history[len(history)-1].Info.Deleted.IsZero() {
		return 0
	}
	return time.Since(history[len(history)-1].Info.Deleted)
}

// otherObjects finds an object in the namespace of a release from another owner than Kubernetes and
// the history. It also collects the unavailable parts of the API.
func (c *Cluster) otherObjects(ctx context.Context, s Summary) (contents, error) {
	kinds, err := discovery.ServerPreferredNamespacedResources(c.live)
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return contents{}, err
	}
	unasked, err := c.unavailable(ctx, partial)
	if err != nil {
		return contents{}, err
	}
	for _, list := range kinds {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return contents{}, fmt.Errorf("reading the served kinds of %s: %w", list.GroupVersion, err)
		}
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") || !slices.Contains(kind.Verbs, "delete") {
				continue // such as metrics, never created by users
			}
			other, err := c.otherOf(ctx, s, version, kind)
			switch status := apierrors.APIStatus(nil); {
			case other != "":
				return contents{other: other}, nil
			case errors.As(err, &status):
				unasked = append(unasked, fmt.Sprintf("listing %s: %v", version.WithResource(kind.Name).GroupResource(), err))
			case err != nil:
				return contents{}, fmt.Errorf("listing %s: %w", kind.Name, err)
			}
		}
	}
	return contents{unasked: unasked}, nil
}

// otherOf names one such object of a kind; "" if there is none.
func (c *Cluster) otherOf(ctx context.Context, s Summary, version schema.GroupVersion, kind metav1.APIResource) (string, error) {
	objects, err := c.Metadata.Resource(version.WithResource(kind.Name)).Namespace(s.Namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for i := range objects.Items {
		if !ofKubernetes(kind.Kind, &objects.Items[i].ObjectMeta) && !s.isHistory(kind.Kind, &objects.Items[i].ObjectMeta) {
			return kind.Kind + " " + objects.Items[i].Name, nil
		}
	}
	return "", nil
}

// apiService is the part of an APIService to read.
type apiService struct {
	Spec struct {
		Group   string         `json:"group"`
		Version string         `json:"version"`
		Service map[string]any `json:"service"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// unavailable names the unavailable parts of the API that may hold objects, with the reason.
// Discovery omits parts without an answer since the start of the API server.
func (c *Cluster) unavailable(ctx context.Context, partial *discovery.ErrGroupDiscoveryFailed) ([]string, error) {
	services, err := c.Dynamic.Resource(apiServiceResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing APIServices: %w", err)
	}
	why := map[schema.GroupVersion]string{}
	for i := range services.Items {
		service := apiService{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(services.Items[i].Object, &service); err != nil {
			return nil, fmt.Errorf("reading APIService %s: %w", services.Items[i].GetName(), err)
		}
		available := apimeta.FindStatusCondition(service.Status.Conditions, "Available")
		switch of := (schema.GroupVersion{Group: service.Spec.Group, Version: service.Spec.Version}); {
		case service.Spec.Service == nil: // the API server itself
		case available == nil:
			why[of] = fmt.Sprintf("APIService %s is not available yet", services.Items[i].GetName())
		case available.Status != metav1.ConditionTrue:
			why[of] = fmt.Sprintf("APIService %s is not available: %s", services.Items[i].GetName(), available.Message)
		}
	}
	if partial != nil {
		for version, err := range partial.Groups {
			if why[version] == "" {
				why[version] = fmt.Sprintf("%s does not answer: %v", version, err)
			}
		}
	}
	var unasked []string
	for version, reason := range why {
		if !slices.Contains(computed, version.Group) {
			unasked = append(unasked, reason)
		}
	}
	return unasked, nil
}

// isHistory reports whether an object belongs to the history of the release.
func (s Summary) isHistory(kind string, object *metav1.ObjectMeta) bool {
	return kind == "Secret" && object.Namespace == s.History && object.Labels["owner"] == "helm" && object.Labels["name"] == s.Name
}

// ofKubernetes reports whether Kubernetes created an object, or deletes it with another one.
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
	// rootCA is the ConfigMap created by Kubernetes in every namespace.
	rootCA = "kube-root-ca.crt"
)

// isProtected reports whether no Bundle may delete a namespace.
func (c *Cluster) isProtected(namespace string) bool {
	return namespace == metav1.NamespaceDefault || c.isSystem(namespace)
}

// isSystem reports whether a namespace belongs to Kubernetes or to the agent.
func (c *Cluster) isSystem(namespace string) bool {
	return slices.Contains([]string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease, c.AgentNamespace}, namespace)
}
