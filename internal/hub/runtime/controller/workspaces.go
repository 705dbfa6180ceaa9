package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// Workspaces caches the metadata of the namespaces not created by the hub. They include the
// workspaces; the manager's cache has only the hub's namespaces.
type Workspaces struct {
	cache.Cache
	own client.Reader
}

// NewWorkspaces returns the cache.
func NewWorkspaces(ctx context.Context, mgr ctrl.Manager) (*Workspaces, error) {
	foreign, err := labels.NewRequirement(fleet.LabelManaged, selection.NotEquals, []string{"true"})
	if err != nil {
		return nil, err
	}
	made, err := NewCache(ctx, mgr, "workspaces", map[client.Object]cache.ByObject{
		kube.CoreMetadata("Namespace"): {Label: labels.NewSelector().Add(*foreign)},
	})
	return &Workspaces{made, mgr.GetClient()}, err
}

// Named returns the metadata of a workspace, or nil if there is none. A workspace with the hub's
// own label is in the cache of the manager.
func (w *Workspaces) Named(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	for _, reader := range []client.Reader{w.Cache, w.own} {
		workspace := kube.CoreMetadata("Namespace")
		err := reader.Get(ctx, types.NamespacedName{Name: name}, workspace)
		if err == nil {
			return workspace, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading workspace %s: %w", name, err)
		}
	}
	return nil, nil
}

// Source watches the namespaces of the cache.
func (w *Workspaces) Source(h handler.EventHandler) source.Source {
	return source.Kind(w.Cache, client.Object(kube.CoreMetadata("Namespace")), h)
}
