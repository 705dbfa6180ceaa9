package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
)

func merge(as client.Client, o client.Object, patch string, options ...client.PatchOption) error {
	return as.Patch(context.Background(), o, client.RawPatch(types.MergePatchType, []byte(patch)), options...)
}

// untilDenied waits until an admission policy refuses what a member tries with its own identity.
func (f fixture) untilDenied(what string, try func() error) {
	f.t.Helper()
	f.eventually(what+" is refused by the policy", func() error {
		if err := try(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "an agent changes neither finalizers") {
			return fmt.Errorf("it says %v", err)
		}
		return nil
	})
}

// TestAMemberCannotKeepItsNamespace plays members of either door that put finalizers on what
// their namespace holds: through the chart's policy, and, as an administrator, on a hub
// cluster that has none.
func TestAMemberCannotKeepItsNamespace(t *testing.T) {
	f := newFixture(t)
	m := f.register("keeps")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	_, values := f.token("new-token", "")
	agent := f.join(values, map[string]any{"clientID": "keeps"})
	cluster := f.untilReady(naming.Cluster("keeps"), "Ready")
	bearer, namespace := agent.credential()
	agent.stop()
	work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: "crp-work"}}
	f.check(f.Create(context.Background(), work))
	const hold = `{"metadata":{"finalizers":["example.com/hold"]}}`
	of := func(namespace, report string) []client.Object {
		return []client.Object{leaseOf(namespace), &clusterv1beta1.InternalMemberCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: report},
		}}
	}
	f.untilDenied("a finalizer on the Lease of a Cluster", func() error { return merge(f.as(bearer), leaseOf(namespace), hold) })
	for _, patch := range []string{
		hold, `{"metadata":{"labels":{"fleet.cattle.io/managed":null}}}`, `{"metadata":{"ownerReferences":null}}`,
		`{"metadata":{"annotations":{"a":"b"}}}`,
		fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, clusterv1beta1.AnnotationWaitingAgent, strings.Repeat("a", 257)),
	} {
		f.untilDenied(patch+" on the Lease", func() error { return merge(m.agent, leaseOf(m.namespaceName()), patch) })
	}
	report := &clusterv1beta1.InternalMemberCluster{}
	f.untilDenied("a finalizer on the report, with the rights of KubeFleet's agent", func() error {
		f.check(f.get(report, m.namespaceName(), m.name))
		report.Finalizers = []string{"example.com/hold"}
		return m.agent.Update(context.Background(), report)
	})
	f.untilDenied("another finalizer on a Work", func() error { return merge(m.agent, work.DeepCopy(), hold) })
	m.check(merge(m.agent, work,
		fmt.Sprintf(`{"metadata":{"finalizers":[%q],"annotations":{%q:"true"}}}`, placement.FinalizerWork, placement.AnnotationRetains)))
	m.check(merge(m.agent, leaseOf(m.namespaceName()),
		fmt.Sprintf(`{"metadata":{"annotations":{%q:"b"}},"spec":{"holderIdentity":"a"}}`, clusterv1beta1.AnnotationWaitingAgent)))

	for _, o := range append(of(m.namespaceName(), m.name), of(namespace, cluster.Name)...) {
		f.check(merge(f, o, hold))
	}
	f.check(merge(f, work, hold))
	f.check(merge(f, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.MemberServiceAccount}}, hold))
	f.check(merge(f, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: naming.MemberClusterRole(m.name)}}, hold))
	f.check(f.Delete(context.Background(), &cluster))
	record := m.record()
	f.check(f.Delete(context.Background(), &record))
	f.eventually("the agent is asked to leave", func() error { return m.answer(metav1.ConditionFalse, "") })
	m.untilGone()
	f.eventually("the Cluster's namespace is gone", func() error { return gone(f.get(&corev1.Namespace{}, "", namespace)) })
}

