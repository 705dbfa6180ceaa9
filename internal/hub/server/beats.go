package server

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// addBeats adds the watch for counting heartbeats in Leases.
func addBeats(ctx context.Context, mgr manager.Manager, tracker *liveness.Tracker) error {
	tracker.Confine(func(name string) bool {
		namespace := kube.CoreMetadata("Namespace")
		if err := mgr.GetClient().Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
			return false
		}
		_, isMember := membernamespace.StrayOf(namespace)
		return isMember
	})
	beats, err := liveness.WatchLeases(ctx, mgr.GetCache(), tracker)
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(beats))
}
