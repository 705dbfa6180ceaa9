package release

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"

	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/removal"
)

const (
	helmReleaseName      = "meta.helm.sh/release-name"
	helmReleaseNamespace = "meta.helm.sh/release-namespace"
	managedBy            = "app.kubernetes.io/managed-by"
	// helmItself is the value of managedBy.
	helmItself = "Helm"
	// lookups is the number of concurrent look-ups of objects of one release.
	lookups = 8
)

// Left is the rest of a release in removal.
type Left struct {
	// Count is the number of remaining objects.
	Count int
	// Blocked names the objects that need a user's action, with the reason.
	Blocked []string
	// Namespace is the reason why a namespace stays although the release should delete it, or why its
	// labels and annotations stay; empty otherwise.
	Namespace string
}

// allObjects returns the objects and hooks of all revisions of a release, because a failed revision
// may have created further objects.
func (c *Cluster) allObjects(s Summary) ([]*unstructured.Unstructured, error) {
	history, err := revisions(c.configuration(c, s.Namespace, s.History, 0), s.Name)
	if err != nil {
		return nil, err
	}
	var collected []*unstructured.Unstructured
	collectedIDs := map[string]bool{}
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
			if id := identity(object); object.GetName() != "" && !collectedIDs[id] { // a generated name is not in the manifest
				collectedIDs[id] = true
				collected = append(collected, object)
			}
		}
	}
	return collected, nil
}

// deleteObjects deletes the objects with the release's mark, and returns the rest.
func (c *Cluster) deleteObjects(ctx context.Context, s Summary, objects []*unstructured.Unstructured, cause removal.Cause) (Left, error) {
	acting, err := c.As(s.ServiceAccount)
	if err != nil {
		return Left{}, err
	}
	var left Left
	var mu sync.Mutex
	workqueue.ParallelizeUntil(ctx, lookups, len(objects), func(i int) {
		there, why := c.deleteObject(ctx, acting, s, objects[i], cause)
		mu.Lock()
		defer mu.Unlock()
		if there {
			left.Count++
		}
		if why != "" && !slices.Contains(left.Blocked, why) {
			left.Blocked = append(left.Blocked, why)
		}
	})
	slices.Sort(left.Blocked)
	return left, ctx.Err()
}

// deleteObject deletes one object. It reports whether the object still exists, and the obstacle to
// its deletion.
func (c *Cluster) deleteObject(
	ctx context.Context, acting *Cluster, s Summary, object *unstructured.Unstructured, cause removal.Cause,
) (exists bool, why string) {
	if applied.Keeps(object) || outlives(object) {
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
		// The answer is not about the object: the API server no longer serves the kind as mapped.
		if c.remap(mapping) {
			return c.deleteObject(ctx, acting, s, object, cause)
		}
		served, err := c.serves(ctx, object.GroupVersionKind().GroupKind())
		return served || err != nil, unknown(name, err)
	case apierrors.IsNotFound(err):
		return false, ""
	case err != nil:
		return true, unknown(name, err)
	case applied.Keeps(found) || !Belongs(s, found):
		return false, ""
	case found.GetDeletionTimestamp() != nil:
		return true, waitsFor(name, found)
	case isDeleteHook(object) && !hasEnded(found):
		return true, name + ", a hook, runs still"
	}
	uid := found.GetUID()
	err = removal.Delete(ctx, removal.Of(at(acting, mapping, s, object)), found, cause)
	if err != nil && !apierrors.IsNotFound(err) {
		return true, fmt.Sprintf("%s cannot be deleted: %v", name, err)
	}
	found, err = at(c, mapping, s, object).Get(ctx, object.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && found.GetUID() != uid && !Belongs(s, found):
		return false, ""
	case err != nil:
		return true, unknown(name, err)
	}
	return true, waitsFor(name, found)
}

// at returns the client for an object of a release.
func at(c *Cluster, mapping *meta.RESTMapping, s Summary, object *unstructured.Unstructured) dynamic.ResourceInterface {
	resources := c.Dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return resources
	}
	return resources.Namespace(cmp.Or(object.GetNamespace(), s.Namespace))
}

// named formats an object for messages before the scope of its kind is known.
func named(s Summary, object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", object.GetKind(), cmp.Or(object.GetNamespace(), s.Namespace), object.GetName())
}

func unknown(name string, err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%s cannot be looked up: %v", name, err)
}

// Belongs reports whether an object has the annotations of a release.
func Belongs(s Summary, object *unstructured.Unstructured) bool {
	return NameOf(object) == s.Name && object.GetAnnotations()[helmReleaseNamespace] == s.Namespace
}

// NameOf returns the name of the release in the annotations of an object.
func NameOf(object *unstructured.Unstructured) string {
	return object.GetAnnotations()[helmReleaseName]
}

// Mark adds Helm's marks of a release to a manifest.
func Mark(object *unstructured.Unstructured, id ID) {
	put(object.GetLabels(), managedBy, helmItself, object.SetLabels)
	object.SetAnnotations(marked(object.GetAnnotations(), id))
}

// waitsFor names the finalizers of an object in deletion.
func waitsFor(name string, object *unstructured.Unstructured) string {
	if finalizers := applied.Finalizers(object); len(finalizers) > 0 {
		return fmt.Sprintf("%s waits for finalizer %s", name, strings.Join(finalizers, ", "))
	}
	return ""
}
