package placement

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/updaterun"
	"github.com/muster-fleet/muster/internal/hub/placement/staged"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// byPlacement and byStrategy are indexes of the cache: runs by placement, and waiting runs by the
// strategy they wait for.
const byPlacement, byStrategy = "placement", "strategy"

// genericRun is a staged update run of either kind.
type genericRun struct {
	client.Object
	kind   string
	spec   *placement.UpdateRunSpec
	status *placement.UpdateRunStatus
}

func ofClusterRun(r *placement.ClusterStagedUpdateRun) genericRun {
	return genericRun{r, "ClusterStagedUpdateRun", &r.Spec, &r.Status}
}

func ofNamespacedRun(r *placement.StagedUpdateRun) genericRun {
	return genericRun{r, "StagedUpdateRun", &r.Spec, &r.Status}
}

func ofRun(o client.Object) genericRun {
	if r, ok := o.(*placement.ClusterStagedUpdateRun); ok {
		return ofClusterRun(r)
	}
	return ofNamespacedRun(o.(*placement.StagedUpdateRun))
}

// copy returns a copy for changes.
func (r genericRun) copy() genericRun { return ofRun(r.DeepCopyObject().(client.Object)) }

// placement returns the key of the run's placement.
func (r genericRun) placement() types.NamespacedName {
	return types.NamespacedName{Namespace: r.GetNamespace(), Name: r.spec.PlacementName}
}

// observedRun is a run with its inputs.
type observedRun struct {
	genericRun
	// strategy is nil if it does not exist.
	strategy *placement.UpdateStrategySpec
	requests map[string]staged.Request
	// foreign: the run was initialized for a deleted placement of the same name, or by another hub.
	foreign bool
}

// begun reports whether a run has begun with this placement.
func (r observedRun) begun() bool { return r.status.Begun != nil && !r.foreign }

// inProgress reports whether a run has begun, and neither ended nor stopped.
func (r observedRun) inProgress() bool {
	return r.begun() && !updaterun.Ended(*r.status) && !staged.Stopped(*r.spec, *r.status)
}

// latest returns the last started run, or nil. It controls the version of the members.
func latest(runs []observedRun) *observedRun {
	begun := slices.DeleteFunc(slices.Clone(runs), func(r observedRun) bool { return !r.begun() })
	if len(begun) == 0 {
		return nil
	}
	last := slices.MaxFunc(begun, func(a, b observedRun) int {
		return cmp.Or(a.status.Begun.Compare(b.status.Begun.Time), strings.Compare(string(a.GetUID()), string(b.GetUID())))
	})
	return &last
}

// claimed returns the members of initialized and unfinished runs.
func claimed(runs []observedRun) map[string]bool {
	names := map[string]bool{}
	for _, r := range runs {
		if staged.Initialized(*r.status) && !updaterun.Ended(*r.status) && !r.foreign {
			maps.Copy(names, staged.Clusters(*r.status))
		}
	}
	return names
}

// runs returns the runs of a placement, the oldest first, and the longest wait until the cache
// shows earlier writes of them.
func (c *Controller) runs(ctx context.Context, key types.NamespacedName) (runs []observedRun, wait time.Duration, err error) {
	var cached []client.Object
	if key.Namespace == "" {
		var list placement.ClusterStagedUpdateRunList
		err = c.Client.List(ctx, &list, client.MatchingFields{byPlacement: key.String()}, client.UnsafeDisableDeepCopy)
		for i := range list.Items {
			cached = append(cached, &list.Items[i])
		}
	} else {
		var list placement.StagedUpdateRunList
		err = c.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{byPlacement: key.String()},
			client.UnsafeDisableDeepCopy)
		for i := range list.Items {
			cached = append(cached, &list.Items[i])
		}
	}
	if err != nil {
		return nil, 0, fmt.Errorf("listing the staged update runs of %s: %w", key, err)
	}
	for _, o := range cached {
		r := observedRun{genericRun: ofRun(o)}
		if !updaterun.Ended(*r.status) {
			if r.strategy, err = c.strategyOf(ctx, r.genericRun); err != nil {
				return nil, 0, err
			}
			if r.requests, err = c.requestsOf(ctx, r.genericRun); err != nil {
				return nil, 0, err
			}
		}
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b observedRun) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), strings.Compare(a.GetName(), b.GetName()))
	})
	return runs, c.runWrites.Await(key, cached...), nil
}

// strategyOf returns the strategy of a run, nil if there is none.
func (c *Controller) strategyOf(ctx context.Context, r genericRun) (*placement.UpdateStrategySpec, error) {
	key := types.NamespacedName{Namespace: r.GetNamespace(), Name: r.spec.StagedUpdateStrategyName}
	var err error
	var spec *placement.UpdateStrategySpec
	if key.Namespace == "" {
		var strategy placement.ClusterStagedUpdateStrategy
		err, spec = c.Client.Get(ctx, key, &strategy), &strategy.Spec
	} else {
		var strategy placement.StagedUpdateStrategy
		err, spec = c.Client.Get(ctx, key, &strategy), &strategy.Spec
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the strategy %s of run %s: %w", key.Name, r.GetName(), err)
	}
	return spec, nil
}