// TestWhatSomebodyElseMadeInAMemberNamespaceIsLeftToHim: its finalizer keeps the namespace, and
// Kubernetes names it there.
func TestWhatSomebodyElseMadeInAMemberNamespaceIsLeftToHim(t *testing.T) {
	f := newFixture(t)
	m := f.register("foreign")
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	backup := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: "backup", Finalizers: []string{"example.com/hold"}},
	}
	f.check(f.Create(context.Background(), backup))
	record := m.record()
	f.check(f.Delete(context.Background(), &record))
	f.eventually("the namespace names the finalizer", func() error {
		var namespace corev1.Namespace
		if err := f.get(&namespace, "", m.namespaceName()); err != nil {
			return err
		}
		for _, c := range namespace.Status.Conditions {
			if c.Type == corev1.NamespaceFinalizersRemaining && strings.Contains(c.Message, "example.com/hold") {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", namespace.Status.Conditions)
	})
	f.check(merge(f, backup, `{"metadata":{"finalizers":null}}`))
	m.untilGone()
}

// TestRelabelledWorksHinderNobodyElse plays a member that labels a Work of its own as another
// placement's, through the policy and without it.
func TestRelabelledWorksHinderNobodyElse(t *testing.T) {
	f := newFixture(t)
	m := f.joined("relabels", "env=prod")
	shop := f.shop()
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m)
	m.apply(crp.Name+"-work", "")
	f.untilSays(crp, "Available", metav1.ConditionTrue, "")
	other := crp.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Name: "other-" + f.workspace}
	other.Spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickFixed, ClusterNames: []string{"nobody-" + f.workspace}}
	f.check(f.Create(context.Background(), other))
	f.t.Cleanup(func() { f.dispose(other) })
	f.eventually("the other placement has begun", func() error {
		if err := f.get(other, "", other.Name); err != nil {
			return err
		}
		if len(other.Finalizers) == 0 {
			return fmt.Errorf("it has no finalizer")
		}
		return nil
	})
	work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: crp.Name + "-work"}}
	forged := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, placement.LabelParentCRP, other.Name)
	f.untilDenied("a Work labelled for another placement", func() error { return merge(m.agent, work.DeepCopy(), forged) })

	f.check(merge(f, work.DeepCopy(), forged))
	f.check(f.Delete(context.Background(), other))
	f.eventually("the other placement is removed", func() error { return gone(f.get(other, "", other.Name)) })
	f.eventually("the Work is the first one's again", func() error {
		if err := f.get(work, m.namespaceName(), work.Name); err != nil {
			return err
		}
		if work.Labels[placement.LabelParentCRP] != crp.Name {
			return fmt.Errorf("it is labelled %v", work.Labels)
		}
		return nil
	})
	if work.DeletionTimestamp != nil {
		t.Error("the Work was deleted")
	}
}

// TestWorksOfAnEarlierHubAreLabelledWithoutARollOut takes the label off a Work that an earlier hub
// would not have put there.
func TestWorksOfAnEarlierHubAreLabelledWithoutARollOut(t *testing.T) {
	f := newFixture(t)
	m := f.joined("unlabelled", "env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", f.shop()))
	f.untilOn(crp, m)
	m.apply(crp.Name+"-work", "")
	f.untilSays(crp, "Available", metav1.ConditionTrue, "")
	work := &placement.Work{}
	f.check(f.get(work, m.namespaceName(), crp.Name+"-work"))
	before := work.DeepCopy()
	if work.Labels[clusterv1beta1.LabelMemberName] != m.name {
		t.Errorf("it is labelled %v", work.Labels)
	}
	f.check(merge(f, work, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, clusterv1beta1.LabelMemberName)))
	f.eventually("it is labelled again", func() error {
		if err := f.get(work, m.namespaceName(), work.Name); err != nil {
			return err
		}
		if work.Labels[clusterv1beta1.LabelMemberName] != m.name {
			return fmt.Errorf("it is labelled %v", work.Labels)
		}
		return nil
	})
	if work.Generation != before.Generation || work.UID != before.UID {
		t.Errorf("it was written anew: generation %d, before %d", work.Generation, before.Generation)
	}
}

// TestNothingIsPlacedIntoANamespaceThatIsNotTheMembers takes a member's namespace away from it. Any
// user with the right to label namespaces can do the same.
func TestNothingIsPlacedIntoANamespaceThatIsNotTheMembers(t *testing.T) {
	f := newFixture(t)
	m := f.joined("ousted", "env=prod")
	f.check(merge(f, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.namespaceName()}}, `{"metadata":{"ownerReferences":null}}`))
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", f.shop()))
	f.eventually("the placement names the namespace", func() error {
		if err := f.get(crp, "", crp.Name); err != nil {
			return err
		}
		if text := fmt.Sprint(crp.Status); !strings.Contains(text,
			"namespace "+m.namespaceName()+" is missing, is being deleted or was not created for "+m.name) {
			return fmt.Errorf("it says %s", text)
		}
		return nil
	})
	if works := f.works(crp); len(works) > 0 {
		t.Errorf("it was given %d Works", len(works))
	}
}

