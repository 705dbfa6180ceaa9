package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/agentbundle"
	"github.com/muster-fleet/muster/internal/hub/agentchart"
	"github.com/muster-fleet/muster/internal/hub/cluster"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// observe gathers what the hub itself knows; nothing is asked downstream.
func (c *Controller) observe(ctx context.Context, record *fleet.Cluster) (observed, error) {
	values := c.values(record)
	o := observed{
		asked:      record.Spec.KubeConfigSecret != "" && record.DeletionTimestamp == nil,
		generation: record.Spec.RedeployAgentGeneration, deployed: record.Status.AgentDeployedGeneration, last: record.Status.Import,
		settings: values.Hash(), agent: agentOf(record.Status), spread: spreadOf(record.UID),
	}
	var err error
	if o.delivered, o.managed, err = agentbundle.Delivered(ctx, c.Client, record); err != nil {
		return observed{}, fmt.Errorf("reading the Bundle of the agent: %w", err)
	}
	o.elsewhere = o.last != nil && o.last.Namespace != values.Namespace()
	secret := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Secret"))
	key := types.NamespacedName{Namespace: secretNamespace(record), Name: record.Spec.KubeConfigSecret}
	if err := c.Secrets.Get(ctx, key, secret); err != nil && !apierrors.IsNotFound(err) {
		return observed{}, fmt.Errorf("looking up Secret %s: %w", key, err)
	}
	o.secretVersion = secret.ResourceVersion
	if o.last != nil && o.secretVersion != "" {
		// The cache may be behind what the last import read.
		order, err := resourceversion.CompareResourceVersion(o.secretVersion, o.last.SecretVersion)
		o.secretNewer = err != nil || order > 0
	}
	hub := c.Config.Current()
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s %s %s %s", o.generation, key, o.secretVersion, o.settings, hub.APIServerURL, hub.APIServerCA))
	o.input = hex.EncodeToString(sum[:])
	o.history, o.slot = c.memory.history(client.ObjectKeyFromObject(record))
	switch now := c.Clock.Now(); {
	case o.agent == agentWell && !o.history.trouble.IsZero():
		o.history.trouble, o.history.healed, o.history.looks = time.Time{}, 0, 0
	case o.agent != agentWell && o.history.trouble.IsZero():
		o.history.trouble = now
	}
	c.memory.remember(client.ObjectKeyFromObject(record), o.history)
	return o, nil
}

// values are how the agent of a Cluster is installed.
func (c *Controller) values(record *fleet.Cluster) agentchart.Values {
	return agentchart.Of(record, membership.ClientID(record), c.Config.Current().Agent, c.SystemNamespace)
}

// agentOf reads what the cluster controller has found out about the agent.
func agentOf(status fleet.ClusterStatus) agentState {
	ready := kube.FindCondition(status.Conditions, fleet.ConditionReady)
	switch {
	case ready == nil:
		return agentAbsent
	case ready.Status == corev1.ConditionTrue:
		return agentWell
	case ready.Reason == cluster.ReasonAgentLost:
		return agentLost
	case ready.Reason == cluster.ReasonIdentityMissing:
		return agentRevoked
	case status.Agent.LastSeen.IsZero():
		return agentAbsent
	}
	return agentWell
}

// spreadOf is a number between 0 and 1 that is always the same for one Cluster.
func spreadOf(uid types.UID) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // never fails
	return float64(h.Sum32()) / math.MaxUint32
}
