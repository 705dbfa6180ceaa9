// Package schedule opens and closes windows for changes of Clusters, according to their Schedules.
//
// It writes scheduled, activeSchedule and window in the status of Clusters, and the status of
// Schedules. Its invariant: an exact timer per Cluster and Schedule, and no write without a change.
package schedule

import (
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/fleet/selection"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// Controller reconciles Clusters against the Schedules of their workspace.
type Controller struct {
	controller.Deps
}

// New returns a controller with all its reads from the cache.
func New(deps controller.Deps) *Controller { return &Controller{deps} }

// Register adds the controllers of the windows of Clusters, and of the status of Schedules.
func (c *Controller) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("schedule").
		For(&fleet.Schedule{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(controller.RetryConflicts(c.Recorder, reconcile.Func(c.reportSchedule)))
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("window").
		Watches(&fleet.Cluster{}, controller.On(onCluster)).
		Watches(&fleet.Schedule{}, controller.SkipInitial(controller.On(c.onSchedule))).
		Watches(&fleet.ClusterGroup{}, controller.SkipInitial(handler.EnqueueRequestsFromMapFunc(c.ofGroup)),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// onCluster enqueues a Cluster with new labels, or after another client changed its window.
func onCluster(_ context.Context, before, after *fleet.Cluster, q controller.Queue) {
	if after != nil && (before == nil || !maps.Equal(before.Labels, after.Labels) || windowOf(before) != windowOf(after)) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(after)})
	}
}

// windowOf returns the fields of this controller in a comparable form.
func windowOf(cluster *fleet.Cluster) string {
	s := cluster.Status
	if s.Window == nil {
		return fmt.Sprint(s.Scheduled, s.ActiveSchedule)
	}
	return fmt.Sprint(s.Scheduled, s.ActiveSchedule, s.Window.Since, s.Window.Opens)
}

// onSchedule enqueues the Clusters of a Schedule, as selected before and after a change.
func (c *Controller) onSchedule(ctx context.Context, before, after *fleet.Schedule, q controller.Queue) {
	if before != nil && after != nil && before.Generation == after.Generation &&
		before.DeletionTimestamp.IsZero() == after.DeletionTimestamp.IsZero() {
		return
	}
	var parsed []windows
	var namespace string
	for _, s := range []*fleet.Schedule{before, after} {
		if s != nil {
			w, _ := parse(s.Spec) // an invalid Schedule selects Clusters, too
			parsed, namespace = append(parsed, w), s.Namespace
		}
	}
	clusters, groups, err := c.workspace(ctx, namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the Clusters of a Schedule")
		return
	}
	for i := range clusters {
		in := selection.GroupsOf(&clusters[i], groups)
		for _, w := range parsed {
			if w.selects(&clusters[i], in) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&clusters[i])})
				break
			}
		}
	}
}

// workspace returns the Clusters and ClusterGroups of a workspace.
func (c *Controller) workspace(ctx context.Context, namespace string) ([]fleet.Cluster, []selection.Group, error) {
	var clusters fleet.ClusterList
	if err := c.Client.List(ctx, &clusters, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing the Clusters of %s: %w", namespace, err)
	}
	groups, err := c.groups(ctx, namespace)
	return clusters.Items, groups, err
}

func (c *Controller) groups(ctx context.Context, namespace string) ([]selection.Group, error) {
	var groups fleet.ClusterGroupList
	if err := c.Client.List(ctx, &groups, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ClusterGroups of %s: %w", namespace, err)
	}
	return selection.Groups(groups.Items), nil
}

// ofGroup returns requests for the Clusters of a workspace if a Schedule there names ClusterGroups.
func (c *Controller) ofGroup(ctx context.Context, o client.Object) []reconcile.Request {
	var schedules fleet.ScheduleList
	if err := c.Client.List(ctx, &schedules, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the Schedules of a ClusterGroup")
		return nil
	}
	for i := range schedules.Items {
		if w, _ := parse(schedules.Items[i].Spec); w.usesGroups() {
			return controller.All(c.Client, &fleet.ClusterList{}, client.InNamespace(o.GetNamespace()))(ctx, o)
		}
	}
	return nil
}

// Reconcile opens or closes the window of a Cluster, and requeues for the next change.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, request.NamespacedName, &cluster); err != nil || cluster.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	schedules, err := c.selecting(ctx, &cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := c.Clock.Now()
	decided := decide(schedules, now)
	after := cluster.DeepCopy()
	after.Status.Scheduled, after.Status.ActiveSchedule, after.Status.Window = describe(cluster.Status, decided, now)
	if err := kube.PatchStatus(ctx, c.Client, &cluster, after); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if before := windowOf(&cluster); before != windowOf(after) {
		ctrl.LoggerFrom(ctx).Info("Cluster changed its schedule window", "scheduled", after.Status.Scheduled, "open", after.Status.ActiveSchedule)
	}
	if decided.change.IsZero() {
		return ctrl.Result{}, nil
	}
	return kube.At(decided.change, now), nil
}

// selecting returns the Schedules of a Cluster. A Schedule under deletion does not count.
func (c *Controller) selecting(ctx context.Context, cluster *fleet.Cluster) (found []selecting, err error) {
	var schedules fleet.ScheduleList
	if err := c.Client.List(ctx, &schedules, client.InNamespace(cluster.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Schedules of %s: %w", cluster.Namespace, err)
	}
	if len(schedules.Items) == 0 {
		return nil, nil
	}
	groups, err := c.groups(ctx, cluster.Namespace)
	if err != nil {
		return nil, err
	}
	in := selection.GroupsOf(cluster, groups)
	for i := range schedules.Items {
		if s := &schedules.Items[i]; s.DeletionTimestamp.IsZero() {
			if w, invalid := parse(s.Spec); w.selects(cluster, in) {
				found = append(found, selecting{windows: w, invalid: invalid != nil})
			}
		}
	}
	return found, nil
}

// reportSchedule writes the status of a Schedule, and requeues for its next change.
func (c *Controller) reportSchedule(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var before fleet.Schedule
	if err := c.Client.Get(ctx, request.NamespacedName, &before); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	now := c.Clock.Now()
	after := before.DeepCopy()
	w, invalid := parse(before.Spec)
	decided := decide([]selecting{{windows: w, invalid: invalid != nil}}, now)
	condition := kube.Condition(fleet.ConditionReady, invalid == nil, reasons.Ready, "")
	after.Status.Active, after.Status.NextStartTime = decided.open, nil
	if invalid != nil {
		condition.Reason, condition.Message = reasons.Invalid, invalid.Error()+"; until you correct it, no window opens"
	} else if next := w.next(decided); !next.IsZero() {
		start := metav1.NewTime(next)
		after.Status.NextStartTime = &start
	}
	after.Status.Conditions = kube.SetCondition(after.Status.Conditions, now, condition)
	if err := kube.PatchStatus(ctx, c.Client, &before, after); err != nil || decided.change.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return kube.At(decided.change, now), nil
}
