package removal

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

// DeleteWork deletes a Work. The Work is gone when the member's agent has deleted its resources.
// DeleteWork marks the Work first, so the agent does not wait for the hub to write it again.
func DeleteWork(ctx context.Context, c client.Client, work *placement.Work, cause Cause) error {
	if work.DeletionTimestamp != nil {
		return nil
	}
	marked := work.Annotations[placement.AnnotationRemoved] != "" || work.Annotations[placement.AnnotationEvicted] != ""
	if work.Annotations[placement.AnnotationRetains] == "true" && !marked && known[cause] {
		removed := map[string]any{"uid": work.UID, "annotations": map[string]string{placement.AnnotationRemoved: "true"}}
		if err := PatchWork(ctx, c, work, removed); err != nil {
			return err
		}
	}
	return Delete(ctx, c, work, cause)
}

// PatchWork writes metadata of a Work, regardless of concurrent writes by its agent, unless the
// Work is gone.
func PatchWork(ctx context.Context, c client.Client, work *placement.Work, metadata map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("encoding metadata of Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	patched := &placement.Work{}
	patched.Namespace, patched.Name = work.Namespace, work.Name
	if err := c.Patch(ctx, patched, client.RawPatch(types.MergePatchType, patch), kube.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing metadata of Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}
