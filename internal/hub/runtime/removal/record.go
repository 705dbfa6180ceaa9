package removal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// mostRecorded is the maximum number of removals noted on the report of a member: 37 bytes each.
const mostRecorded = 200

// Record notes a pending deletion of a BundleDeployment on the report of the member. The note lets
// the agent distinguish a deletion from a restored hub, even after a long absence. A member without
// a report has no agent to read it.
//
// Record skips a BundleDeployment missing on the API server. Such a BundleDeployment may be in the
// cache of a hub with a restored API server, without any deletion.
func Record(ctx context.Context, c client.Client, live client.Reader, report, deployment types.NamespacedName, uid types.UID) error {
	current := kube.Metadata(fleet.GroupVersion.WithKind("BundleDeployment"))
	if err := live.Get(ctx, deployment, current); kube.NotServed(err) || client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading BundleDeployment %s: %w", deployment, err)
	}
	if current.UID != uid {
		return nil
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before := kube.Metadata(clusterv1beta1.GroupVersion.WithKind("InternalMemberCluster"))
		if err := live.Get(ctx, report, before); err != nil {
			return err
		}
		recorded, changed := record(before.Annotations[clusterv1beta1.AnnotationRemoved], string(uid))
		if !changed {
			return nil
		}
		after := before.DeepCopy()
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, clusterv1beta1.AnnotationRemoved, recorded)
		return c.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), kube.FieldOwner)
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("recording on InternalMemberCluster %s that BundleDeployment with UID %s is deleted: %w", report, uid, err)
}

// record appends a UID to the noted ones, and drops the oldest above the maximum.
func record(recorded, uid string) (string, bool) {
	uids := strings.Fields(recorded)
	if slices.Contains(uids, uid) {
		return recorded, false
	}
	uids = append(uids, uid)
	return strings.Join(uids[max(0, len(uids)-mostRecorded):], " "), true
}
