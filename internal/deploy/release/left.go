package release

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
)

const (
	helmReleaseName      = "meta.helm.sh/release-name"
	helmReleaseNamespace = "meta.helm.sh/release-namespace"
	// looking is how many objects of one release are looked up at a time.
	looking = 8
)

// Left is what of a release that is being removed is not gone yet.
type Left struct {
	// Count is how many objects there are.
	Count int
	// Blocked says of those that do not go by themselves why.
	Blocked []string
	// Namespace says why the namespace of the release stays although it was to go with it; empty if that is not so.
	Namespace string
}

// everything is the objects of all revisions of a release, and of their hooks: those of one that failed halfway are there beside those of
// the one before.
func (c *Cluster) everything(s Summary) ([]*unstructured.Unstructured, error) {
	history, err := revisions(c.configuration(c, s.Namespace, 0), s.Name)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	known := map[string]bool{}
	slices.Reverse(history)
	for _, revision := range history {
		manifests := []string{revision.Manifest}
		for _, hook := range revision.Hooks {
			manifests = append(manifests, hook.Manifest)
		}
		objects, err := parse([]byte(strings.Join(manifests, "\n---\n")))
		if err != nil {
			return nil, fmt.Errorf("reading the manifest of revision %d of release %s: %w", revision.Version, s, err)
		}
		for _, object := range objects {
			id := object.GroupVersionKind().GroupKind().String() + " " + object.GetNamespace() + "/" + object.GetName()
			if object.GetName() != "" && !known[id] { // one that the API server named cannot be told from others
				known[id] = true
				all = append(all, object)
			}
		}
	}
	return all, nil
}

// sweep looks up every object, deletes what is still there and the release's own, and says what remains.
func (c *Cluster) sweep(ctx context.Context, s Summary, objects []*unstructured.Unstructured) (Left, error) {
	acting, err := c.As(s.ServiceAccount)
	if err != nil {
		return Left{}, err
	}
	var left Left
	var mu sync.Mutex
	room, working := make(chan struct{}, looking), sync.WaitGroup{}
	for _, object := range objects {
		room <- struct{}{}
		working.Go(func() {
			defer func() { <-room }()
			there, why := c.sweepOne(ctx, acting, s, object)
			mu.Lock()
			defer mu.Unlock()
			if there {
				left.Count++
			}
			if why != "" && !slices.Contains(left.Blocked, why) {
				left.Blocked = append(left.Blocked, why)
			}
		})
	}
	working.Wait()
	slices.Sort(left.Blocked)
	return left, ctx.Err()
}

// sweepOne says whether an object is there that goes with the release, and why it does not go.
func (c *Cluster) sweepOne(ctx context.Context, acting *Cluster, s Summary, object *unstructured.Unstructured) (there bool, why string) {
	if kept(object) {
		return false, ""
	}
	name := named(s, object)
	mapping, served, err := c.Find(ctx, object.GroupVersionKind())
	if err != nil || !served {
		return err != nil, unknown(name, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		name = object.GetKind() + " " + object.GetName()
	}
	found, err := at(c, mapping, s, object).Get(ctx, object.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// The answer is not about the object: the kind is not served as the mapper believes.
		if c.remap(mapping) {
			return c.sweepOne(ctx, acting, s, object)
		}
		served, err := c.serves(ctx, object.GroupVersionKind().GroupKind())
		return served || err != nil, unknown(name, err)
	case apierrors.IsNotFound(err):
		return false, ""
	case err != nil:
		return true, unknown(name, err)
	case kept(found) || !belongs(s, found):
		return false, ""
	case found.GetDeletionTimestamp() != nil:
		return true, awaited(name, found)
	}
	uid := found.GetUID()
	err = at(acting, mapping, s, object).Delete(ctx, object.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return true, fmt.Sprintf("%s cannot be deleted: %v", name, err)
	}
	found, err = at(c, mapping, s, object).Get(ctx, object.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && found.GetUID() != uid && !belongs(s, found):
		return false, ""
	case err != nil:
		return true, unknown(name, err)
	}
	return true, awaited(name, found)
}

// at is where an object of a release is.
func at(c *Cluster, mapping *meta.RESTMapping, s Summary, object *unstructured.Unstructured) dynamic.ResourceInterface {
	resources := c.Dynamic.Resource(mapping.Resource)
	switch {
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return resources
	case object.GetNamespace() != "":
		return resources.Namespace(object.GetNamespace())
	default:
		return resources.Namespace(s.Namespace)
	}
}

// named is an object for messages, as long as it is not known whether its kind has namespaces.
func named(s Summary, object *unstructured.Unstructured) string {
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = s.Namespace
	}
	return fmt.Sprintf("%s %s/%s", object.GetKind(), namespace, object.GetName())
}

func unknown(name string, err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%s cannot be looked up: %v", name, err)
}

// kept says whether an object stays by its own policy.
func kept(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy
}

// belongs says whether an object carries the mark of the release.
func belongs(s Summary, object *unstructured.Unstructured) bool {
	annotations := object.GetAnnotations()
	return annotations[helmReleaseName] == s.Name && annotations[helmReleaseNamespace] == s.Namespace
}

// awaited names the finalizers that an object which is being deleted waits for, other than those that Kubernetes removes by itself.
func awaited(name string, object *unstructured.Unstructured) string {
	finalizers := slices.DeleteFunc(object.GetFinalizers(), func(finalizer string) bool {
		return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
	})
	if len(finalizers) == 0 {
		return ""
	}
	return fmt.Sprintf("%s waits for finalizer %s", name, strings.Join(finalizers, ", "))
}
