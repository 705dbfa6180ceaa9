package importer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentchart"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// installation is the last part of an attempt: the installation of the agent after a successful
// preflight.
type installation struct {
	*downstream
	cluster  *fleet.Cluster
	observed observed
	values   agentchart.Values
	objects  []*unstructured.Unstructured
	id, url  string
}

// installedAgent is an agent found on the cluster. It has the name of its Cluster object, the
// server of its hub, and the UID of its credential's account.
type installedAgent struct {
	record  types.NamespacedName
	server  string
	account types.UID
}

// install applies the agent's chart, after the removal of an earlier agent's objects. It changes
// nothing on a cluster that obeys another hub with a higher term.
func (c *Controller) install(ctx context.Context, i installation) error {
	if err := c.checkTerm(ctx, i); err != nil {
		return err
	}
	if err := c.replaceForeign(ctx, i); err != nil {
		return err
	}
	if last := i.observed.last; last != nil && last.ClusterID == i.id {
		if err := i.cleanUp(ctx, last.Namespace); err != nil {
			return err
		}
	}
	if err := i.apply(ctx, i.objects); err != nil {
		return i.explain("installing the agent", err)
	}
	return nil
}

// installedAgent reads the agent's own Secret, and keeps nothing of the credential in it; nil if
// there is none.
func (d *downstream) installedAgent(ctx context.Context, namespace string) (*installedAgent, error) {
	if !isNamespace(namespace) {
		return nil, errNoNamespace
	}
	var secret corev1.Secret
	err := d.Get(ctx, types.NamespacedName{Namespace: namespace, Name: naming.AgentSecret}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	found := &installedAgent{
		record: types.NamespacedName{Namespace: clipped(secret.Data["clusterNamespace"]), Name: clipped(secret.Data["clusterName"])},
	}
	token := string(secret.Data["token"])
	if config, err := clientcmd.Load(secret.Data["kubeconfig"]); err == nil {
		for _, cluster := range config.Clusters {
			found.server = strings.TrimSuffix(clipped([]byte(cluster.Server)), "/")
		}
		for _, user := range config.AuthInfos {
			token = cmp.Or(token, user.Token)
		}
	}
	if claims, err := credential.ReadClaims(token); err == nil {
		found.account = types.UID(claims.AccountUID)
	}
	return found, nil
}

// clipped bounds a text of the cluster. It appears in messages.
func clipped(text []byte) string { return kube.Clip(string(text), maxMessage) }

// actsFor reports whether an agent acts for a Cluster of this hub, and not for one of the same name
// on another hub. An agent of this hub has the credential of the Cluster's current account, or uses
// an address of this hub.
func (c *Controller) actsFor(ctx context.Context, found *installedAgent, other *fleet.Cluster, addresses ...string) (bool, error) {
	if found.record != client.ObjectKeyFromObject(other) {
		return false, nil
	}
	if found.server != "" && slices.ContainsFunc(append(addresses, other.Status.APIServerURL), func(address string) bool {
		return strings.TrimSuffix(address, "/") == found.server
	}) {
		return true, nil
	}
	account, err := membernamespace.OfCluster(other).ReadAccount(ctx, c.Client)
	return err == nil && account.UID != "" && account.UID == found.account, err
}

// takenOver reports whether another hub has taken over a cluster with an agent of this hub. The
// agent now has a credential of another account. A user takes the cluster back by another
// spec.redeployAgentGeneration.
func (c *Controller) takenOver(ctx context.Context, i installation, found *installedAgent) (bool, error) {
	last, deployed := i.observed.last, i.observed.deployed
	if last == nil || last.ClusterID != i.id || found.account == "" || deployed != nil && *deployed != i.observed.generation {
		return false, nil
	}
	account, err := membernamespace.OfCluster(i.cluster).ReadAccount(ctx, c.Client)
	return err == nil && account.UID != "" && account.UID != found.account, err
}

// replaceForeign uninstalls an agent of another hub, or with a former address of this hub: it would
// keep calling the old address. An agent of another Cluster of this hub is left to the user.
func (c *Controller) replaceForeign(ctx context.Context, i installation) error {
	found, err := i.installedAgent(ctx, i.values.Namespace())
	if err != nil {
		return i.explain("looking for an agent that is there already", err)
	}
	if found == nil {
		return nil
	}
	own := found.record == client.ObjectKeyFromObject(i.cluster)
	if own && (found.server == i.url || i.observed.agent == membership.AgentOnline) {
		return nil
	}
	if own {
		if taken, err := c.takenOver(ctx, i, found); err != nil {
			return err
		} else if taken {
			return setback(reasons.AgentOfOtherHub, "the agent works for the hub at %s, which may have been restored from a backup of this "+
				"hub: this hub leaves it alone. To install the agent of this hub, raise spec.redeployAgentGeneration of the Cluster", found.server)
		}
	} else {
		var other fleet.Cluster
		err := c.Client.Get(ctx, found.record, &other)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && other.DeletionTimestamp == nil {
			imported := other.Status.Import != nil && other.Status.Import.ClusterID == i.id
			if acts, err := c.actsFor(ctx, found, &other, i.url); err != nil {
				return err
			} else if acts || imported {
				c.tracker.unclaim(client.ObjectKeyFromObject(i.cluster))
				return takenBy(found.record)
			}
		}
	}
	return i.uninstall(ctx, found)
}

// uninstall deletes a running agent, and in a later attempt its credential. A running agent would
// write the credential again.
func (i installation) uninstall(ctx context.Context, found *installedAgent) error {
	namespace := i.values.Namespace()
	deployment := kube.Metadata(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	err := i.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "fleet-agent"}, deployment)
	if err == nil {
		if err = i.remove(ctx, deployment, metav1.DeletePropagationForeground); err == nil {
			return setback(reasons.AgentEnding, "the agent in namespace %s works for Cluster %s at %s: it is ended first",
				namespace, found.record, found.server)
		}
	}
	if apierrors.IsNotFound(err) {
		err = i.remove(ctx, agentSecret(namespace), metav1.DeletePropagationBackground)
	}
	if err != nil {
		return i.explain("removing the agent before", err)
	}
	return nil
}

