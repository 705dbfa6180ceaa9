// Package removal is the hub's only way to remove workloads from a member: it deletes
// BundleDeployments and Works, and only with a cause.
//
// Its invariant: a cause is a fact verified by the caller. A failed, forbidden or invalid query and
// a momentary absence are no cause.
package removal

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
)

// Cause is the fact behind a removal from a member.
type Cause string

const (
	// SourceDeleted means: the Bundle or the placement is terminating, or is gone from the API server.
	SourceDeleted Cause = "SourceDeleted"
	// NoTarget means: the Cluster exists on the API server, and no target of the Bundle matches it.
	NoTarget Cause = "NoTarget"
	// NoMapping means: no BundleNamespaceMapping selects the workspace of the Cluster,
	// and none is invalid.
	NoMapping Cause = "NoMapping"
	// NotPicked means: the policy of the placement does not pick the member, although all
	// its inputs are known.
	NotPicked Cause = "NotPicked"
	// NothingLeft means: every object of the Work was deleted on the hub or is no longer selected,
	// each by a cause of its own.
	NothingLeft Cause = "NothingLeft"
	// Evicted means: a user evicts the placement from the member.
	Evicted Cause = "Evicted"
	// MemberLeaves means: the MemberCluster is terminating on the API server, and its leave policy
	// removes the placed objects.
	MemberLeaves Cause = "MemberLeaves"
)

// RecordGone means: the membership object is gone. Two reads of the API server with a pause between
// them have not found it. It justifies no removal from a member, only the end of the member's
// objects on the hub.
const RecordGone Cause = "RecordGone"

// fewest is the number of holders that may lose an object without a confirmation, unless they are
// all of them.
const fewest = 5

// Many reports whether a single change elsewhere takes an object from too many of its holders. Too
// many are more than five and more than a share in percent, or all of several.
func Many(lose, have, share int) bool {
	if share >= 100 {
		return false
	}
	return lose > fewest && 100*lose > share*have || lose == have && lose > 1
}

// ParseShare reads a share in percent, from 0 to 100. With 100 no number is ever too many.
func ParseShare(text string) (share int, ok bool) {
	share, err := strconv.Atoi(strings.TrimSpace(text))
	return share, err == nil && IsShare(share)
}

// IsShare reports whether a number is a share in percent.
func IsShare(number int) bool { return number >= 0 && number <= 100 }

var known = map[Cause]bool{SourceDeleted: true, NoTarget: true, NoMapping: true, NotPicked: true, NothingLeft: true, Evicted: true,
	MemberLeaves: true}

// Delete deletes a BundleDeployment or a Work. The agent of the member then removes the deployed or
// applied resources. The object may be gone already.
func Delete(ctx context.Context, c client.Client, object client.Object, cause Cause) error {
	if !known[cause] {
		return fmt.Errorf("%T %s/%s stays, because there is no cause to remove it: %q", object, object.GetNamespace(), object.GetName(), cause)
	}
	if err := kube.DeleteByUID(ctx, c, object); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Object removed from a member", "object", fmt.Sprintf("%T", object), "memberNamespace", object.GetNamespace(),
		"name", object.GetName(), "uid", object.GetUID(), "cause", cause)
	return nil
}

// Namespace deletes a member namespace without a membership object, by its UID. The access of the
// agent has ended before, so no agent of Muster's sees the deletion of the namespace's content.
func Namespace(ctx context.Context, c client.Client, namespace client.Object, cause Cause) error {
	if cause != RecordGone {
		return fmt.Errorf("namespace %s stays, because that is no cause to delete it: %q", namespace.GetName(), cause)
	}
	if err := kube.DeleteByUID(ctx, c, namespace); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Member namespace deleted", "namespace", namespace.GetName(), "uid", namespace.GetUID(), "cause", cause)
	return nil
}
