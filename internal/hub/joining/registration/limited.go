package registration

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// approvalLife is the shortest wait of a request for approval before its deletion.
const approvalLife = 7 * 24 * time.Hour

// tokenLimits holds the limits of a token on its requests, apart from labels and time.
type tokenLimits struct {
	// cluster is the only Cluster of the token; "" for any. mustExist: the hub created the token to
	// import this Cluster.
	cluster   string
	mustExist bool
	// clientID is the only client ID of the token; "" for any.
	clientID string
	// most limits the number of different Clusters of the token; zero for no limit. used lists the
	// registered ones.
	most int
	used []string
	// approval is the way of approving each request.
	approval fleet.TokenApproval
}

func limitsOf(token *fleet.ClusterRegistrationToken) tokenLimits {
	l := tokenLimits{cluster: token.Spec.ClusterName, clientID: token.Spec.ClientID, most: int(ptr.Deref(token.Spec.MaxRegistrations, 0)),
		used: token.Status.Clusters, approval: token.Spec.Approval}
	if owner := kube.ControllerOf(token, fleet.GroupVersion.WithKind("Cluster").GroupKind()); owner != nil {
		l.cluster, l.mustExist = owner.Name, true
	}
	return l
}

// usedUp reports whether the token may not register this Cluster, because it has reached its limit.
func (l tokenLimits) usedUp(cluster string) bool {
	return l.most > 0 && len(l.used) >= l.most && !slices.Contains(l.used, cluster)
}

// unattributed reports whether a request may come from a token that does not permit it.
func (o observed) unattributed() bool { return o.token == tokenUnnamed && o.limitedTokens }

// exceeds returns the decision on a request beyond the limits of its token. The given Cluster is
// the request's target and need not exist.
func (o observed) exceeds(cluster string) (decision, bool) {
	token := fmt.Sprintf("ClusterRegistrationToken %s/%s", o.workspace, o.tokenName)
	switch l := o.limits; {
	case l.clientID != "" && l.clientID != o.clientID:
		return denied(reasons.TokenBoundElsewhere,
			token+" registers the client ID in its spec.clientID only: create a token for this cluster"), true
	case l.cluster != "" && (l.cluster != cluster || len(o.matches) == 0 && (l.mustExist || o.newNameTaken)):
		return denied(reasons.TokenBoundElsewhere, fmt.Sprintf("%s registers Cluster %s only, which has another client ID or is gone: create a "+
			"token for this cluster", token, l.cluster)), true
	case l.usedUp(cluster):
		return o.usedUp(), true
	}
	return decision{}, false
}

func (o observed) usedUp() decision {
	return denied(reasons.TokenUsedUp,
		fmt.Sprintf("ClusterRegistrationToken %s/%s has registered its %d Clusters (spec.maxRegistrations): create another token for this one",
			o.workspace, o.tokenName, o.limits.most))
}

// unapproved returns the decision on a request without a required approval. An approval counts only
// after the hub has requested it: the request may have been created with one.
func (o observed) unapproved() (decision, bool) {
	reason, why := o.approvalNeeded()
	if reason == "" {
		return decision{}, false
	}
	command := fmt.Sprintf("kubectl -n %s annotate clusterregistration %s %s", o.workspace, o.name, fleet.AnnotationApproved)
	pending := func(reason, message string) (decision, bool) {
		return decision{state: fleet.RegistrationPending, reason: reason, message: message}, true
	}
	switch asked := covers(o.reason, reason); {
	case o.isApproved(reason):
		return decision{}, false
	case o.approved == "":
		return pending(reason, fmt.Sprintf("%s: muster approve requests %s/%s, or %s=true (or =false to deny it)", why, o.workspace, o.name,
			command))
	case asked:
		return pending(reason, fmt.Sprintf("annotation %s is neither true nor false: %s=true --overwrite", fleet.AnnotationApproved, command))
	}
	return pending(reasons.ApprovedTooEarly, fmt.Sprintf("%s, and annotation %s was set before the hub waited for an approval: %s- and "+
		"then %s=true",
		why, fleet.AnnotationApproved, command, command))
}

