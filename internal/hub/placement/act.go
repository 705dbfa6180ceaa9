package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/kube"
)

// defaultSettle is the default of unavailablePeriodSeconds.
const defaultSettle = time.Minute

// claim puts the finalizer on a placement and returns it as it then is.
func (c *Controller) claim(ctx context.Context, s subject) (subject, error) {
	if controllerutil.ContainsFinalizer(s.Object, placement.FinalizerPlacement) {
		return s, nil
	}
	claimed := s.copy()
	controllerutil.AddFinalizer(claimed.Object, placement.FinalizerPlacement)
	if err := c.Client.Patch(ctx, claimed.Object, client.MergeFromWithOptions(s.Object, client.MergeFromWithOptimisticLock{}), kube.FieldOwner); err != nil {
		return s, fmt.Errorf("claiming %s: %w", s, err)
	}
	return claimed, nil
}

// holdings are what members have of a placement, by member namespace. What is in them belongs to the cache.
func (c *Controller) holdings(ctx context.Context, key types.NamespacedName) (map[string]*holding, error) {
	var works placement.WorkList
	if err := c.Client.List(ctx, &works, client.MatchingFields{byParent: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Works of %s: %w", key, err)
	}
	held := map[string]*holding{}
	for i := range works.Items {
		work := &works.Items[i]
		h := held[work.Namespace]
		if h == nil {
			h = &holding{going: true}
			held[work.Namespace] = h
		}
		h.works = append(h.works, work)
		h.going = h.going && work.DeletionTimestamp != nil
	}
	for _, h := range held {
		h.sort()
	}
	return held, nil
}

func (c *Controller) observe(ctx context.Context, s subject, holdings map[string]*holding) (observed, error) {
	o := observed{key: s.key, kind: s.kind, generation: s.GetGeneration(), spec: s.spec, before: *s.status, holdings: holdings, standing: map[string]standing{}}
	p := c.policy(s)
	o.policy = p.compiled
	if p.err != nil {
		o.policyProblem = p.err.Error()
	}
	var err error
	if o.members, err = c.members(ctx); err != nil {
		return o, err
	}
	if o.selected, err = c.selector.Select(s.key, s.spec.ResourceSelectors); err != nil {
		return o, err
	}
	if o.parts, err = pack(o.selected.Objects, maxManifests); err != nil {
		return o, err
	}
	settle := defaultSettle
	if rolling := s.spec.Strategy.RollingUpdate; rolling != nil && rolling.UnavailablePeriodSeconds != nil {
		settle = time.Duration(*rolling.UnavailablePeriodSeconds) * time.Second
	}
	now := c.Clock.Now()
	for namespace, h := range holdings {
		o.standing[namespace] = h.stand(c.appliedSince, settle, now)
	}
	return o, nil
}

// policy compiles the policy of a placement, once per generation.
func (c *Controller) policy(s subject) policy {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, known := c.policies[s.key]
	if !known || p.uid != s.GetUID() || p.generation != s.GetGeneration() {
		p = policy{uid: s.GetUID(), generation: s.GetGeneration()}
		p.compiled, p.err = scheduling.Compile(s.spec.Policy)
		c.policies[s.key] = p
	}
	return p
}

// appliedSince says when the hub first saw that a Work was applied as it now is.
func (c *Controller) appliedSince(work *placement.Work) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.applied[work.UID]
	if !ok || known.generation != work.Generation {
		known = application{generation: work.Generation, at: c.Clock.Now()}
		c.applied[work.UID] = known
	}
	return known.at
}

// failed are the errors by member namespace.
type failed map[string]error

