package cluster

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// workspaceSettings are the annotations of a workspace with an effect on its Clusters.
var workspaceSettings = []string{
	fleet.AnnotationLostTaintAfter, fleet.AnnotationLostRemoveAfter, fleet.AnnotationFailureThreshold, fleet.AnnotationSuccessThreshold,
}

// approvesMembers reports whether the Clusters of a workspace wait for an approval.
func approvesMembers(workspace *metav1.PartialObjectMetadata) bool {
	return workspace != nil && workspace.Labels[fleet.LabelApproveMembers] == "true"
}

// onWorkspace enqueues the Clusters of a workspace when its settings for them change.
func (c *Controller) onWorkspace(ctx context.Context, before, after *metav1.PartialObjectMetadata, q controller.Queue) {
	if sameSettings(before, after) {
		return
	}
	workspace := after
	if workspace == nil {
		workspace = before
	}
	for _, request := range controller.All(c.Client, &fleet.ClusterList{}, client.InNamespace(workspace.Name))(ctx, workspace) {
		q.Add(request)
	}
}

// sameSettings reports whether the settings of a workspace are unchanged. A missing workspace has
// none.
func sameSettings(before, after *metav1.PartialObjectMetadata) bool {
	annotation := func(workspace *metav1.PartialObjectMetadata, key string) string {
		if workspace == nil {
			return ""
		}
		return workspace.Annotations[key]
	}
	return approvesMembers(before) == approvesMembers(after) && !slices.ContainsFunc(workspaceSettings, func(key string) bool {
		return annotation(before, key) != annotation(after, key)
	})
}

// limits returns the settings for the Cluster while it sends no heartbeats. If the cache does not
// have the workspace, its settings are unknown.
func (r *reconciliation) limits(ctx context.Context) (lifecycle.Limits, error) {
	settings := r.Config.Current()
	limits := lifecycle.Limits{LostMembers: settings.LostMembers, Unknown: settings.Unknown}
	workspace, err := r.Workspaces.Named(ctx, r.cluster.Namespace)
	if workspace == nil || err != nil {
		limits.Unknown = true
		return limits, err
	}
	limits.LostMembers, limits.Problem = settings.LostMembers.In(workspace)
	return limits, nil
}
