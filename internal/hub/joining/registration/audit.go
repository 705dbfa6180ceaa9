package registration

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	muster "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/joining/admission"
	"github.com/muster-fleet/muster/internal/hub/members/audit"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

// Admission policies of the chart for attributing annotations to users.
const (
	policyRequester = "muster-registration-token"
	policyApprover  = admission.RegistrationApproval
)

// The hub writes an entry first, and then stores the irrevocable step. A hub killed in between
// repeats the step. The repeated entry exists already.

// fact returns the common part of all entries about a request.
func (c *Controller) fact(r *fleet.ClusterRegistration, o observation, reason muster.AuditReason, id ...string) audit.Fact {
	object := muster.AuditObject{Kind: "Cluster", Namespace: r.Namespace, Name: o.newName}
	if o.match != nil {
		object.Name, object.UID = o.match.Name, o.match.UID
	}
	return audit.Fact{Namespace: r.Namespace, ID: append([]string{string(r.UID)}, id...), Spec: muster.AuditEntrySpec{
		Reason: reason, Object: object, Request: &muster.AuditObject{
			Kind: "ClusterRegistration", Namespace: r.Namespace, Name: r.Name, UID: r.UID,
		},
		Token: o.tokenName, ClientID: r.Spec.ClientID, Key: o.key,
	}}
}

// requester returns the requester of a request, if the policy has checked it: the policy checks
// only accounts of the workspace.
func requester(r *fleet.ClusterRegistration) string {
	user := r.Annotations[fleet.AnnotationRequester]
	if !strings.HasPrefix(user, "system:serviceaccount:"+r.Namespace+":") {
		return ""
	}
	return user
}

// auditGrant writes the entry about a grant. At this time the credential is issued and not yet
// readable.
func (c *Controller) auditGrant(ctx context.Context, r *fleet.ClusterRegistration, o observation) error {
	fact := c.fact(r, o, muster.AuditGranted)
	fact.Spec.Message = fmt.Sprintf("ClusterRegistration %s was granted: its agent (%s) is Cluster %s/%s",
		r.Name, kindOf(o), r.Namespace, o.match.Name)
	if o.returns() {
		fact.Spec.Reason = muster.AuditRenewalGap
		fact.Spec.Message = fmt.Sprintf("ClusterRegistration %s was granted without a token that is good: it is signed with the key of Cluster "+
			"%s/%s, whose credential has run out", r.Name, r.Namespace, o.match.Name)
	}
	c.Audit.Attribute(ctx, &fact, policyRequester, requester(r), "asked")
	return c.Audit.Write(ctx, fact)
}

func kindOf(o observation) membership.AgentKind {
	if o.native {
		return membership.Native
	}
	return membership.Legacy
}

// auditDisplacement writes the entry about the end of an identity. It runs before the hub replaces
// the key pinned to the Cluster, and then the account.
func (c *Controller) auditDisplacement(ctx context.Context, r *fleet.ClusterRegistration, o observation,
	account *corev1.ServiceAccount) error {
	if holder := o.matches[0].holder; holder != holderAlive && holder != holderLost {
		return nil
	}
	if account.UID == "" || membernamespace.IssuedFor(account, r) {
		return nil
	}
	if err := c.mayReplace(ctx, r, account); err != nil {
		return err
	}
	before := account.Annotations[fleet.AnnotationRegistration]
	fact := c.fact(r, o, muster.AuditDisplaced, string(account.UID))
	fact.Spec.Displaced = &muster.DisplacedIdentity{
		AccountUID: account.UID, Request: before, RequestUID: membernamespace.IssuedForUID(account),
		Key: o.match.Annotations[fleet.AnnotationAgentKey],
	}
	fact.Spec.Message = fmt.Sprintf("the agent (%s) of ClusterRegistration %s takes Cluster %s/%s over from the agent of "+
		"ClusterRegistration %s, whose credentials end",
		kindOf(o), r.Name, r.Namespace, o.match.Name, before)
	c.Audit.Attribute(ctx, &fact, policyRequester, requester(r), "asked")
	return c.Audit.Write(ctx, fact)
}

// auditVerdict writes the entry about an approval or a denial, until the status of the request
// stores it.
func (c *Controller) auditVerdict(ctx context.Context, r *fleet.ClusterRegistration, o observation, d decision) error {
	var fact audit.Fact
	needed, _ := o.approvalNeeded()
	switch {
	case needed != "" && o.isApproved(needed) && (d.action == grant || !covers(o.approvedFor, needed)):
		if covers(o.approvedFor, needed) { // the status alone does not prove the existence of the entry
			needed = o.approvedFor
		}
		fact = c.fact(r, o, muster.AuditApproved, needed, strconv.FormatInt(r.Generation, 10))
		fact.Spec.Message = fmt.Sprintf("ClusterRegistration %s, which waited for approval (%s), was approved%s",
			r.Name, needed, o.approvalReason)
	case d.state == fleet.RegistrationDenied && d.reason == fleet.ReasonNotApproved && o.reason != fleet.ReasonNotApproved:
		fact = c.fact(r, o, muster.AuditDenied)
		fact.Spec.Message = fmt.Sprintf("ClusterRegistration %s, which waited (%s), was denied%s",
			r.Name, cmp.Or(o.reason, "unseen"), o.approvalReason)
	default:
		return nil
	}
	c.Audit.Attribute(ctx, &fact, policyApprover, r.Annotations[fleet.AnnotationApprovedBy], "decided")
	return c.Audit.Write(ctx, fact)
}
