package membercluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/audit"
	"github.com/muster-fleet/muster/internal/naming"
)

// described formats an identity as an AuditEntry shows it.
func described(s rbacv1.Subject) string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", s.Kind, s.Namespace, s.Name)), " ")
}

// policyAuthor is the admission policy of the chart for the authors of MemberClusters' identities.
// Without the policy the author is unknown.
const policyAuthor = "muster-member-author"

// auditRights writes the new holder of the member namespace to the audit, before the RoleBinding
// names it.
func (c *Controller) auditRights(ctx context.Context, o observed, before *rbacv1.RoleBinding) error {
	own := o.ExchangedSubject()
	fact := rightsFact(o, slices.DeleteFunc(slices.Clone(before.Subjects), func(s rbacv1.Subject) bool { return s == own }))
	if fact == nil {
		return nil
	}
	fact.Namespace = c.SystemNamespace
	c.Audit.Attribute(ctx, fact, policyAuthor, o.identityBy, "decided")
	return c.Audit.Write(ctx, *fact)
}

// rightsFact returns the audit entry for new rights of a MemberCluster's identity, possibly taken
// from a previous holder; nil if no rights change.
func rightsFact(o observed, had []rbacv1.Subject) *audit.Fact {
	fact := &audit.Fact{Spec: v1alpha1.AuditEntrySpec{
		Object: v1alpha1.AuditObject{Kind: "MemberCluster", Name: o.Name, UID: o.UID}, Identity: described(o.identity),
	}}
	switch ready := meta.FindStatusCondition(o.before.Conditions, clusterv1beta1.ConditionReadyToJoin); {
	case len(had) == 0 && ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == o.generation:
		return nil // the RoleBinding was deleted by mistake
	case len(had) == 0:
		fact.Spec.Reason, fact.ID = v1alpha1.AuditGranted, []string{string(o.UID), naming.KeyHash(identityKey(o.identity))}
		fact.Spec.Message = fmt.Sprintf("%s was given the rights of MemberCluster %s in namespace %s", fact.Spec.Identity, o.Name, o.Namespace)
	case len(had) == 1 && identityKey(had[0]) == identityKey(o.identity):
		return nil
	default:
		fact.Spec.Reason, fact.ID = v1alpha1.AuditDisplaced, []string{string(o.UID), strconv.FormatInt(o.generation, 10)}
		fact.Spec.Displaced = &v1alpha1.DisplacedIdentity{Identity: described(had[0])}
		fact.Spec.Message = fmt.Sprintf("%s takes MemberCluster %s over from %s, whose rights in namespace %s end",
			fact.Spec.Identity, o.Name, described(had[0]), o.Namespace)
	}
	return fact
}
