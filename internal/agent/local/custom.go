package local

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/retry"
)

type clusterProperties = kubeclient.Resource[*kubeclient.ClusterProperty, *kubeclient.ClusterPropertyList]

// FollowClusterProperties keeps store equal to the ClusterProperties, in the version served by the
// member. It looks for the kind again every few minutes.
func (c *Cluster) FollowClusterProperties(ctx context.Context, store cache.ReflectorStore, outcome func(error)) {
	for backoff := retry.Refused(); ; {
		for _, properties := range c.properties {
			serves := followServed(ctx, properties, store, outcome)
			if serves {
				backoff = retry.Refused()
			}
		}
		if ctx.Err() == nil {
			_ = store.Replace(nil, "") // the store never fails
		}
		if retry.Wait(ctx, clock.RealClock{}, backoff.Step()) != nil {
			return
		}
	}
}

// followServed follows until the member does not serve the kind, and reports whether it did.
func followServed(ctx context.Context, properties *clusterProperties, store cache.ReflectorStore, outcome func(error)) (served bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kubeclient.Follow(ctx, properties, "", store, func(err error) {
		if apierrors.IsNotFound(err) {
			cancel()
			return
		}
		served = served || err == nil
		outcome(err)
	})
	return served
}

// FollowFacts keeps store equal to the ConfigMap with custom facts; without a name there are none.
func (c *Cluster) FollowFacts(ctx context.Context, store cache.ReflectorStore, outcome func(error)) {
	if c.FactsConfigMap == "" {
		_ = store.Replace(nil, "") // the store never fails
		return
	}
	kubeclient.Follow(ctx, c.ConfigMaps, kubeclient.Name(c.FactsConfigMap), store, outcome)
}
