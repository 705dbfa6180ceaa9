package hostnode

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-fleet/muster/localkube/internal/process"
)

// eagerInterval is the interval of extra probes of a container that never passed, between two
// probes that count. A pod therefore gets ready at once, not up to a period later. Failures in
// between do not count.
const eagerInterval = 200 * time.Millisecond

// livenessDelay spares every start a failed probe: a process does not listen in its first instant.
const livenessDelay = time.Second

// tally turns single probe results into the state defined by Kubernetes. The state changes after a
// number of equal results in a row.
type tally struct {
	passesNeeded, failuresNeeded int32
	ok                           bool
	passes, failures             int32
}

// observe counts a result and reports whether it has just reached a threshold. ok is then the new
// state; a failing probe may confirm it.
func (t *tally) observe(pass bool) bool {
	if pass {
		t.passes, t.failures = t.passes+1, 0
		if t.ok || t.passes < t.passesNeeded {
			return false
		}
		t.ok = true
		return true
	}
	t.passes, t.failures = 0, t.failures+1
	if t.failures != t.failuresNeeded {
		return false
	}
	t.ok = false
	return true
}

// probe watches a running container: startup first, then readiness and
// liveness side by side. It returns when ctx ends.
func (c *container) probe(ctx context.Context, command process.Spec, unhealthy chan<- struct{}) {
	c.tellUnsupportedHooks()
	if c.spec.StartupProbe != nil {
		if !c.watchStartup(ctx, command) {
			if ctx.Err() == nil {
				unhealthy <- struct{}{}
				<-ctx.Done()
			}
			return
		}
	}
	c.set(func(o *observation) { o.Started = true; o.Ready = c.spec.ReadinessProbe == nil })
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.watchReadiness(ctx, command)
	}()
	if c.spec.LivenessProbe != nil && !c.watchLiveness(ctx, command) {
		unhealthy <- struct{}{}
	}
	<-done
}

// watchStartup reports whether the container has started; false if it did not in time or ctx ended.
func (c *container) watchStartup(ctx context.Context, command process.Spec) bool {
	probe := c.spec.StartupProbe
	started := false
	c.probeLoop(ctx, command, "Startup", probe, false, true, func(ok bool) bool {
		started = ok
		return false
	})
	return started
}

func (c *container) watchReadiness(ctx context.Context, command process.Spec) {
	if c.spec.ReadinessProbe == nil {
		return
	}
	c.probeLoop(ctx, command, "Readiness", c.spec.ReadinessProbe, false, true, func(ok bool) bool {
		c.set(func(o *observation) { o.Ready = ok })
		return true
	})
}

// watchLiveness returns false if the container must be restarted and true if ctx ended.
func (c *container) watchLiveness(ctx context.Context, command process.Spec) bool {
	alive := true
	c.probeLoop(ctx, command, "Liveness", c.spec.LivenessProbe, true, false, func(ok bool) bool {
		alive = ok
		return ok
	})
	return alive
}

// probeLoop probes until changed returns false or ctx ends. An eager loop probes more often until
// the first pass.
func (c *container) probeLoop(ctx context.Context, command process.Spec, kind string, probe *corev1.Probe, ok, eager bool,
	changed func(ok bool) bool) {
	t := tally{passesNeeded: max(probe.SuccessThreshold, 1), failuresNeeded: max(probe.FailureThreshold, 1), ok: ok}
	period := time.Duration(max(probe.PeriodSeconds, 1)) * time.Second
	delay := time.Duration(probe.InitialDelaySeconds) * time.Second
	if !eager {
		delay = max(delay, livenessDelay)
	}
	if !pause(ctx, delay) {
		return
	}
	counted := time.Now()
	for {
		err := c.check(ctx, command, probe)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errUnsupportedProbe) {
			c.pod.event(corev1.EventTypeWarning, "UnsupportedProbe", fmt.Sprintf("%s %v", kind, err))
			changed(true)
			return
		}
		now := time.Now()
		counts := !eager || now.Sub(counted) >= period
		if err == nil {
			eager = false
		}
		if err == nil || counts {
			counted = now
			if err != nil && t.failures == 0 {
				c.pod.event(corev1.EventTypeWarning, "Unhealthy", fmt.Sprintf("%s probe failed: %v", kind, err))
			}
			if t.observe(err == nil) && !changed(t.ok) {
				return
			}
		}
		wait := period
		if eager {
			wait = min(period, eagerInterval)
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// probeGrace returns the time for an unhealthy container to stop.
func (c *container) probeGrace() time.Duration {
	for _, probe := range []*corev1.Probe{c.spec.LivenessProbe, c.spec.StartupProbe} {
		if probe != nil && probe.TerminationGracePeriodSeconds != nil {
			return time.Duration(*probe.TerminationGracePeriodSeconds) * time.Second
		}
	}
	return c.pod.grace()
}

func (c *container) tellUnsupportedHooks() {
	if c.spec.Lifecycle == nil {
		return
	}
	if c.spec.Lifecycle.PostStart != nil || c.spec.Lifecycle.PreStop != nil {
		c.pod.event(corev1.EventTypeWarning, "UnsupportedHook",
			"postStart and preStop hooks of container "+c.spec.Name+" are not run by localkube")
	}
}
