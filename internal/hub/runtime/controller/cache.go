package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/restore"
)

// NewCache returns a cache of objects outside the manager's cache; what names them in errors. Every
// replica fills the cache, so a new leader need not list the objects first.
func NewCache(ctx context.Context, mgr ctrl.Manager, what string, byObject map[client.Object]cache.ByObject) (cache.Cache, error) {
	made, err := NewLazyCache(mgr, what, byObject)
	for object := range byObject {
		if err == nil {
			err = Fill(ctx, made, object)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("making a cache of %s: %w", what, err)
	}
	return made, nil
}

// NewLazyCache returns a cache like NewCache, but each kind stays empty until a controller needs
// its informer.
func NewLazyCache(mgr ctrl.Manager, what string, byObject map[client.Object]cache.ByObject) (cache.Cache, error) {
	made, err := cache.New(mgr.GetConfig(), cache.Options{
		NewInformer: newInformer,
		HTTPClient:  mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         byObject,
	})
	if err != nil {
		return nil, fmt.Errorf("making a cache of %s: %w", what, err)
	}
	return made, mgr.Add(onEveryReplica{made})
}

// Fill makes a cache hold the objects of the given kinds as soon as it runs, even on a replica
// without running controllers.
func Fill(ctx context.Context, c cache.Cache, kinds ...client.Object) error {
	for _, kind := range kinds {
		if _, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	return nil
}

func newInformer(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(restore.InPages(restore.Survive(lw)), o, resync, indexers)
}

type onEveryReplica struct{ cache.Cache }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (onEveryReplica) NeedLeaderElection() bool { return false }

// OnlyIdentity transforms metadata for a cache: it keeps the name, the UID and the version.
func OnlyIdentity(o any) (any, error) {
	if whole, ok := o.(*metav1.PartialObjectMetadata); ok {
		return &metav1.PartialObjectMetadata{TypeMeta: whole.TypeMeta, ObjectMeta: metav1.ObjectMeta{
			Namespace: whole.Namespace, Name: whole.Name, UID: whole.UID, ResourceVersion: whole.ResourceVersion,
		}}, nil
	}
	return o, nil
}