// isApproved reports whether an approval counts for a reason. It must still be set, and be newer
// than the hub's request for it. The status stores the request only. The annotation requires the
// verb approve, and names the approver.
func (o observed) isApproved(reason string) bool {
	return o.approved == membership.Approved && (covers(o.approvedFor, reason) || covers(o.reason, reason))
}

// isDenied reports whether a user has denied the request.
func (o observed) isDenied() bool { return o.approved == membership.Denied }

// covers reports whether an approval for one reason is also enough for another.
func covers(approved, reason string) bool {
	switch approved {
	case reasons.ApprovalRequired:
		return reason == reasons.ApprovalRequired
	case reasons.NotAttributed:
		return reason == reasons.ApprovalRequired || reason == reasons.NotAttributed
	case reasons.HolderLost:
		return reason != reasons.HolderAlive
	case reasons.HolderAlive:
		return true
	}
	return false
}

// approvalNeeded returns the reason why a request needs approval; empty if it needs none.
func (o observed) approvalNeeded() (reason, why string) {
	if len(o.matches) == 1 {
		if reason, why = o.displaces(o.matches[0]); reason != "" {
			return reason, why
		}
	}
	switch {
	case o.attribution.problem != "" && o.limitedTokens:
		return reasons.NotAttributed, fmt.Sprintf("workspace %s has tokens with limits, and the token of this request is unknown: %s; or "+
			"approve it", o.workspace, o.attribution.problem)
	case o.limits.approval == fleet.ApprovalManual:
		return reasons.ApprovalRequired, fmt.Sprintf("ClusterRegistrationToken %s/%s requires approval", o.workspace, o.tokenName)
	case o.limits.approval == fleet.ApprovalCEL && !o.expressionTrue:
		return reasons.ApprovalRequired, fmt.Sprintf("ClusterRegistrationToken %s/%s requires approval, because its spec.approvalExpression %s",
			o.workspace, o.tokenName, o.expressionSays)
	}
	return "", ""
}

// takeUse enters a Cluster in the list of its token before the hub creates anything for the
// Cluster, and returns the resulting decision. Of two requests for the last use, one is denied.
func (c *Controller) takeUse(ctx context.Context, o observation, d decision) (decision, error) {
	if o.limits.most == 0 || slices.Contains(o.limits.used, d.cluster) {
		return d, nil
	}
	key := client.ObjectKeyFromObject(o.registrationToken)
	c.uses.LockKey(key.String())
	defer func() { _ = c.uses.UnlockKey(key.String()) }() // it is locked
	for {
		var token fleet.ClusterRegistrationToken
		if err := c.Live.Get(ctx, key, &token); err != nil {
			return d, fmt.Errorf("reading ClusterRegistrationToken %s: %w", key, err)
		}
		limits := limitsOf(&token)
		switch {
		case token.UID != o.registrationToken.UID:
			return d, fmt.Errorf("ClusterRegistrationToken %s was replaced by another one", key)
		case slices.Contains(limits.used, d.cluster):
			return d, nil
		case limits.usedUp(d.cluster):
			refused := o.usedUp()
			refused.wake = o.end()
			return refused, nil
		}
		after := token.DeepCopy()
		after.Status.Clusters = append(after.Status.Clusters, d.cluster)
		if err := kube.PatchStatus(ctx, c.Client, &token, after); !apierrors.IsConflict(err) {
			return d, err
		}
	}
}

// limitedTokens reports whether a workspace has a token with limits on its clusters.
func (c *Controller) limitedTokens(ctx context.Context, workspace string) (bool, error) {
	var list fleet.ClusterRegistrationTokenList
	if err := c.Client.List(ctx, &list, client.InNamespace(workspace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the ClusterRegistrationTokens of %s: %w", workspace, err)
	}
	return slices.ContainsFunc(list.Items, func(t fleet.ClusterRegistrationToken) bool { return t.Spec.Limited() }), nil
}
