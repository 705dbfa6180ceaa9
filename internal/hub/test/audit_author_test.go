package hub_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	muster "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// editor returns a client that may edit the Clusters of the workspace and MemberClusters, and its
// user name.
func (f fixture) editor(name string) (client.Client, string) {
	f.t.Helper()
	verbs := []string{"get", "list", "create", "update", "patch"}
	as, _ := f.userWith(f.workspace, name, rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusters"}, Verbs: verbs,
	})
	user, role := "system:serviceaccount:"+f.workspace+":"+name, metav1.ObjectMeta{Name: f.workspace + "-" + name}
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: role, Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{clusterv1beta1.GroupVersion.Group}, Resources: []string{"memberclusters"}, Verbs: verbs,
			}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: role, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}, Subjects: []rbacv1.Subject{{
				Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user,
			}},
		},
	} {
		f.check(f.Create(context.Background(), object))
		f.t.Cleanup(func() { _ = f.Delete(context.Background(), object) }) // the control plane may be gone
	}
	return as, user
}

// signs is the annotation of a record that names a user, beside others.
func signs(key, user string, others ...string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%s}}}`, strings.Join(append(others, fmt.Sprintf("%q:%q", key, user)), ","))
}

const revoking = `"muster/revoked":"true"`

// auditedMember returns the entries of the audit about a MemberCluster.
func (f fixture) auditedMember(name string, reason muster.AuditReason) []muster.AuditEntrySpec {
	f.t.Helper()
	var list muster.AuditEntryList
	f.check(f.List(context.Background(), &list, client.InNamespace(naming.SystemNamespace), client.MatchingFields{"spec.object.name": name}))
	var found []muster.AuditEntrySpec
	for _, e := range list.Items {
		if e.Spec.Reason == reason {
			found = append(found, e.Spec)
		}
	}
	return found
}

// recalls waits for an entry in the history of a Cluster, and compares its message.
func (f fixture) recalls(name string, reason clusterv1beta1.HistoryReason, message string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("the history of %s has %s", name, reason), func() error {
		cluster := &fleet.Cluster{}
		if err := f.get(cluster, f.workspace, name); err != nil {
			return err
		}
		entries := cluster.Status.History
		for i := range entries {
			if entries[i].Reason == reason {
				if entries[i].Message != message {
					f.t.Errorf("the entry %s says %q, want %q", reason, entries[i].Message, message)
				}
				return nil
			}
		}
		return fmt.Errorf("it has %v", entries)
	})
}

// TestWhoRevokedAMemberOrGaveItAnIdentityStandsInTheAudit plays editors of records who write eve's
// name in the place of their own.
func TestWhoRevokedAMemberOrGaveItAnIdentityStandsInTheAudit(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, values := f.token("new-token", "")
	f.granted(values, "web", nil)
	name := naming.Cluster("web")
	tenant, user := f.editor("tenant")
	other, otherUser := f.editor("other")
	f.eventually("who revokes is written down", func() error {
		cluster := f.clusterRecord(name)
		if err := merge(tenant, cluster, `{"metadata":{"annotations":{`+revoking+`}}}`, client.DryRunAll); err != nil ||
			cluster.Annotations[clusterv1beta1.AnnotationRevokedBy] != user {
			return fmt.Errorf("it has the annotations %v: %w", cluster.Annotations, err)
		}
		return nil
	})
	cluster := f.clusterRecord(name)
	by := func(o client.Object, annotation, want string) {
		t.Helper()
		f.check(f.Get(ctx, client.ObjectKeyFromObject(o), o))
		if got := o.GetAnnotations()[annotation]; got != want {
			t.Errorf("%s is %q, want %q", annotation, got, want)
		}
	}
	_ = merge(other, cluster.DeepCopy(), signs(clusterv1beta1.AnnotationRevokedBy, "eve")) // may be refused, and changes nothing
	by(cluster, clusterv1beta1.AnnotationRevokedBy, "")
	f.check(merge(tenant, cluster.DeepCopy(), signs(clusterv1beta1.AnnotationRevokedBy, "eve", revoking)))
	_ = merge(other, cluster.DeepCopy(), signs(clusterv1beta1.AnnotationRevokedBy, otherUser))
	_ = merge(other, cluster.DeepCopy(), `{"metadata":{"annotations":{"muster/revoked-by":null}}}`)
	by(cluster, clusterv1beta1.AnnotationRevokedBy, user)
	f.untilRevoked(name)
	if found := f.revocations(name); len(found) != 1 || found[0].Who != user {
		t.Errorf("the audit says %+v", found)
	}
	f.recalls(name, clusterv1beta1.HistoryRevoked, user+" revoked the access of the member")
	f.check(revoke(other, cluster.DeepCopy(), "null"))
	by(cluster, clusterv1beta1.AnnotationRevokedBy, "")

	m := f.register("signed")
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	record := m.record()
	m.account(m.name + "-new")
	f.check(merge(tenant, record.DeepCopy(),
		fmt.Sprintf(`{"metadata":{"annotations":{"muster/identity-by":"eve"}},"spec":{"identity":{"name":%q}}}`, m.name+"-new")))
	_ = merge(other, record.DeepCopy(), signs(clusterv1beta1.AnnotationIdentityBy, otherUser))
	by(&record, clusterv1beta1.AnnotationIdentityBy, user)
	f.eventually("the other identity stands in the audit", func() error {
		if found := f.auditedMember(m.name, muster.AuditDisplaced); len(found) != 1 || found[0].Who != user {
			return fmt.Errorf("there is %+v", found)
		}
		return nil
	})
	f.check(merge(other, record.DeepCopy(), signs(clusterv1beta1.AnnotationRevokedBy, "eve", revoking)))
	m.until(clusterv1beta1.ConditionJoined, metav1.ConditionFalse, "Revoked")
	if found := f.auditedMember(m.name, muster.AuditRevoked); len(found) != 1 || found[0].Who != otherUser {
		t.Errorf("the audit says %+v", found)
	}
}

// TestNobodyRevokesInAnothersNameWhereNobodyIsWrittenDown is an API server that serves no
// MutatingAdmissionPolicies.
func TestNobodyRevokesInAnothersNameWhereNobodyIsWrittenDown(t *testing.T) {
	f := newAlone(t, "")
	ctx := context.Background()
	const template = "fleet/templates/admission-records.yaml"
	t.Cleanup(func() { f.cluster.InstallTemplate(t, template) })
	for _, name := range []string{"muster-revocation-author", "muster-member-author"} {
		f.check(f.Delete(ctx, &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	_, values := f.token("new-token", "")
	for _, id := range []string{"unknown", "known"} {
		f.granted(values, id, nil)
	}
	tenant, user := f.editor("tenant")
	other, otherUser := f.editor("other")
	unknown, known := f.clusterRecord(naming.Cluster("unknown")), f.clusterRecord(naming.Cluster("known"))
	f.eventually("nobody is written down", func() error {
		cluster := unknown.DeepCopy()
		if err := merge(tenant, cluster, `{"metadata":{"annotations":{`+revoking+`}}}`, client.DryRunAll); err != nil ||
			cluster.Annotations[clusterv1beta1.AnnotationRevokedBy] != "" {
			return fmt.Errorf("it has the annotations %v: %w", cluster.Annotations, err)
		}
		return nil
	})
	by := clusterv1beta1.AnnotationRevokedBy
	f.denied("to revoke as eve", func() error { return merge(tenant, known.DeepCopy(), signs(by, "eve", revoking)) })
	f.denied("to name eve before", func() error { return merge(tenant, known.DeepCopy(), signs(by, "eve")) })
	f.check(revoke(tenant, unknown.DeepCopy(), `"true"`))
	f.check(merge(tenant, known.DeepCopy(), signs(by, user, revoking)))
	f.denied("to name oneself afterwards", func() error { return merge(other, unknown.DeepCopy(), signs(by, otherUser)) })
	f.denied("to name another afterwards", func() error { return merge(other, known.DeepCopy(), signs(by, otherUser)) })
	for name, who := range map[string]string{unknown.Name: "", known.Name: user} {
		f.untilRevoked(name)
		if found := f.revocations(name); len(found) != 1 || found[0].Who != who ||
			strings.Contains(found[0].Message, "is unknown") != (who == "") {
			t.Errorf("the audit says %+v, want %q", found, who)
		}
		f.recalls(name, clusterv1beta1.HistoryRevoked, cmp.Or(who, "a user")+" revoked the access of the member")
	}
	m := f.register("unsigned")
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	record := m.record()
	f.denied("to name eve for an identity", func() error {
		return merge(tenant, record.DeepCopy(), signs(clusterv1beta1.AnnotationIdentityBy, "eve"))
	})
	if found := f.auditedMember(m.name, muster.AuditGranted); len(found) != 1 || found[0].Who != "" {
		t.Errorf("the audit says %+v", found)
	}
}
