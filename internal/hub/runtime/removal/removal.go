// Package removal is the one way in which the hub takes something from a member: it deletes BundleDeployments and Works, and only with a
// cause.
//
// Its invariant: a cause is a fact, of which the caller has made sure; what cannot be asked, is not allowed, is invalid or is not there
// right now is none.
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

// Cause is the fact by which something is taken from a member.
type Cause string

const (
	// SourceDeleted says that the Bundle or the placement is being deleted, or is gone from the API server.
	SourceDeleted Cause = "SourceDeleted"
	// NoTarget says that the Cluster is there, as the API server has it, and no target of the Bundle is for it.
	NoTarget Cause = "NoTarget"
	// NoMapping says that no BundleNamespaceMapping selects the workspace of the Cluster, and none is invalid.
	NoMapping Cause = "NoMapping"
	// NotPicked says that the policy of the placement does not pick the member, although it knows all that it asks for.
	NotPicked Cause = "NotPicked"
	// NothingLeft says that what the Work had was deleted on the hub, or is not selected any more, each object by a cause of its own.
	NothingLeft Cause = "NothingLeft"
	// Evicted says that somebody evicts the placement from the member.
	Evicted Cause = "Evicted"
	// MemberLeaves says that the MemberCluster is being deleted, as the API server has it, and that
	// what is placed on the member is to be removed.
	MemberLeaves Cause = "MemberLeaves"
)

// RecordGone says that the record of a member is gone: two reads of the API server with a pause between them have not found
// it. Nothing goes from a member for that: it is a cause only to end what the hub gave the member on the hub.
const RecordGone Cause = "RecordGone"

// Reasons of the conditions that ask a user to confirm.
const (
	// ReasonHeld is of the condition Processed of a Bundle that many Clusters would lose.
	ReasonHeld = "RemovalHeld"
	// ReasonTakeover is of the condition Processed of a Bundle that another hub has delivered, and
	// of which this one would change something.
	ReasonTakeover = "TakeoverHeld"
	// ReasonUnfounded is of the condition ResourceSelected of a placement: something that was
	// selected is missing without a cause.
	ReasonUnfounded = "RemovalUnfounded"
	// ReasonWithheld is of the same condition: the author of the placement may not read something.
	// The condition asks only if that was placed before.
	ReasonWithheld = "AuthorMayNotRead"
	// ReasonRefused is of the same condition: the author of an envelope may not do on the hub what
	// the envelope does on members. As above.
	ReasonRefused = "EnvelopeNotPermitted"
)

// fewest is how many may always lose something, unless they are all that have it.
const fewest = 5

// Many reports whether so many of those that have something are too many to lose it by one change
// of something else: more than five and more than a share of them in percent, or all of several.
func Many(lose, have, share int) bool {
	if share >= 100 {
		return false
	}
	return lose > fewest && 100*lose > share*have || lose == have && lose > 1
}

// ParseShare reads a share in percent, from 0 to 100, with which nothing is ever too many.
func ParseShare(text string) (share int, ok bool) {
	share, err := strconv.Atoi(strings.TrimSpace(text))
	return share, err == nil && IsShare(share)
}

// IsShare reports whether a number is a share in percent.
func IsShare(number int) bool { return number >= 0 && number <= 100 }

var known = map[Cause]bool{SourceDeleted: true, NoTarget: true, NoMapping: true, NotPicked: true, NothingLeft: true, Evicted: true,
	MemberLeaves: true}

// Delete deletes a BundleDeployment or a Work, upon which the agent of the member removes what it has deployed or applied of it. The object
// may be gone already.
func Delete(ctx context.Context, c client.Client, object client.Object, cause Cause) error {
	if !known[cause] {
		return fmt.Errorf("%T %s/%s stays, because there is no cause to remove it: %q", object, object.GetNamespace(), object.GetName(), cause)
	}
	if err := kube.DeleteByUID(ctx, c, object); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Removed from a member", "object", fmt.Sprintf("%T", object), "memberNamespace", object.GetNamespace(),
		"name", object.GetName(), "uid", object.GetUID(), "cause", cause)
	return nil
}

// Namespace deletes a member namespace whose record is gone, by its UID. The access of the agent has ended before, so that no
// agent of ours sees what the namespace takes with it.
func Namespace(ctx context.Context, c client.Client, namespace client.Object, cause Cause) error {
	if cause != RecordGone {
		return fmt.Errorf("namespace %s stays, because that is no cause to delete it: %q", namespace.GetName(), cause)
	}
	if err := kube.DeleteByUID(ctx, c, namespace); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Deleted a member namespace", "namespace", namespace.GetName(), "uid", namespace.GetUID(), "cause", cause)
	return nil
}
