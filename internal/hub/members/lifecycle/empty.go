package lifecycle

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

// IsToBeEmptied reports whether the API server has a membership object under deletion with the
// leave policy Delete.
func (c *Controller) IsToBeEmptied(ctx context.Context, record client.Object) (bool, error) {
	now := kube.Whole(record)
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(record), now)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", kube.Describe(c.Client.Scheme(), record), err)
	}
	policy, _ := leavePolicy(now, c.leavePolicy)
	return now.GetUID() == record.GetUID() && now.GetDeletionTimestamp() != nil && policy == clusterv1beta1.LeaveDelete, nil
}
