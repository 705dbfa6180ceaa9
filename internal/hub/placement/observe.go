package placement

import (
	"context"
	"time"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/hub/placement/staged"
)

// defaultUnavailablePeriod is the default of unavailablePeriodSeconds.
const defaultUnavailablePeriod = time.Minute

// observe gathers the input of decide, except for KubeFleet's leftovers.
func (c *Controller) observe(ctx context.Context, s genericPlacement, current map[string]*currentWorks,
	runs []observedRun) (observed, error) {
	o := observed{
		key: s.key, uid: s.GetUID(), kind: s.kind, generation: s.GetGeneration(), spec: s.spec, before: *s.status,
		current: current, reported: map[string]worksStatus{}, runs: runs, now: c.Clock.Now(), paused: membership.Paused(s),
	}
	for i, r := range runs {
		runs[i].foreign = staged.Initialized(*r.status) && r.status.PlacementUID != string(s.GetUID())
	}
	var err error
	if o.policy, err = scheduling.Compile(s.spec.Policy, s.key.Namespace); err != nil {
		o.policy, o.policyProblem = nil, err.Error()
	}
	c.memory.update(s.key, func(p *placementMemory) { p.policy = o.policy })
	if o.members, err = c.members(ctx); err != nil {
		return o, err
	}
	if err = c.selectResources(ctx, s, &o); err != nil {
		return o, err
	}
	if err = c.unwrap(ctx, &o); err != nil {
		return o, err
	}
	if err = c.observeEvicted(ctx, &o); err != nil {
		return o, err
	}
	o.home, o.otherHomes = homes(s.key, current)
	if isStaged(s.spec) && !o.selected.Waiting {
		if err = c.observeStaging(ctx, s, &o); err != nil {
			return o, err
		}
	}
	if err = c.divide(ctx, &o); err != nil {
		return o, err
	}
	if o.staging == nil {
		c.requireCauses(ctx, s, &o)
	}
	if o.overrides, err = c.overrides(ctx, &o); err != nil {
		return o, err
	}
	c.memory.update(s.key, func(p *placementMemory) { p.overridden = len(o.overrides) > 0 })
	period := unavailablePeriod(s.spec)
	for namespace, w := range current {
		o.reported[namespace] = w.status(c.memory.appliedSince, period, o.now).withEnvelopes(o.resources)
	}
	return o, nil
}

// unavailablePeriod returns the time until applied resources without trackable availability count
// as available.
func unavailablePeriod(spec *placement.PlacementSpec) time.Duration {
	if rolling := spec.Strategy.RollingUpdate; rolling != nil && rolling.UnavailablePeriodSeconds != nil {
		return time.Duration(*rolling.UnavailablePeriodSeconds) * time.Second
	}
	return defaultUnavailablePeriod
}