func agentSecret(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.AgentSecret}}
}

// cleanUp deletes the objects of the last manifest missing in the new one. After a move to another
// namespace, it deletes all namespaced objects. The namespace itself stays, because others may use
// it. Otherwise it deletes the PriorityClass and the PodDisruptionBudget if the Cluster's spec no
// longer has them.
func (i installation) cleanUp(ctx context.Context, namespace string) error {
	if namespace == "" || namespace == i.values.Namespace() {
		return i.cleanUpScheduling(ctx)
	}
	old := i.values
	old.Internal.SystemNamespace = namespace
	manifest, err := agentchart.Render(old)
	if err != nil {
		return err
	}
	objects := make([]client.Object, 0, len(manifest)+1)
	for _, object := range manifest {
		if object.GetNamespace() != "" {
			objects = append(objects, object)
		}
	}
	for _, object := range append(objects, agentSecret(namespace)) {
		if err := i.remove(ctx, object, metav1.DeletePropagationBackground); err != nil {
			return i.explain("removing the agent from namespace "+namespace, fmt.Errorf("removing %s: %w", kube.Describe(i.Scheme(), object), err))
		}
	}
	return nil
}

func (i installation) cleanUpScheduling(ctx context.Context) error {
	if i.cluster.Status.AgentSchedulingCustomizationHash == "" {
		return nil
	}
	for _, gvk := range []struct{ group, kind, namespace, name string }{
		{"scheduling.k8s.io", "PriorityClass", "", "fleet-agent-priority-class"},
		{"policy", "PodDisruptionBudget", i.values.Namespace(), "fleet-agent-pod-disruption-budget"},
	} {
		if slices.ContainsFunc(i.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == gvk.kind }) {
			continue
		}
		object := kube.Metadata(schema.GroupVersionKind{Group: gvk.group, Version: "v1", Kind: gvk.kind})
		object.Namespace, object.Name = gvk.namespace, gvk.name
		if err := i.remove(ctx, object, metav1.DeletePropagationBackground); err != nil {
			return i.explain("removing "+gvk.kind+" "+gvk.name, err)
		}
	}
	return nil
}

// pullSecrets returns copies of the hub's pull secrets, for a Cluster without pull secrets of its
// own.
func (c *Controller) pullSecrets(ctx context.Context, cluster *fleet.Cluster,
	values agentchart.Values) ([]*unstructured.Unstructured, error) {
	if cluster.Spec.AgentPullSecrets != nil {
		return nil, nil
	}
	var copies []*unstructured.Unstructured
	for _, name := range c.Config.Current().Agent.PullSecrets {
		key := types.NamespacedName{Namespace: c.SystemNamespace, Name: name}
		var secret corev1.Secret
		if err := c.Live.Get(ctx, key, &secret); apierrors.IsNotFound(err) {
			return nil, setback(reasons.PullSecretMissing, "Secret %s, which global.imagePullSecrets of the fleet chart names, does not exist", key)
		} else if err != nil {
			return nil, err
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: values.Namespace(), Name: name},
			Type:       secret.Type, Data: secret.Data,
		})
		if err != nil {
			return nil, err
		}
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		copies = append(copies, &unstructured.Unstructured{Object: content})
	}
	return copies, nil
}

func takenBy(other types.NamespacedName) *problem {
	return setback(reasons.AlreadyRegistered, "the kubeconfig leads to a cluster that is registered as Cluster %s: delete one of the two",
		other)
}
