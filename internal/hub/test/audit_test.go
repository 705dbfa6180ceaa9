package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/google/go-cmp/cmp"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	muster "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// audited returns the entries of the workspace about a request, oldest first.
func (f fixture) audited(r *fleet.ClusterRegistration) []muster.AuditEntry {
	f.t.Helper()
	var list muster.AuditEntryList
	f.check(f.List(context.Background(), &list, client.InNamespace(f.workspace)))
	list.Items = slices.DeleteFunc(list.Items, func(e muster.AuditEntry) bool { return e.Spec.Request == nil || e.Spec.Request.UID != r.UID })
	slices.SortStableFunc(list.Items, func(a, b muster.AuditEntry) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return list.Items
}

// auditedFor lists the reasons of the audit entries about a request.
func (f fixture) auditedFor(r *fleet.ClusterRegistration) []string {
	f.t.Helper()
	var reasons []string
	for _, e := range f.audited(r) {
		reasons = append(reasons, string(e.Spec.Reason))
	}
	slices.Sort(reasons)
	return reasons
}

func (f fixture) auditedAs(r *fleet.ClusterRegistration, reason muster.AuditReason) muster.AuditEntrySpec {
	f.t.Helper()
	for _, e := range f.audited(r) {
		if e.Spec.Reason == reason {
			return e.Spec
		}
	}
	f.t.Fatalf("there is no entry %s about request %s", reason, r.Name)
	return muster.AuditEntrySpec{}
}

// attributed makes requests and approvals as an API server does whose policies are in force, of
// which a test must not be ahead.
func (f fixture) attributed(values map[string]string) {
	f.t.Helper()
	f.eventually("requests and approvals are attributed", func() error {
		r := &fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "probe", Annotations: map[string]string{fleet.AnnotationApproved: "true"}},
		}
		if err := f.Create(context.Background(), r, client.DryRunAll); err != nil || r.Annotations[fleet.AnnotationApprovedBy] == "" {
			return fmt.Errorf("it has the annotations %v: %w", r.Annotations, err)
		}
		r = &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "probe"}}
		if err := f.as(values["token"]).Create(context.Background(), r, client.DryRunAll); err != nil ||
			r.Annotations[fleet.AnnotationRequester] == "" {
			return fmt.Errorf("it has the annotations %v: %w", r.Annotations, err)
		}
		return nil
	})
}

// TestWhoTookAClusterOverStandsInTheAudit lets an agent with another key take a Cluster over with
// an administrator's approval.
func TestWhoTookAClusterOverStandsInTheAudit(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	f.attributed(values)
	first := f.granted(values, "web", nil)
	if diff := cmp.Diff([]string{"Granted"}, f.auditedFor(&first)); diff != "" {
		t.Errorf("of the first request (-want +got):\n%s", diff)
	}
	cluster := &fleet.Cluster{}
	f.check(f.get(cluster, f.workspace, naming.Cluster("web")))
	account := f.accountOf(cluster)

	second := f.mustAsk(values, f.signed(f.keyOf("another"), values, "web", answerKey(t)))
	f.eventually("it waits", func() error { return f.waitsForApproval(&second) })
	if got := f.auditedFor(&second); len(got) > 0 {
		t.Errorf("before anybody has decided there are %v", got)
	}
	rules := rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, Verbs: []string{"get", "patch", "approve"},
	}
	approver, _ := f.userWith(f.workspace, "approver", rules)
	f.eventually("an approver approves", func() error { return f.decide(approver, &second, "true") })
	f.untilState(&second, fleet.RegistrationGranted, "Granted")
	if diff := cmp.Diff([]string{"Approved", "Displaced", "Granted"}, f.auditedFor(&second)); diff != "" {
		t.Fatalf("of the second request (-want +got):\n%s", diff)
	}
	first.UID = account.RequestUID
	displaced := f.auditedAs(&second, muster.AuditDisplaced)
	displaced.Time, displaced.Message = metav1.Time{}, ""
	want := muster.AuditEntrySpec{
		Reason: muster.AuditDisplaced, Token: "new-token", ClientID: "web", Key: fingerprintOf(f.keyOf("another")),
		Object:  muster.AuditObject{Kind: "Cluster", Namespace: f.workspace, Name: cluster.Name, UID: cluster.UID},
		Request: &muster.AuditObject{Kind: "ClusterRegistration", Namespace: f.workspace, Name: second.Name, UID: second.UID},
		Who:     second.Annotations[fleet.AnnotationRequester],
		Displaced: &muster.DisplacedIdentity{
			AccountUID: account.AccountUID, Request: first.Name, RequestUID: first.UID, Key: fingerprintOf(f.keyOf("web")),
		},
	}
	if diff := cmp.Diff(want, displaced); diff != "" || !strings.HasPrefix(want.Who, "system:serviceaccount:"+f.workspace+":new-token") {
		t.Errorf("asked by %s, displaced (-want +got):\n%s", want.Who, diff)
	}
	if by := f.auditedAs(&second, muster.AuditApproved).Who; by != "system:serviceaccount:"+f.workspace+":approver" {
		t.Errorf("it was approved by %q", by)
	}
	f.recalls(cluster.Name, clusterv1beta1.HistoryApproved,
		"system:serviceaccount:"+f.workspace+":approver approved ClusterRegistration "+second.Name)

	third := f.mustAsk(values, f.signed(f.keyOf("third"), values, "web", answerKey(t)))
	f.eventually("it waits", func() error { return f.waitsForApproval(&third) })
	f.check(merge(approver, third.DeepCopy(), fmt.Sprintf(`{"metadata":{"annotations":{%q:"false",%q:"unknown \n key"}}}`,
		fleet.AnnotationApproved, fleet.AnnotationApprovalReason)))
	f.untilState(&third, fleet.RegistrationDenied, "NotApproved")
	if got := third.Status.Message; got != "an approver has denied this request (unknown key)" {
		t.Errorf("the denied request says: %s", got)
	}
	if diff := cmp.Diff([]string{"Denied"}, f.auditedFor(&third)); diff != "" {
		t.Errorf("of the third request (-want +got):\n%s", diff)
	}
	if entry := f.auditedAs(&third, muster.AuditDenied); entry.Who != "system:serviceaccount:"+f.workspace+":approver" ||
		!strings.HasSuffix(entry.Message, "was denied (unknown key)") {
		t.Errorf("it was denied by %q: %s", entry.Who, entry.Message)
	}
}