func (f failed) any() error {
	var all []error
	for _, err := range f {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// act writes and removes Works, several members at a time.
func (c *Controller) act(ctx context.Context, s subject, o observed, d decision) failed {
	var mu sync.Mutex
	var group sync.WaitGroup
	failures, slots := failed{}, make(chan struct{}, writers)
	do := func(targets []target, what func(target) error) {
		for _, t := range targets {
			slots <- struct{}{}
			group.Go(func() {
				defer func() { <-slots }()
				if err := what(t); err != nil {
					mu.Lock()
					failures[t.namespace] = err
					mu.Unlock()
				}
			})
		}
	}
	do(d.plan.retain, func(t target) error { return c.retain(ctx, o.holdings[t.namespace].retained(s.key, d.cargo)) })
	do(d.plan.write, func(t target) error { return c.write(ctx, s, d.cargo, t, o.holdings[t.namespace]) })
	do(d.plan.remove, func(t target) error { return c.empty(ctx, o.holdings[t.namespace].works) })
	group.Wait()
	c.count(d.plan, failures)
	if changed := len(d.plan.write) + len(d.plan.remove); changed > 0 {
		ctrl.LoggerFrom(ctx).Info("Placed", "resources", len(o.selected.Objects), "index", d.cargo.index, "written", names(d.plan.write), "removed", names(d.plan.remove), "failed", len(failures))
	}
	return failures
}

// names lists members, the first few of many.
func names(targets []target) string {
	const most = 5
	var all []string
	for _, t := range targets[:min(most, len(targets))] {
		all = append(all, t.name)
	}
	text := strings.Join(all, ", ")
	if more := len(targets) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// write brings the Works of one member in line. Only what differs is written.
func (c *Controller) write(ctx context.Context, s subject, goods cargo, t target, h *holding) error {
	missing, surplus := h.stale(s.key, goods)
	for _, i := range missing {
		work := desiredWork(s.key, goods, i, t.namespace)
		if err := c.writeOne(ctx, s, work, h.find(work.Name)); err != nil {
			return err
		}
		c.ahead.note(s.key, work, c.Clock.Now())
	}
	return c.empty(ctx, surplus)
}

// writeOne makes a Work as given: it creates what is new, and replaces the spec of what is there.
func (c *Controller) writeOne(ctx context.Context, s subject, work, there *placement.Work) error {
	if there == nil {
		err := c.Client.Create(ctx, work, kube.FieldOwner)
		if !apierrors.IsAlreadyExists(err) {
			return describeWrite(work, err)
		}
		there = &placement.Work{}
		if err := c.Live.Get(ctx, client.ObjectKeyFromObject(work), there); err != nil {
			return fmt.Errorf("reading Work %s/%s: %w", work.Namespace, work.Name, err)
		}
		if of, ok := parentOf(there); !ok || of != s.key {
			return fmt.Errorf("namespace %s has a Work %s that is not of %s: delete it, or give the placement another name", work.Namespace, work.Name, s)
		}
	}
	patch, err := replacing(there, work)
	if err != nil {
		return describeWrite(work, err)
	}
	return describeWrite(work, c.Client.Patch(ctx, work, client.RawPatch(types.JSONPatchType, patch), kube.FieldOwner))
}

func describeWrite(work *placement.Work, err error) error {
	if err != nil {
		return fmt.Errorf("writing Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

// retain takes the agent's finalizer off Works that somebody deleted, so that they go, what is applied of them stays, and they are written
// again.
func (c *Controller) retain(ctx context.Context, works []*placement.Work) error {
	for _, work := range works {
		after := work.DeepCopy()
		controllerutil.RemoveFinalizer(after, placement.FinalizerWork)
		patch := client.MergeFromWithOptions(work, client.MergeFromWithOptimisticLock{})
		if err := c.Client.Patch(ctx, after, patch, kube.FieldOwner); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("taking the finalizer off Work %s/%s, which somebody deleted, to write it again: %w", work.Namespace, work.Name, err)
		}
		ctrl.LoggerFrom(ctx).Info("A Work that somebody deleted is written again", "work", work.Name, "namespace", work.Namespace)
	}
	return nil
}

// empty deletes Works; the member's agent takes away what it applied of them before they go.
func (c *Controller) empty(ctx context.Context, works []*placement.Work) error {
	for _, work := range works {
		if work.DeletionTimestamp != nil {
			continue
		}
		gone := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
		if err := c.Client.Delete(ctx, gone, client.Preconditions{UID: &work.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Work %s/%s: %w", work.Namespace, work.Name, err)
		}
	}
	return nil
}

// remove takes a placement away from all members, and lets it go when the last of them has answered.
func (c *Controller) remove(ctx context.Context, s subject, holdings map[string]*holding) (ctrl.Result, error) {
	c.selector.Drop(s.key)
	if !controllerutil.ContainsFinalizer(s.Object, placement.FinalizerPlacement) {
		return ctrl.Result{}, nil
	}
	if len(holdings) > 0 {
		return c.removeWorks(ctx, s, holdings)
	}
	after := s.copy()
	controllerutil.RemoveFinalizer(after.Object, placement.FinalizerPlacement)
	if err := c.Client.Patch(ctx, after.Object, client.MergeFromWithOptions(s.Object, client.MergeFromWithOptimisticLock{}), kube.FieldOwner); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("letting %s go: %w", s, err)
	}
	c.written.Forget(s)
	ctrl.LoggerFrom(ctx).Info("Placement removed")
	return ctrl.Result{}, nil
}

func (c *Controller) removeWorks(ctx context.Context, s subject, holdings map[string]*holding) (ctrl.Result, error) {
	members, err := c.members(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	var targets []target
	message := ""
	for namespace, h := range holdings {
		t := target{namespace: namespace, name: namespace}
		if i := slices.IndexFunc(members, func(m *scheduling.Member) bool { return m.Namespace == namespace }); i >= 0 {
			t.name = members[i].Name
			if idle(members[i]) {
				message = fmt.Sprintf("; %s: %s; it is waited for until it is back, or its record is deleted", t.name, members[i].Obstacle.Message)
			}
		}
		for _, work := range h.works {
			if applied := meta.FindStatusCondition(work.Status.Conditions, placement.ConditionApplied); work.DeletionTimestamp != nil && applied != nil && applied.Status == metav1.ConditionFalse {
				message = fmt.Sprintf("; %s: %s", t.name, applied.Message)
			}
		}
		targets = append(targets, t)
	}
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.name, b.name) })
	failures := c.act(ctx, s, observed{holdings: holdings}, decision{plan: plan{remove: targets}})
	if err := failures.any(); err != nil {
		return ctrl.Result{}, err
	}
	now := c.Clock.Now()
	if early := c.nextReport(s.key).Sub(now); early > 0 {
		return ctrl.Result{RequeueAfter: early}, nil
	}
	status := *s.copy().status
	status.Message = fmt.Sprintf("being removed: waiting for the agents of %d members (%s)%s", len(targets), names(targets), message)
	return ctrl.Result{}, c.report(ctx, s, status)
}