// TestAReportThatGrowsIsNamedAndHurtsNobody plays a member that writes half a MiB into its report,
// if the API server lets it.
func TestAReportThatGrowsIsNamedAndHurtsNobody(t *testing.T) {
	f := newFixture(t)
	m := f.register("grows")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "v1") })
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	report := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: m.name}}
	large := fmt.Appendf(nil, `{"status":{"properties":{"a":{"value":%q,"observationTime":"2026-01-02T03:04:05Z"}}}}`,
		strings.Repeat("x", 500<<10))
	err := m.agent.Status().Patch(context.Background(), report, client.RawPatch(types.MergePatchType, large))
	if apierrors.IsInvalid(err) {
		return
	}
	f.check(err)
	said := m.until("Supported", metav1.ConditionFalse, "ReportTooLarge")
	if !strings.Contains(said.Message, m.namespaceName()+"/"+m.name+" has 51") {
		t.Errorf("it says %q", said.Message)
	}
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	if got := m.record().Status.Properties; len(got["a"].Value) > 0 {
		t.Errorf("the record has %d bytes of it", len(got["a"].Value))
	}
}

func TestNobodyOfKubernetesItselfIsAMember(t *testing.T) {
	f := newFixture(t)
	m := f.register("builtin")
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	for _, identity := range []rbacv1.Subject{
		{Kind: "Group", Name: "system:authenticated"}, {Kind: "Group", Name: "system:unauthenticated"}, {
			Kind: "Group", Name: "system:serviceaccounts",
		},
		{Kind: "User", Name: "system:anonymous"}, {Kind: "Group", Name: "system:masters"},
	} {
		f.eventually(identity.Name+" is refused", func() error {
			mc := &clusterv1beta1.MemberCluster{
				ObjectMeta: metav1.ObjectMeta{Name: "all-" + f.workspace}, Spec: clusterv1beta1.MemberClusterSpec{Identity: identity},
			}
			err := f.Create(context.Background(), mc)
			if err == nil {
				f.check(f.Delete(context.Background(), mc))
			}
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), identity.Kind+" "+identity.Name+", a name of Kubernetes itself or "+
				"of many users") {
				return fmt.Errorf("creating it: %v", err)
			}
			return nil
		})
		record := m.record()
		record.Spec.Identity = identity
		if err := f.Update(context.Background(), &record); !apierrors.IsInvalid(err) {
			t.Errorf("changing the identity to %s: %v", identity.Name, err)
		}
	}
}

// TestAnIdentityServesOneMember gives the account of one member to a second one by mistake: as it
// is, and as the User that it is.
func TestAnIdentityServesOneMember(t *testing.T) {
	f := newFixture(t)
	first := f.joined("first")
	for _, identity := range []rbacv1.Subject{identityOf(first.name), {
		Kind: "User", Name: "system:serviceaccount:" + naming.MemberSystemNamespace + ":" + first.name,
	}} {
		second := f.register("second"+strings.ToLower(identity.Kind), func(mc *clusterv1beta1.MemberCluster) { mc.Spec.Identity = identity })
		if c := second.until("ReadyToJoin", metav1.ConditionFalse, "IdentityInUse"); !strings.Contains(c.Message,
			"is already the identity of MemberCluster "+first.name) {
			t.Errorf("it says %q", c.Message)
		}
		f.refused("it reads the report of the second", first.agent.Get(context.Background(),
			types.NamespacedName{Namespace: second.namespaceName(), Name: second.name}, &clusterv1beta1.InternalMemberCluster{}))
		f.check(first.answer(metav1.ConditionTrue, "v1"))
		if identity.Kind == rbacv1.UserKind {
			record := first.record()
			f.check(f.Delete(context.Background(), &record))
			f.eventually("the first leaves", func() error { return first.answer(metav1.ConditionFalse, "v1") })
			second.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
			second.agent = first.agent
			f.eventually("the identity serves the second now", func() error { return second.answer(metav1.ConditionTrue, "v1") })
		}
		record := second.record()
		f.check(f.Delete(context.Background(), &record))
		if identity.Kind == rbacv1.UserKind {
			f.eventually("the second leaves", func() error { return second.answer(metav1.ConditionFalse, "v1") })
		}
		second.untilGone()
	}
}

