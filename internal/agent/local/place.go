package local

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// HasPod reports whether the cluster is known to have the pod with a UID.
func (c *Cluster) HasPod(ctx context.Context, namespace, name, uid string) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list, err := c.pods.List(ctx, metav1.ListOptions{FieldSelector: "metadata.namespace=" + namespace + ",metadata.name=" + name})
	return err == nil && slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return string(p.UID) == uid })
}

// ServesHub reports whether the cluster is known to serve the registrations of a hub.
func (c *Cluster) ServesHub(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.raw.Get().AbsPath("/apis/"+fleet.GroupVersion.String()).Do(ctx).Error() == nil
}
