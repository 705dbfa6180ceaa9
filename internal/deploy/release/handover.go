package release

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	helm "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/util/workqueue"
)

// neverDeleted is a delete policy unknown to Helm. Helm then neither deletes the hook object nor
// takes the default, to delete it before its creation.
const neverDeleted = "handed-over"

// leaves names the releases to remove after this deployment.
func (r Request) leaves() string {
	names := make([]string, 0, len(r.Leaving))
	for _, s := range r.Leaving {
		names = append(names, s.ID().String())
	}
	return strings.Join(names, " ")
}

// takesOver reports whether Helm may adopt objects without its mark. In a move, prove checks their
// owner.
func (r Request) takesOver() bool {
	return r.helm().TakeOwnership || len(r.Leaving) > 0
}

// prove returns an error, before any change, if the API server would refuse an object of a moving
// release. The same applies to an object of another release.
//
// Objects shared with a replaced release are handed over, not deleted and created again.
func (r *renderer) prove(objects []*unstructured.Unstructured) error {
	if len(r.request.Leaving) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	var mu sync.Mutex
	var first error
	workqueue.ParallelizeUntil(ctx, lookups, len(objects), func(i int) {
		if err := r.proveOne(ctx, objects[i]); err != nil && ctx.Err() == nil {
			mu.Lock()
			defer mu.Unlock()
			first = cmp.Or(first, err)
			cancel()
		}
	})
	return cmp.Or(first, r.ctx.Err())
}

func (r *renderer) proveOne(ctx context.Context, object *unstructured.Unstructured) error {
	s := Summary{Name: r.request.Release, Namespace: r.request.Namespace}
	mapping, served, err := r.cluster.Find(ctx, object.GroupVersionKind())
	if err != nil || !served { // Helm reports unserved kinds, or the release brings them
		return err
	}
	var found *unstructured.Unstructured
	if object.GetName() != "" { // a generated name is free
		found, err = at(r.cluster, mapping, s, object).Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("looking whether %s is there: %w", named(s, object), err)
		}
		if err != nil {
			found = nil
		}
	}
	switch {
	case isHook(object) && found != nil:
		r.keepHook(object, found)
		return nil // Helm deletes it before its creation
	case isHook(object) && object.GetAnnotations()[helm.HookAnnotation] == string(helm.HookTest):
		return nil
	case found != nil && !r.mayTake(found):
		return conflict(r.request.ID(), mapping, found)
	}
	if err := r.try(ctx, mapping, object, found); err != nil {
		return fmt.Errorf("%s would be refused: %w", named(s, object), err)
	}
	return nil
}

// try checks with the API server, as the account of the deployment, whether an object may be
// applied.
func (r *renderer) try(ctx context.Context, mapping *meta.RESTMapping, object, found *unstructured.Unstructured) error {
	objects := at(r.acting, mapping, Summary{Namespace: r.request.Namespace}, object)
	marked := object.DeepCopy()
	if !isHook(object) {
		Mark(marked, r.request.ID())
	}
	var err error
	if marked.GetName() == "" {
		_, err = objects.Create(ctx, marked, metav1.CreateOptions{FieldManager: FieldManager, DryRun: []string{metav1.DryRunAll}})
	} else {
		_, err = Apply(ctx, objects, marked, metav1.DryRunAll)
	}
	if err == nil || undecided(err) {
		return nil
	}
	for _, s := range r.request.Leaving {
		if found == nil || !Belongs(s, found) || immutable(err) == nil {
			continue
		}
		replacement, err := CheckReplace(ctx, objects, s, marked, err)
		if err == nil {
			r.replaced.Store(placeOf(mapping, found.GetNamespace(), found.GetName()), replacement)
		}
		return err
	}
	return err
}

// replacementOf returns the replacement of an object; nil if the object can be changed.
func (r *renderer) replacementOf(info *resource.Info) *Replacement {
	found, there := r.replaced.Load(placeOf(info.Mapping, info.Namespace, info.Name))
	if !there {
		return nil
	}
	return found.(*Replacement)
}

// placeOf identifies an object of the cluster.
func placeOf(mapping *meta.RESTMapping, namespace, name string) string {
	return mapping.Resource.GroupResource().String() + " " + namespace + "/" + name
}

// undecided reports whether a dry run failed for a reason outside the object. A referenced object
// may be missing until the release brings it, or a webhook may not support dry runs.
func undecided(err error) bool {
	return apierrors.IsNotFound(err) || strings.Contains(err.Error(), "not found") || strings.Contains(err.Error(), "does not support dry run")
}

// mayTake reports whether the release may take an existing object.
func (r *renderer) mayTake(found *unstructured.Unstructured) bool {
	return r.request.helm().TakeOwnership || r.isOwn(found) || r.isLeft(found)
}

// isOwn reports whether an object belongs to the release already, as after a failed attempt.
func (r *renderer) isOwn(found *unstructured.Unstructured) bool {
	return Belongs(Summary{Name: r.request.Release, Namespace: r.request.Namespace}, found)
}

// isLeft reports whether an object belongs to a release removed after this deployment.
func (r *renderer) isLeft(found *unstructured.Unstructured) bool {
	return slices.ContainsFunc(r.request.Leaving, func(s Summary) bool { return Belongs(s, found) })
}

// keepHook makes Helm keep a hook object that is handed over and outlives its release.
func (r *renderer) keepHook(object, found *unstructured.Unstructured) {
	if outlives(object) && (r.isOwn(found) || r.isLeft(found)) {
		put(object.GetAnnotations(), helm.HookDeleteAnnotation, neverDeleted, object.SetAnnotations)
	}
}
