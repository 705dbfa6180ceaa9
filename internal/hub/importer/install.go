package importer

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/agentchart"
	"github.com/muster-fleet/muster/internal/hub/local"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// visit is an installation under way.
type visit struct {
	*downstream
	cluster *fleet.Cluster
	seen    observed
	values  agentchart.Values
	objects []*unstructured.Unstructured
	id, url string
}

// install brings the agent to the cluster, after what stood there of an earlier one is gone.
func (c *Controller) install(ctx context.Context, v visit) error {
	if err := c.dislodge(ctx, v); err != nil {
		return err
	}
	if last := v.seen.last; last != nil && last.ClusterID == v.id {
		if err := c.clear(ctx, v); err != nil {
			return err
		}
	}
	if err := v.apply(ctx, v.objects); err != nil {
		return explain(v.server, "installing the agent", err)
	}
	return nil
}

// clear removes what a new manifest would leave behind of the last one.
func (c *Controller) clear(ctx context.Context, v visit) error {
	if last := v.seen.last; last.Namespace != "" && last.Namespace != v.values.Namespace() {
		old := v.values
		old.Internal.SystemNamespace = last.Namespace
		objects, err := agentchart.Render(old)
		if err != nil {
			return err
		}
		if err := v.removeAgent(ctx, objects, naming.AgentSecret); err != nil {
			return explain(v.server, "removing the agent from namespace "+last.Namespace, err)
		}
		return nil
	}
	return v.dropScheduling(ctx)
}

// dropScheduling deletes the PriorityClass and the PodDisruptionBudget that the Cluster does not ask for any more.
func (v visit) dropScheduling(ctx context.Context) error {
	if v.cluster.Status.AgentSchedulingCustomizationHash == "" {
		return nil
	}
	for _, gvk := range []struct{ group, kind, namespace, name string }{
		{"scheduling.k8s.io", "PriorityClass", "", "fleet-agent-priority-class"},
		{"policy", "PodDisruptionBudget", v.values.Namespace(), "fleet-agent-pod-disruption-budget"},
	} {
		if slices.ContainsFunc(v.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == gvk.kind }) {
			continue
		}
		object := kube.Metadata(schema.GroupVersionKind{Group: gvk.group, Version: "v1", Kind: gvk.kind})
		object.Namespace, object.Name = gvk.namespace, gvk.name
		if err := v.remove(ctx, object, metav1.DeletePropagationBackground); err != nil {
			return explain(v.server, "removing "+gvk.kind+" "+gvk.name, err)
		}
	}
	return nil
}

// pullSecrets are copies of the hub's own, for an agent whose Cluster does not say which it has.
func (c *Controller) pullSecrets(ctx context.Context, cluster *fleet.Cluster, values agentchart.Values) ([]*unstructured.Unstructured, error) {
	if cluster.Spec.AgentPullSecrets != nil {
		return nil, nil
	}
	var copies []*unstructured.Unstructured
	for _, name := range c.Config.Current().Agent.PullSecrets {
		key := types.NamespacedName{Namespace: c.SystemNamespace, Name: name}
		var secret corev1.Secret
		if err := c.Live.Get(ctx, key, &secret); apierrors.IsNotFound(err) {
			return nil, setback(reasonPullSecretMissing, "Secret %s, which global.imagePullSecrets of the fleet chart names, does not exist", key)
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

// admit refuses a cluster that is the hub itself, or another record's. What it admits is claimed for this one.
func (c *Controller) admit(ctx context.Context, cluster *fleet.Cluster, id string) error {
	key := client.ObjectKeyFromObject(cluster)
	hub := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.Live.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, hub); err != nil {
		return err
	}
	own := cluster.Name == local.ClusterName && cluster.Namespace == c.Config.Current().Bootstrap.Namespace
	if id == string(hub.UID) && !own {
		return badInput(reasonIsHub, "the kubeconfig leads to the hub itself, which can be a member only as the Cluster local in the bootstrap.namespace of the fleet chart")
	}
	var list fleet.ClusterList
	if err := c.Client.List(ctx, &list, client.MatchingFields{indexClusterID: id}); err != nil {
		return err
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.UID != cluster.UID && other.DeletionTimestamp == nil {
			return takenBy(client.ObjectKeyFromObject(other))
		}
	}
	holder := c.memory.claim(id, key)
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
	c.memory.release(id, holder)
	c.memory.claim(id, key)
	return nil
}

func takenBy(other types.NamespacedName) *problem {
	return setback(reasonAlreadyRegistered, "the kubeconfig leads to a cluster that is registered as Cluster %s: delete one of the two", other)
}