func fingerprintOf(key credential.AgentKey) string { return credential.Fingerprint(key.Public()) }

// accountOf says for which request the account of a Cluster was made.
func (f fixture) accountOf(cluster *fleet.Cluster) muster.DisplacedIdentity {
	f.t.Helper()
	account := kube.CoreMetadata("ServiceAccount")
	f.check(f.get(account, naming.MemberNamespace(f.workspace, cluster.Name), naming.MemberServiceAccount))
	return muster.DisplacedIdentity{AccountUID: account.UID, RequestUID: types.UID(account.Annotations["muster/cluster-registration-uid"])}
}

func (f fixture) waitsForApproval(r *fleet.ClusterRegistration) error {
	f.check(f.Get(context.Background(), client.ObjectKeyFromObject(r), r))
	if r.Status.State != fleet.RegistrationPending {
		return fmt.Errorf("it is %s for %s", r.Status.State, r.Status.Reason)
	}
	return nil
}

// decide approves or denies a request.
func (f fixture) decide(by client.Client, r *fleet.ClusterRegistration, says string) error {
	return merge(by, r.DeepCopy(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, fleet.AnnotationApproved, says))
}

// TestNobodyApprovesInAnothersName plays an approver who names another user as the approver, and an
// editor who changes the approver's name afterwards.
func TestNobodyApprovesInAnothersName(t *testing.T) {
	f := newFixture(t)
	values := f.stampingToken("careful", fleet.ClusterRegistrationTokenSpec{Approval: fleet.ApprovalManual})
	f.attributed(values)
	r := f.asking(values, "web")
	f.untilState(&r, fleet.RegistrationPending, "ApprovalRequired")
	of := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, Verbs: verbs}
	}
	approver, _ := f.userWith(f.workspace, "approver", of("get", "patch", "approve"))
	editor, _ := f.userWith(f.workspace, "editor", of("get", "patch"))
	f.eventually("the editor may edit", func() error {
		return merge(editor, r.DeepCopy(), `{"metadata":{"annotations":{"note":"x"}}}`, client.DryRunAll)
	})
	why := func(text string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, fleet.AnnotationApprovalReason, text)
	}
	f.denied("a reason without the verb approve", func() error { return merge(editor, r.DeepCopy(), why("trust it")) })
	f.eventually("a long reason of the approver is refused", func() error {
		err := merge(approver, r.DeepCopy(), why(strings.Repeat("x", 513)))
		if err == nil || !strings.Contains(err.Error(), "at most 512 characters") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	forged := fmt.Sprintf(`{"metadata":{"annotations":{%q:"eve"}}}`, fleet.AnnotationApprovedBy)
	f.denied("who has approved what nobody has", func() error { return merge(editor, r.DeepCopy(), forged) })
	if err := merge(editor, r.DeepCopy(), fmt.Sprintf(`{"metadata":{"annotations":{%q:"eve"}}}`,
		fleet.AnnotationRequester)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "does not change") {
		t.Errorf("another requester is answered: %v", err)
	}
	f.eventually("an approver approves, as eve", func() error {
		return merge(approver, r.DeepCopy(),
			fmt.Sprintf(`{"metadata":{"annotations":{%q:"true",%q:"eve"}}}`, fleet.AnnotationApproved, fleet.AnnotationApprovedBy))
	})
	f.denied("another approver", func() error { return merge(editor, r.DeepCopy(), forged) })
	f.denied("no approver", func() error {
		return merge(editor, r.DeepCopy(), fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, fleet.AnnotationApprovedBy))
	})
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	if by := f.auditedAs(&r, muster.AuditApproved).Who; by != "system:serviceaccount:"+f.workspace+":approver" {
		t.Errorf("it was approved by %q", by)
	}
}

