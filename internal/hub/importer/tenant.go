package importer

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// tenant is whom an agent that is there already works for. Of its credential nothing is kept.
type tenant struct {
	record types.NamespacedName
	server string
}

// tenant reads it from the agent's own Secret; nil if there is none.
func (d *downstream) tenant(ctx context.Context, namespace string) (*tenant, error) {
	var secret corev1.Secret
	err := d.Get(ctx, types.NamespacedName{Namespace: namespace, Name: naming.AgentSecret}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	found := &tenant{record: types.NamespacedName{Namespace: string(secret.Data["clusterNamespace"]), Name: string(secret.Data["clusterName"])}}
	if config, err := clientcmd.Load(secret.Data["kubeconfig"]); err == nil {
		for _, cluster := range config.Clusters {
			found.server = cluster.Server
		}
	}
	return found, nil
}

// dislodge makes room where an agent works for somebody else. For another record of this hub it is the user who has to decide; an agent of
// another hub, or one that holds the address of a hub that has moved, would go on calling there and is ended.
func (c *Controller) dislodge(ctx context.Context, v visit) error {
	found, err := v.tenant(ctx, v.values.Namespace())
	if err != nil {
		return explain(v.server, "looking for an agent that is there already", err)
	}
	if found == nil {
		return nil
	}
	own := found.record == client.ObjectKeyFromObject(v.cluster)
	if own && (found.server == v.url || v.seen.agent == agentWell) {
		return nil
	}
	if !own {
		var other fleet.Cluster
		err := c.Client.Get(ctx, found.record, &other)
		if err == nil && other.DeletionTimestamp == nil {
			c.memory.release(v.id, client.ObjectKeyFromObject(v.cluster))
			return takenBy(found.record)
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return v.evict(ctx, found)
}

// evict ends a running agent and then takes its credential away: as long as it runs it would put that back.
func (v visit) evict(ctx context.Context, found *tenant) error {
	namespace := v.values.Namespace()
	deployment := kube.Metadata(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	err := v.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "fleet-agent"}, deployment)
	if err == nil {
		if err = v.remove(ctx, deployment, metav1.DeletePropagationForeground); err == nil {
			return setback(reasonAgentEnding, "the agent in namespace %s works for Cluster %s at %s: it is ended first", namespace, found.record, found.server)
		}
	}
	if apierrors.IsNotFound(err) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.AgentSecret}}
		err = v.remove(ctx, secret, metav1.DeletePropagationBackground)
	}
	if err != nil {
		return explain(v.server, "removing the agent before", err)
	}
	return nil
}
