package release

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
)

// Own returns the release of the agent itself.
func (c *Cluster) Own() Summary { return Summary{Name: c.Agent.Name, Namespace: c.Agent.Namespace} }

// spareAgent returns an error if another release would get an object of the agent's own release.
// The hub of Rancher Fleet delivers its agent under the same names, with takeOwnership. A hook
// would be refused only when it runs.
func (r *renderer) spareAgent(objects []*unstructured.Unstructured) error {
	if r.request.Agent {
		return nil
	}
	var mu sync.Mutex
	var first error
	workqueue.ParallelizeUntil(r.ctx, lookups, len(objects), func(i int) {
		if !r.request.takesOver() && !isHook(objects[i]) {
			return // Helm refuses to take it
		}
		if err := r.spare(r.ctx, objects[i]); err != nil {
			mu.Lock()
			defer mu.Unlock()
			first = cmp.Or(first, err)
		}
	})
	return cmp.Or(first, r.ctx.Err())
}

func (r *renderer) spare(ctx context.Context, object *unstructured.Unstructured) error {
	mapping, served, err := r.cluster.Find(ctx, object.GroupVersionKind())
	if err != nil || !served || object.GetName() == "" {
		return err
	}
	s, own, name := Summary{Namespace: r.request.Namespace}, r.cluster.Own(), object.GetKind()+" "+object.GetName()
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if name = named(s, object); cmp.Or(object.GetNamespace(), s.Namespace) != own.Namespace {
			return nil
		}
	}
	found, err := at(r.cluster, mapping, s, object).Get(ctx, object.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking whether %s is the agent's: %w", name, err)
	case !Belongs(own, found):
		return nil
	}
	return fmt.Errorf("%s belongs to release %s of this agent: no Bundle gets it; delete the Bundle, or take the object out of it",
		name, own.ID())
}
