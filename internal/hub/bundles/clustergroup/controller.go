// Package clustergroup counts the Clusters selected by a ClusterGroup, in the group's status.
//
// Only this package writes the status of ClusterGroups. Its invariant: a group of thousands costs
// one List from the cache and at most one write a second, however many of its Clusters change.
// A Cluster with GitRepos costs a List of its own namespace.
package clustergroup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/decisions"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// coalesce is the delay of a group's reconcile after a change of a Cluster. Further changes
	// may follow meanwhile.
	coalesce = time.Second
	// maxNamed limits the listed unready Clusters; maxShown limits the names in a column.
	maxNamed, maxShown = 10, 3
)

// Controller reconciles ClusterGroups.
type Controller struct {
	controller.Deps
	// Decisions shows the Clusters of groups to other tools.
	Decisions *decisions.Publisher
}

// New returns a controller with all its reads from the cache.
func New(deps controller.Deps, shown *decisions.Publisher) *Controller {
	return &Controller{Deps: deps, Decisions: shown}
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("clustergroup").
		For(&fleet.ClusterGroup{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Watches(&fleet.Cluster{}, controller.On(c.onCluster)).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.every))).
		WatchesRawSource(source.Channel(c.Decisions.Subscribe("ClusterGroup"), &handler.EnqueueRequestForObject{})).
		WatchesRawSource(c.Kinds.Again(c.Client, &fleet.ClusterGroupList{})).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// relevant reports whether a change affects the counts or the selector of a group.
func relevant(before, after *fleet.Cluster) bool {
	return !maps.Equal(before.Labels, after.Labels) || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		membership.Revoked(before) != membership.Revoked(after) || readiness(before) != readiness(after) ||
		!equality.Semantic.DeepEqual(before.Status.Summary, after.Status.Summary) ||
		before.Status.ResourceCounts != after.Status.ResourceCounts || before.Status.ReadyGitRepos != after.Status.ReadyGitRepos ||
		before.Status.DesiredReadyGitRepos != after.Status.DesiredReadyGitRepos
}

// onCluster enqueues, after a short delay, the groups with a Cluster before or after a change.
func (c *Controller) onCluster(ctx context.Context, before, after *fleet.Cluster, q controller.Queue) {
	clusters := slices.DeleteFunc([]*fleet.Cluster{before, after}, func(cluster *fleet.Cluster) bool { return cluster == nil })
	if len(clusters) == 2 && !relevant(before, after) {
		return
	}
	var groups fleet.ClusterGroupList
	if err := c.Client.List(ctx, &groups, client.InNamespace(clusters[0].Namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the ClusterGroups of a Cluster", "cluster", client.ObjectKeyFromObject(clusters[0]))
	}
	for i := range groups.Items {
		selector, err := metav1.LabelSelectorAsSelector(groups.Items[i].Spec.Selector)
		if err == nil && slices.ContainsFunc(clusters, func(cluster *fleet.Cluster) bool {
			return selector.Matches(labels.Set(cluster.Labels))
		}) {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&groups.Items[i])}, coalesce)
		}
	}
}

// Reconcile counts the Clusters of a group.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var group fleet.ClusterGroup
	if err := c.Client.Get(ctx, request.NamespacedName, &group); err != nil || group.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	selector, invalid := metav1.LabelSelectorAsSelector(group.Spec.Selector) // without one, the group is empty
	var clusters fleet.ClusterList
	if invalid == nil {
		err := c.Client.List(ctx, &clusters, client.InNamespace(group.Namespace), client.MatchingLabelsSelector{Selector: selector},
			client.UnsafeDisableDeepCopy)
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("listing the Clusters: %w", err)
		}
	}
	repos, err := c.gitRepos(ctx, clusters.Items)
	if err != nil {
		return ctrl.Result{}, err
	}
	after := group.DeepCopy()
	after.Status = describe(group.Status, clusters.Items, invalid, c.Clock.Now())
	after.Status.ReadyGitRepos, after.Status.DesiredReadyGitRepos = repos.ready(), len(repos)
	if err := kube.PatchStatus(ctx, c.Client, &group, after); err != nil {
		return ctrl.Result{}, err
	}
	if kube.ReasonOf(after.Status.Conditions, fleet.ConditionProcessed) == reasons.InvalidSelector {
		return ctrl.Result{}, nil // nothing is decided
	}
	wait, err := c.Decisions.Publish(ctx, shown(&group, clusters.Items))
	return ctrl.Result{RequeueAfter: wait}, err
}

