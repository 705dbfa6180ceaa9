package importer

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentchart"
	"github.com/muster-fleet/muster/internal/hub/joining/selfimport"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// admit refuses the hub itself, and a cluster of another Cluster object. It assigns any other
// cluster to the given Cluster object.
func (c *Controller) admit(ctx context.Context, d *downstream, cluster *fleet.Cluster, id string) error {
	key := client.ObjectKeyFromObject(cluster)
	hub := kube.CoreMetadata("Namespace")
	if err := c.Live.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, hub); err != nil {
		return err
	}
	own := cluster.Name == selfimport.ClusterName && cluster.Namespace == c.Config.Current().Bootstrap.Namespace
	if id == string(hub.UID) && !own {
		return badInput(reasons.IsHub,
			"the kubeconfig leads to the hub itself, which can be a member only as the Cluster local in the bootstrap.namespace of the fleet chart")
	}
	var list fleet.ClusterList
	if err := c.Client.List(ctx, &list, client.MatchingFields{indexClusterID: id}); err != nil {
		return err
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID == cluster.UID || other.DeletionTimestamp != nil {
			continue
		}
		if holds, err := c.holds(ctx, d, other, cluster, id); err != nil {
			return err
		} else if holds {
			return takenBy(client.ObjectKeyFromObject(other))
		}
	}
	holder := c.tracker.claim(key, id)
	if holder == key {
		return nil
	}
	var other fleet.Cluster
	err := c.Client.Get(ctx, holder, &other)
	if err == nil && other.Spec.KubeConfigSecret != "" && (other.Status.Import == nil || other.Status.Import.ClusterID == id) {
		return takenBy(holder)
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	c.tracker.unclaim(holder)
	c.tracker.claim(key, id)
	return nil
}

// holds reports whether the cluster belongs to another Cluster object of the same ID. Within the
// workspace the object counts, unless an agent may have written the ID. In another workspace any
// user with knowledge of the ID may have created the object, so holds queries the cluster itself.
func (c *Controller) holds(ctx context.Context, d *downstream, other, cluster *fleet.Cluster, id string) (bool, error) {
	if other.Namespace == cluster.Namespace {
		if membership.ClientID(other) == id {
			return true, nil
		}
		account, err := membernamespace.OfCluster(other).ReadAccount(ctx, c.Client)
		if err != nil {
			return false, err
		}
		if membership.IssuedTo(account) != membership.Legacy {
			return true, nil
		}
	}
	return c.worksFor(ctx, d, other)
}

// worksFor reports whether an agent on the cluster has the credential of a Cluster object.
func (c *Controller) worksFor(ctx context.Context, d *downstream, other *fleet.Cluster) (bool, error) {
	namespaces := map[string]bool{
		agentchart.Of(other, membership.ClientID(other), c.Config.Current().Agent, c.SystemNamespace).Namespace(): true,
		other.Status.Agent.Namespace: true,
	}
	for namespace := range namespaces {
		if !isNamespace(namespace) {
			continue // no agent can be there
		}
		found, err := d.installedAgent(ctx, namespace)
		if apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) {
			continue // the agent chose this namespace, so a refusal proves nothing
		}
		if err != nil {
			return false, d.explain("looking for the agent of Cluster "+other.Namespace+"/"+other.Name, err)
		}
		if found == nil {
			continue
		}
		var addresses []string
		if hub := Hub(other, c.Config.Current().Hub()); hub != nil {
			addresses = append(addresses, hub.APIServerURL)
		}
		if acts, err := c.actsFor(ctx, found, other, addresses...); err != nil || acts {
			return acts, err
		}
	}
	return false, nil
}