// requestsOf returns the approval requests with the names used by a run.
func (c *Controller) requestsOf(ctx context.Context, r genericRun) (map[string]staged.Request, error) {
	requests := map[string]staged.Request{}
	for _, name := range staged.Requests(r.GetName(), *r.status) {
		request := updaterun.NewApprovalRequest(r.GetNamespace(), name)
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(request), request.Object)
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading the approval request %s: %w", name, err)
		}
		requests[name] = ofRequest(r, request)
	}
	return requests, nil
}

// ofRequest returns the value of an approval request to a run. A request counts for nothing
// unless the run owns it by UID and the request names the run.
func ofRequest(r genericRun, request updaterun.ApprovalRequest) staged.Request {
	isNamed := staged.RequestName(r.GetName(), "before", request.Spec.TargetStage) == request.GetName() ||
		staged.RequestName(r.GetName(), "after", request.Spec.TargetStage) == request.GetName()
	names := isNamed && request.Spec.TargetUpdateRun == r.GetName()
	return staged.Request{
		Owned:    names && metav1.IsControlledBy(request, r) && request.GetDeletionTimestamp() == nil,
		Approved: request.Approved(),
		Outdated: request.Outdated(),
		Accepted: meta.IsStatusConditionTrue(request.Status.Conditions, placement.ConditionApprovalAccepted),
	}
}

// onRun reconciles the placement of a run.
func (c *Controller) onRun(_ context.Context, before, after client.Object, q controller.Queue) {
	for _, object := range []client.Object{before, after} {
		if object != nil {
			c.enqueueSoon(q, ofRun(object).placement())
		}
	}
}

// onRequest enqueues the placement of the run with an approval request.
func (c *Controller) onRequest(ctx context.Context, before, after client.Object, q controller.Queue) {
	object := after
	if after == nil {
		object = before
	}
	request, isRequest := updaterun.ApprovalRequestOf(object)
	if !isRequest {
		return
	}
	var run client.Object = &placement.ClusterStagedUpdateRun{}
	if request.GetNamespace() != "" {
		run = &placement.StagedUpdateRun{}
	}
	if err := c.Client.Get(ctx, types.NamespacedName{Namespace: request.GetNamespace(), Name: request.Spec.TargetUpdateRun}, run); err != nil {
		return // no run waits for it
	}
	c.onRun(ctx, nil, run, q)
}

// onStrategy enqueues the placements of the runs waiting for a strategy.
func (c *Controller) onStrategy(ctx context.Context, _, after client.Object, q controller.Queue) {
	if after == nil {
		return
	}
	list := client.ObjectList(&placement.ClusterStagedUpdateRunList{})
	if after.GetNamespace() != "" {
		list = &placement.StagedUpdateRunList{}
	}
	waiting := client.MatchingFields{byStrategy: client.ObjectKeyFromObject(after).String()}
	if err := c.Client.List(ctx, list, waiting, client.UnsafeDisableDeepCopy); err != nil {
		return // the cache answers
	}
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		c.onRun(ctx, nil, o.(client.Object), q)
		return nil // never an error
	})
}

// awaitedStrategy returns the key of the strategy to wait for; empty if the run has its stages, or
// has ended.
func awaitedStrategy(o client.Object) []string {
	r := ofRun(o)
	if staged.Initialized(*r.status) || updaterun.Ended(*r.status) {
		return nil
	}
	return []string{types.NamespacedName{Namespace: r.GetNamespace(), Name: r.spec.StagedUpdateStrategyName}.String()}
}

// indexRuns adds the indexes of runs to the cache.
func indexRuns(ctx context.Context, mgr ctrl.Manager) error {
	placementOf := func(o client.Object) []string { return []string{ofRun(o).placement().String()} }
	for _, kind := range []client.Object{&placement.ClusterStagedUpdateRun{}, &placement.StagedUpdateRun{}} {
		for name, key := range map[string]client.IndexerFunc{byPlacement: placementOf, byStrategy: awaitedStrategy} {
			if err := mgr.GetFieldIndexer().IndexField(ctx, kind, name, key); err != nil {
				return fmt.Errorf("indexing %T by their %s: %w", kind, name, err)
			}
		}
	}
	return nil
}

// withoutPlacement reports on the runs of a missing placement.
func (c *Controller) withoutPlacement(ctx context.Context, key types.NamespacedName) error {
	runs, wait, err := c.runs(ctx, key)
	if err != nil || wait > 0 { // an event of the cache comes
		return err
	}
	runs = slices.DeleteFunc(runs, func(r observedRun) bool { return updaterun.Ended(*r.status) })
	if len(runs) == 0 {
		return nil
	}
	s := ofCRP(&placement.ClusterResourcePlacement{})
	if key.Namespace != "" {
		s = ofRP(&placement.ResourcePlacement{})
	}
	s.SetNamespace(key.Namespace)
	s.SetName(key.Name)
	if len(validation.NameIsDNSSubdomain(key.Name, false)) == 0 { // no placement has an invalid name, so no query is needed
		if gone, err := kube.IsGone(ctx, c.Live, placement.GroupVersion.WithKind(s.kind), s); err != nil || !gone {
			return err // unknown is not gone
		}
	}
	now := c.Clock.Now()
	for _, r := range runs {
		d := staged.Decide(r.facts(observed{kind: s.kind, key: key}, "", true), now)
		if err := c.writeRun(ctx, key, r.genericRun, d); err != nil {
			return err
		}
	}
	return nil
}