// every enqueues all groups after a change of the settings.
func (c *Controller) every(ctx context.Context, o client.Object) []reconcile.Request {
	if c.Decisions == nil {
		return nil
	}
	return controller.All(c.Client, &fleet.ClusterGroupList{})(ctx, o)
}

// shown returns the Clusters of a group for other tools, except for those that leave, or that
// another manager has.
func shown(group *fleet.ClusterGroup, clusters []fleet.Cluster) decisions.Decision {
	d := decisions.Decision{Owner: group, Kind: fleet.GroupVersion.WithKind("ClusterGroup"), Prefix: "clustergroup",
		Reason: "selected by ClusterGroup " + group.Name}
	for i := range clusters {
		cluster := &clusters[i]
		if cluster.DeletionTimestamp == nil && !membership.Revoked(cluster) && cluster.Labels[fleet.LabelClusterManagement] == "" {
			d.Members = append(d.Members, cluster.Namespace+"/"+cluster.Name)
		}
	}
	return d
}

// describe computes the status, except for the counts of GitRepos.
func describe(before fleet.ClusterGroupStatus, clusters []fleet.Cluster, invalid error, now time.Time) fleet.ClusterGroupStatus {
	after := fleet.ClusterGroupStatus{ClusterCount: len(clusters), Conditions: slices.Clone(before.Conditions)}
	slices.SortFunc(clusters, func(a, b fleet.Cluster) int { return strings.Compare(a.Name, b.Name) })
	for i := range clusters {
		cluster := &clusters[i]
		rollup.Add(&after.Summary, qualified(cluster))
		rollup.AddCounts(&after.ResourceCounts, cluster.Status.ResourceCounts)
		if isReady(cluster) {
			continue
		}
		if after.NonReadyClusterCount++; len(after.NonReadyClusters) < maxNamed {
			after.NonReadyClusters = append(after.NonReadyClusters, cluster.Name)
		}
	}
	after.Display = fleet.ClusterGroupDisplay{
		ReadyClusters: readyClusters(after), ReadyBundles: rollup.Ready(after.Summary), State: string(rollup.Worst(after.Summary)),
	}
	processed, ready := kube.Condition(fleet.ConditionProcessed, true, reasons.Counted, ""),
		kube.Condition(fleet.ConditionReady, true, reasons.Ready, "")
	switch {
	case invalid != nil:
		processed = kube.Condition(fleet.ConditionProcessed, false, reasons.InvalidSelector, "spec.selector: "+invalid.Error())
		ready = kube.Condition(fleet.ConditionReady, false, reasons.InvalidSelector, "spec.selector: "+invalid.Error())
	case after.NonReadyClusterCount > 0:
		ready = kube.Condition(fleet.ConditionReady, false, reasons.ClustersNotReady, explain(after, clusters))
	}
	after.Conditions = kube.SetCondition(after.Conditions, now, processed)
	after.Conditions = kube.SetCondition(after.Conditions, now, ready)
	return after
}

// qualified returns the summary of a Cluster, with the Cluster's name before the names of its
// Bundles.
func qualified(cluster *fleet.Cluster) fleet.BundleSummary {
	summary := *cluster.Status.Summary.DeepCopy()
	for i := range summary.NonReadyResources {
		summary.NonReadyResources[i].Name = cluster.Name + "/" + summary.NonReadyResources[i].Name
	}
	return summary
}

// readyClusters returns `ready/total`, followed by the first unready Clusters.
func readyClusters(status fleet.ClusterGroupStatus) string {
	text := fmt.Sprintf("%d/%d", status.ClusterCount-status.NonReadyClusterCount, status.ClusterCount)
	names := strings.Join(status.NonReadyClusters[:min(len(status.NonReadyClusters), maxShown)], " ")
	if status.NonReadyClusterCount > maxShown {
		names += "…"
	}
	if names != "" {
		text += " (" + names + ")"
	}
	return text
}

// explain returns the reasons of the first unready Clusters.
func explain(status fleet.ClusterGroupStatus, clusters []fleet.Cluster) string {
	var parts []string
	for i := range clusters {
		if isReady(&clusters[i]) || len(parts) == maxShown {
			continue
		}
		part := clusters[i].Name
		if message := readiness(&clusters[i]).Message; message != "" {
			part += ": " + message
		}
		parts = append(parts, part)
	}
	return "not ready: " + kube.JoinTexts(parts, status.NonReadyClusterCount)
}

func isReady(cluster *fleet.Cluster) bool { return readiness(cluster).Status == corev1.ConditionTrue }

// readiness returns the Ready condition, if there is one.
func readiness(cluster *fleet.Cluster) fleet.Condition {
	if ready := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady); ready != nil {
		return *ready
	}
	return fleet.Condition{}
}
