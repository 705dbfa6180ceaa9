package bundle

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// firstReport is the time allowed to an agent for its first report about a new version. After it
// the hub shows the deployment as waiting. Most agents are faster, and save the write. All agents
// of a Bundle deploy at once, so each further deployment adds some time. A new agent may take
// longer for its own deployment.
const (
	firstReport     = 2 * time.Second
	firstReportEach = 20 * time.Millisecond
)

// reportsWithin returns the time allowed to the agents of a Bundle for their first reports.
func reportsWithin(deployments int, ofAgent bool) time.Duration {
	if ofAgent {
		return controller.Adoption
	}
	return min(firstReport+time.Duration(deployments)*firstReportEach, controller.Adoption)
}

// updateDisplays writes `status.display` of deployments if it differs from the report of their
// agents. Muster's agents write it with their report. The agents own the rest of the status. It
// returns the wait for agents without a first report.
func (c *Controller) updateDisplays(ctx context.Context, o observed) (wait time.Duration, err error) {
	var changed []rollup.Entry
	for _, t := range o.targets {
		if t.deployment == nil || t.pending > 0 || t.deployment.DeletionTimestamp != nil {
			continue
		}
		shown := t.shown()
		if shown.Shown() == t.deployment.Status.Display {
			c.sent.Forget(t.deployment.UID)
			continue
		}
		first := reportsWithin(len(o.targets), t.deployment.Labels[fleet.LabelAgent] != "")
		if age := c.Clock.Since(c.awaitedSince(t.deployment)); age < first {
			wait = first - max(age, 0)
			continue
		}
		changed = append(changed, shown)
	}
	return wait, forEach(ctx, len(changed), writers, func(i int) error { return c.patchDisplay(ctx, changed[i]) })
}

// awaitedSince returns the begin of the wait for the first report about a version. It is zero if
// the agent has reported it, or if another process sent it.
func (c *Controller) awaitedSince(d *fleet.BundleDeployment) time.Time {
	switch {
	case len(d.Status.Conditions) == 0:
		return d.CreationTimestamp.Time
	case delivery.EffectiveState(d) == fleet.StateWaitApplied:
		since, _ := c.sent.Get(d.UID)
		return since
	}
	return time.Time{}
}

// shown returns the deployment's own display: the last report of its agent.
func (t target) shown() rollup.Entry {
	e := rollup.Entry{State: delivery.EffectiveState(t.deployment), Message: rollup.Message(t.deployment), Deployment: t.deployment}
	if gone := gone(t.cluster); gone != "" {
		return e.AsOf(gone, t.cluster.Status.Agent.LastSeen.Time)
	}
	return e
}

// patchDisplay writes `status.display` of a deployment, independent of concurrent writes by its
// agent.
func (c *Controller) patchDisplay(ctx context.Context, e rollup.Entry) error {
	d, display := e.Deployment, e.Shown()
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": d.UID},
		"status": map[string]any{
			"display": map[string]string{"deployed": display.Deployed, "monitored": display.Monitored, "state": display.State},
		},
	})
	if err != nil {
		return err
	}
	shown := &fleet.BundleDeployment{}
	shown.Namespace, shown.Name = d.Namespace, d.Name
	if err := c.Client.Status().Patch(ctx, shown, client.RawPatch(types.MergePatchType, text), kube.FieldOwner); err != nil {
		return unlessLeaving(fmt.Errorf("showing how BundleDeployment %s/%s stands: %w", d.Namespace, d.Name, err))
	}
	return nil
}
