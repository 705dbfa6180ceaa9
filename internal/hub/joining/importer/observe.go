package importer

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentbundle"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentchart"
	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// observe gathers the hub's knowledge without a call downstream.
func (c *Controller) observe(ctx context.Context, record *fleet.Cluster) (observed, error) {
	values := c.values(record)
	o := observed{
		generation: record.Spec.RedeployAgentGeneration, deployed: record.Status.AgentDeployedGeneration, last: record.Status.Import,
		settings: values.Hash(), agent: agentOf(record.Status), jitter: kube.Jitter(record.UID), history: c.tracker.history(record),
	}
	var err error
	if o.delivered, o.managed, err = agentbundle.Delivered(ctx, c.Client, record); err != nil {
		return observed{}, fmt.Errorf("reading the Bundle of the agent: %w", err)
	}
	o.elsewhere = o.last != nil && o.last.Namespace != values.Namespace()
	secret := kube.CoreMetadata("Secret")
	key := kubeconfig.SecretOf(record)
	if err := c.Secrets.Get(ctx, key, secret); err != nil && !apierrors.IsNotFound(err) {
		return observed{}, fmt.Errorf("looking up Secret %s: %w", key, err)
	}
	o.secretVersion = secret.ResourceVersion
	o.secretNewer = o.last != nil && secretChanged(o.secretVersion, o.last.SecretVersion)
	hub := c.Config.Current()
	o.input = naming.Digest(fmt.Appendf(nil, "%d %s %s %s %s %s %t", o.generation, key, o.secretVersion, o.settings, hub.APIServerURL,
		hub.APIServerCA, hub.ImportLoopback))
	switch {
	case o.agent == membership.AgentOnline:
		if !o.history.unwell.IsZero() {
			o.history.unwell, o.history.heals, o.history.diagnoses = time.Time{}, 0, 0
		}
	case o.history.unwell.IsZero():
		o.history.unwell = c.Clock.Now()
	}
	return o, nil
}

// secretChanged reports whether the kubeconfig Secret may have changed since an import used it. A
// Secret restored into a new etcd may have a lower version, and so may a lagging cache. The latter
// costs one read of the Secret: the import compares the content, and ends if it is unchanged.
func secretChanged(seen, used string) bool { return seen != "" && seen != used }

// values returns the values of the agent's chart for a Cluster.
func (c *Controller) values(record *fleet.Cluster) agentchart.Values {
	return agentchart.Of(record, membership.ClientID(record), c.Config.Current().Agent, c.SystemNamespace)
}

// agentOf returns the state of the agent in the terms of an import: absent, lost, revoked, or
// online for everything else.
func agentOf(status fleet.ClusterStatus) membership.AgentState {
	switch state := membership.ClusterStatus(&status, nil).Agent; state {
	case membership.AgentLost, membership.AgentRevoked:
		return state
	case membership.AgentUnknown, membership.AgentAwaited, membership.AgentAbsent:
		return membership.AgentAbsent
	default:
		return membership.AgentOnline
	}
}