// TestAnAgentOfAClusterIsNoMembersIdentity names a Cluster's agent as the identity of another
// member. A holder of the Cluster's credential would also have the other member's credential.
func TestAnAgentOfAClusterIsNoMembersIdentity(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	agent := f.join(values, map[string]any{"clientID": "both"})
	f.untilReady(naming.Cluster("both"), "Ready")
	bearer, namespace := agent.credential()
	m := f.register("both", func(mc *clusterv1beta1.MemberCluster) {
		mc.Spec.Identity = rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: naming.MemberServiceAccount}
	})
	if c := m.until("ReadyToJoin", metav1.ConditionFalse, "IdentityInUse"); !strings.Contains(c.Message,
		"is already the identity of Cluster "+f.workspace+"/"+naming.Cluster("both")) {
		t.Errorf("it says %q", c.Message)
	}
	f.refused("it reads the report of the member", f.as(bearer).Get(context.Background(),
		types.NamespacedName{Namespace: m.namespaceName(), Name: m.name}, &clusterv1beta1.InternalMemberCluster{}))
}

// TestNobodyElsesAccountIsAMembersIdentity plays a careless administrator. It tries identities that
// RBAC accepts and that belong to many users or to another user.
func TestNobodyElsesAccountIsAMembersIdentity(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	agent := f.join(values, map[string]any{"clientID": "taken"})
	f.untilReady(naming.Cluster("taken"), "Ready")
	_, namespace := agent.credential()
	user := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: "User", Name: "system:serviceaccount:" + namespace + ":" + name}
	}
	for name, c := range map[string]struct {
		identity     rbacv1.Subject
		reason, says string
	}{
		"group": {
			rbacv1.Subject{Kind: "Group", Name: "admins"}, "IdentityInvalid",
			"Group admins, which can have many members: name a ServiceAccount or a User",
		},
		"hub": {
			rbacv1.Subject{Kind: "ServiceAccount", Namespace: naming.SystemNamespace, Name: naming.HubServiceAccount},
			"IdentityInvalid", "of the hub itself",
		},
		"hub-as-user": {user(naming.SystemNamespace, naming.HubServiceAccount), "IdentityInvalid", "of the hub itself"},
		"kube": {
			rbacv1.Subject{Kind: "ServiceAccount", Namespace: "kube-system", Name: "namespace-controller"}, "IdentityInvalid", "of Kubernetes or of",
		},
		"incomplete": {rbacv1.Subject{Kind: "User", Name: "system:serviceaccount:kube"}, "IdentityInvalid", "names no ServiceAccount"},
		"agent-as-user": {user(namespace, naming.MemberServiceAccount), "IdentityInUse",
			"is already the identity of Cluster " + f.workspace + "/" + naming.Cluster("taken")},
		"absent-as-user": {user("fleet-system", "absent-"+f.workspace), "IdentityMissing",
			"kubectl create serviceaccount absent-" + f.workspace + " -n fleet-system"},
	} {
		m := f.register(name, func(mc *clusterv1beta1.MemberCluster) { mc.Spec.Identity = c.identity })
		var said *metav1.Condition
		f.eventually(name+" is refused", func() error {
			record := m.record()
			if said = meta.FindStatusCondition(record.Status.Conditions, "ReadyToJoin"); said == nil || said.Status != metav1.ConditionFalse ||
				said.Reason != c.reason || !strings.Contains(said.Message, c.says) {
				return fmt.Errorf("it says %+v", said)
			}
			return nil
		})
		var bindings rbacv1.RoleBindingList
		f.check(f.List(context.Background(), &bindings, client.InNamespace(m.namespaceName())))
		for _, b := range bindings.Items {
			if c.reason != "IdentityMissing" && len(b.Subjects) > 0 {
				t.Errorf("%s: RoleBinding %s gives rights to %v", name, b.Name, b.Subjects)
			}
		}
	}
}

// TestAnAgentThatHidesItsVersionKeepsNoWideRights: it renews its Lease, which only Muster's does.
func TestAnAgentThatHidesItsVersionKeepsNoWideRights(t *testing.T) {
	f := newFixture(t)
	m := f.register("hides")
	m.eventually("the agent beats", func() error {
		return m.agent.Patch(context.Background(), leaseOf(m.namespaceName()), client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"holderIdentity":"a","renewTime":%q}}`, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))))
	})
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	m.eventually("it may not change its own spec", func() error {
		var report clusterv1beta1.InternalMemberCluster
		if err := f.get(&report, m.namespaceName(), m.name); err != nil {
			return err
		}
		report.Spec.HeartbeatPeriodSeconds = 600
		if err := m.agent.Update(context.Background(), &report); !apierrors.IsForbidden(err) {
			return fmt.Errorf("updating: %v", err)
		}
		return nil
	})
}