// TestNobodyButTheHubWritesTheAudit plays a tenant who may do everything in the workspace, a member
// and the holder of a token.
func TestNobodyButTheHubWritesTheAudit(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, values := f.token("new-token", "")
	agent := f.join(values, map[string]any{"clientID": "web"})
	f.untilReady(naming.Cluster("web"), "Ready")
	var list muster.AuditEntryList
	f.check(f.List(ctx, &list, client.InNamespace(f.workspace)))
	if len(list.Items) != 1 {
		t.Fatalf("there are %d entries", len(list.Items))
	}
	entry := &list.Items[0]
	tenant, _ := f.userWith(f.workspace, "tenant", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	f.eventually("a tenant reads it", func() error { return tenant.Get(ctx, client.ObjectKeyFromObject(entry), entry.DeepCopy()) })
	bearer, _ := agent.credential()
	forged := &muster.AuditEntry{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "forged"}, Spec: *entry.Spec.DeepCopy()}
	for who, as := range map[string]client.Client{"tenant": tenant, "member": f.as(bearer), "holder of a token": f.as(values["token"])} {
		f.denied(who+": to create one", func() error { return as.Create(ctx, forged.DeepCopy()) })
		f.denied(who+": to delete one", func() error { return as.Delete(ctx, entry.DeepCopy()) })
		f.denied(who+": to delete all", func() error { return as.DeleteAllOf(ctx, &muster.AuditEntry{}, client.InNamespace(f.workspace)) })
		f.denied(who+": to keep one for ever", func() error {
			return merge(as, entry.DeepCopy(), `{"metadata":{"finalizers":["example.com/hold"]}}`)
		})
		if err := merge(as, entry.DeepCopy(), `{"spec":{"who":"eve"}}`); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: to change one: %v", who, err)
		}
	}
	if err := merge(f, entry.DeepCopy(), `{"spec":{"who":"eve"}}`); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "never changed") {
		t.Errorf("an administrator changes one: %v", err)
	}
	f.untouched(entry)
}

// TestAGrantIsAuditedOnceHoweverOftenTheHubIsKilled kills the hub between the entry and the status
// that remembers the grant: an admission policy keeps the hub from writing that.
func TestAGrantIsAuditedOnceHoweverOftenTheHubIsKilled(t *testing.T) {
	f := newAlone(t, "")
	_, values := f.token("new-token", "")
	f.granted(values, "web", nil)
	probe := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "probe", AnswerKey: answerKey(t).Public()})
	f.untilState(&probe, fleet.RegistrationGranted, "Granted")
	permit := f.forbid("UPDATE", "fleet.cattle.io", "clusterregistrations/status", "!has(object.status.granted) || !object.status.granted",
		func() error {
			return f.Status().Patch(context.Background(), probe.DeepCopy(),
				client.RawPatch(types.MergePatchType, []byte(`{"status":{"message":"probe"}}`)))
		}, f.workspace)
	bound := f.stampingToken("for-web", fleet.ClusterRegistrationTokenSpec{ClientID: "web"})
	r := f.mustAsk(bound, f.signed(f.keyOf("another"), bound, "web", answerKey(t)))
	want := []string{"Displaced", "Granted"}
	for range 3 {
		f.eventually("the entries are there", func() error {
			if diff := cmp.Diff(want, f.auditedFor(&r)); diff != "" {
				return fmt.Errorf("(-want +got):\n%s", diff)
			}
			return nil
		})
		f.restartHub()
	}
	permit()
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	f.restartHub()
	f.granted(values, "db", nil)
	if diff := cmp.Diff(want, f.auditedFor(&r)); diff != "" {
		t.Errorf("after all that (-want +got):\n%s", diff)
	}
}

