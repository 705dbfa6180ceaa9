package hubclient

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/standby"
)

// Published reads the credential that a restored hub has published for the agent of a
// MemberCluster, with a token of the standby.
func (h *Hub) Published(ctx context.Context, key types.NamespacedName) (*clusterv1beta1.IssuedCredential, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := h.connection.REST(corev1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	published := &corev1.ConfigMap{}
	if err := client.Get().Namespace(key.Namespace).Resource("configmaps").Name(key.Name).Do(ctx).Into(published); err != nil {
		return nil, err
	}
	return standby.ReadPublished(published)
}
