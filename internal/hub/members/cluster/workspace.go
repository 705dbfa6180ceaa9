package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// workspaceSettings are the annotations of a workspace that matter to its Clusters.
var workspaceSettings = []string{
	fleet.AnnotationLostTaintAfter, fleet.AnnotationLostRemoveAfter, fleet.AnnotationFailureThreshold, fleet.AnnotationSuccessThreshold,
}

// newWorkspaceCache returns a cache of the metadata of the namespaces not created by the hub, with
// nothing but the settings for Clusters.
func newWorkspaceCache(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	foreign, err := labels.NewRequirement(fleet.LabelManaged, selection.NotEquals, []string{"true"})
	if err != nil {
		return nil, err
	}
	return controller.NewCache(ctx, mgr, "the settings of workspaces", map[client.Object]cache.ByObject{
		kube.CoreMetadata("Namespace"): {Label: labels.NewSelector().Add(*foreign), Transform: slimWorkspace},
	})
}

// slimWorkspace drops everything but the identity and the settings of a workspace.
func slimWorkspace(o any) (any, error) {
	whole, isMetadata := o.(*metav1.PartialObjectMetadata)
	if !isMetadata {
		return o, nil
	}
	slim, err := controller.OnlyIdentity(whole)
	if err != nil {
		return nil, err
	}
	kept := slim.(*metav1.PartialObjectMetadata)
	if approvesMembers(whole) {
		kept.Labels = map[string]string{fleet.LabelApproveMembers: "true"}
	}
	kept.Annotations = maps.Clone(whole.Annotations)
	maps.DeleteFunc(kept.Annotations, func(key, _ string) bool { return !slices.Contains(workspaceSettings, key) })
	return kept, nil
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
	annotations := func(workspace *metav1.PartialObjectMetadata) map[string]string {
		if workspace == nil {
			return nil
		}
		return workspace.Annotations
	}
	return approvesMembers(before) == approvesMembers(after) && maps.Equal(annotations(before), annotations(after))
}

// workspace returns the settings of the Cluster's workspace; nil if no cache has it. A workspace
// with the hub's own label is in the cache of the manager: it may require approvals, too.
func (r *reconciliation) workspace(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	for _, reader := range []client.Reader{r.workspaces, r.Client} {
		workspace := kube.CoreMetadata("Namespace")
		err := reader.Get(ctx, types.NamespacedName{Name: r.cluster.Namespace}, workspace)
		if err == nil {
			return workspace, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading workspace %s: %w", r.cluster.Namespace, err)
		}
	}
	return nil, nil
}

// limits returns the settings for the Cluster while it sends no heartbeats. If the cache does not
// have the workspace, its settings are unknown.
func (r *reconciliation) limits(ctx context.Context) (lifecycle.Limits, error) {
	settings := r.Config.Current()
	limits := lifecycle.Limits{LostMembers: settings.LostMembers, Unknown: settings.Unknown}
	workspace, err := r.workspace(ctx)
	if workspace == nil || err != nil {
		limits.Unknown = true
		return limits, err
	}
	limits.LostMembers, limits.Problem = settings.LostMembers.In(workspace)
	return limits, nil
}