// TestWithoutTheKindOfTheAuditClustersJoin deletes the definition of AuditEntries.
func TestWithoutTheKindOfTheAuditClustersJoin(t *testing.T) {
	f := newUndefining(t)
	_, values := f.token("new-token", "")
	f.granted(values, "before", nil)
	const name = "auditentries.muster-fleet.github.io"
	definition := f.undefine(name)
	f.eventually("the definition is gone", func() error { return gone(f.get(definition, "", name)) })
	f.granted(values, "without", nil)
	f.restartHub()
	f.granted(values, "started-without", nil)
	f.cluster.InstallCRDs(t)
	f.restartHub()
	f.eventually("entries are written again", func() error { // the first writes of a new kind can time out
		after := f.granted(values, "after-"+metav1.NowMicro().Format("150405.000000"), nil)
		if diff := cmp.Diff([]string{"Granted"}, f.auditedFor(&after)); diff != "" {
			return fmt.Errorf("with the kind again (-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestAuditEntriesAreKeptAsTheSettingsSay(t *testing.T) {
	f := newAlone(t, `{"audit":{"maxEntries":2}}`)
	_, flooding := f.token("flooding", "")
	_, good := f.token("good", "")
	kept := f.granted(good, "good", nil)
	for i := range 4 {
		f.granted(flooding, fmt.Sprintf("flood-%d", i), nil)
	}
	f.eventually("two are left", func() error {
		var list muster.AuditEntryList
		if err := f.List(context.Background(), &list, client.InNamespace(f.workspace)); err != nil {
			return err
		}
		if len(list.Items) != 2 || len(f.audited(&kept)) != 1 {
			return fmt.Errorf("there are %d, %d of them of the other token", len(list.Items), len(f.audited(&kept)))
		}
		return nil
	})
	f.configure(`{"audit":{"maxEntries":0}}`)
	f.eventually("none is written any more", func() error {
		r := f.granted(good, "off-"+metav1.NowMicro().Format("150405.000000"), nil)
		if entries := f.audited(&r); len(entries) > 0 {
			return fmt.Errorf("there is one of request %s", r.Name)
		}
		return nil
	})
	if len(f.audited(&kept)) != 1 {
		t.Error("what was written before is gone")
	}
}

// TestAnotherIdentityOfAMemberClusterStandsInTheAudit gives a MemberCluster another identity.
func TestAnotherIdentityOfAMemberClusterStandsInTheAudit(t *testing.T) {
	f := newFixture(t)
	m := f.register("audited")
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	record := m.record()
	entries := func(number int) []muster.AuditEntry {
		t.Helper()
		var found []muster.AuditEntry
		f.eventually(fmt.Sprintf("there are %d entries", number), func() error {
			var list muster.AuditEntryList
			if err := f.List(context.Background(), &list, client.InNamespace(naming.SystemNamespace),
				client.MatchingFields{"spec.object.name": m.name}); err != nil {
				return err
			}
			if found = list.Items; len(found) != number {
				return fmt.Errorf("there are %d", len(found))
			}
			return nil
		})
		return found
	}
	if e := entries(1)[0].Spec; e.Reason != muster.AuditGranted || e.Object.UID != record.UID ||
		e.Identity != "ServiceAccount fleet-system "+m.name || e.Who != record.Annotations[clusterv1beta1.AnnotationIdentityBy] {
		t.Errorf("it says %+v", e)
	}
	m.account(m.name + "-new")
	f.check(merge(f, &record, fmt.Sprintf(`{"spec":{"identity":{"name":%q}}}`, m.name+"-new")))
	for _, e := range entries(2) {
		if e.Spec.Reason == muster.AuditGranted {
			continue
		}
		if e.Spec.Reason != muster.AuditDisplaced || e.Spec.Identity != "ServiceAccount fleet-system "+m.name+"-new" ||
			e.Spec.Displaced.Identity != "ServiceAccount fleet-system "+m.name {
			t.Errorf("it says %+v", e.Spec)
		}
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: naming.MemberClusterRoleBinding(m.name)}}
	f.eventually("the record says that of the other identity, too", func() error {
		ready := m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
		if generation := m.record().Generation; ready.ObservedGeneration != generation {
			return fmt.Errorf("it says so of generation %d, and has %d", ready.ObservedGeneration, generation)
		}
		return nil
	})
	f.check(f.get(binding, binding.Namespace, binding.Name))
	before := binding.UID
	f.check(f.Delete(context.Background(), binding))
	f.eventually("deleted rights come back", func() error {
		if err := f.get(binding, binding.Namespace, binding.Name); err != nil || binding.UID == before {
			return fmt.Errorf("reading the binding: %w", err)
		}
		return nil
	})
	entries(2)
}
