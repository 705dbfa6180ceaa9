package agentbundle

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

func TestTheAgentOfAMemberClusterIsManagedOnlyIfItCanReplaceItself(t *testing.T) {
	type record = clusterv1beta1.MemberCluster
	type report = clusterv1beta1.InternalMemberCluster
	for _, c := range []struct {
		name   string
		change func(*record, *report, *metav1.PartialObjectMetadata)
		want   State
	}{
		{"an agent with the hub's credential", func(*record, *report, *metav1.PartialObjectMetadata) {}, ""},
		{"with the label", func(mc *record, _ *report, _ *metav1.PartialObjectMetadata) {
			mc.Labels = map[string]string{fleet.LabelNonManagedAgent: "true"}
		}, NotManaged},
		{"revoked", func(mc *record, _ *report, _ *metav1.PartialObjectMetadata) {
			mc.Annotations[clusterv1beta1.AnnotationRevoked] = "true"
		}, NotJoined},
		{"the report of another MemberCluster of that name", func(mc *record, _ *report, _ *metav1.PartialObjectMetadata) {
			mc.UID = "other"
		}, NotJoined},
		{"KubeFleet's agent", func(_ *record, r *report, _ *metav1.PartialObjectMetadata) { r.Status.AgentVersion = "" }, ForeignAgent},
		{"no report yet", func(_ *record, r *report, _ *metav1.PartialObjectMetadata) {
			r.Status = clusterv1beta1.InternalMemberClusterStatus{}
		}, NotJoined},
		{"a chart that refuses", func(_ *record, r *report, _ *metav1.PartialObjectMetadata) {
			r.Status.Features = []string{clusterv1beta1.FeatureUpgradedByUser}
		}, UpgradesRefused},
		{"an earlier version", func(_ *record, r *report, _ *metav1.PartialObjectMetadata) { r.Status.Features = nil }, CannotBeManaged},
		{"a namespace that is none", func(_ *record, r *report, _ *metav1.PartialObjectMetadata) {
			r.Status.AgentNamespace = "../kube-system"
		}, CannotBeManaged},
		{"a declined exchange", func(mc *record, _ *report, _ *metav1.PartialObjectMetadata) {
			mc.Annotations[fleet.AnnotationAgentKey] = ""
		}, NoCredential},
		{"the token of its identity, still", func(_ *record, r *report, _ *metav1.PartialObjectMetadata) {
			r.Status.Credential = nil
		}, NotJoined},
		{"the credential of another account", func(_ *record, _ *report, account *metav1.PartialObjectMetadata) {
			account.UID = "new"
		}, NotJoined},
		{"no account", func(_ *record, r *report, account *metav1.PartialObjectMetadata) {
			account.UID, r.Status.Credential.AccountUID = "", ""
		}, NotJoined},
	} {
		mc := &record{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "1", Annotations: map[string]string{fleet.AnnotationAgentKey: "key"}}}
		account := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "a"}}
		said := &report{Status: clusterv1beta1.InternalMemberClusterStatus{
			AgentVersion: "v1", AgentNamespace: "fleet-system", Features: []string{clusterv1beta1.FeatureManagedAgent},
			Credential:  &clusterv1beta1.CredentialInUse{AccountUID: "a"},
			AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}},
		}}
		said.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(mc, clusterv1beta1.GroupVersion.WithKind("MemberCluster"))}
		c.change(mc, said, account)
		if got := memberUnmanaged(mc, account, said, true); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := memberUnmanaged(mc, account, said, false); got != SwitchedOff {
			t.Errorf("%s, with manageAgent=false: %q", c.name, got)
		}
	}
}

func TestEachStateOfAMembersAgentNamesItsRemedy(t *testing.T) {
	o := observedMember{Member: membernamespace.Member{Namespace: "fleet-member-m"}, mc: &clusterv1beta1.MemberCluster{}}
	o.failure = "the hub sent a chart"
	behind := types.NamespacedName{Name: "first"}
	for state, part := range map[State]string{
		Updating: "updates itself", WaitingForTurn: "MemberCluster first first", Offline: "when it is back",
		RolloutStopped: "MemberCluster first did not come back", DidNotComeBack: "the hub sent a chart",
		NotManaged: "helm upgrade", SwitchedOff: "manageAgent", ForeignAgent: "not Muster's", CannotBeManaged: "hub-ca.crt",
		UpgradesRefused: "upgradedByHub", NoCredential: fleet.AnnotationAgentKey, NameTaken: "fleet-member-m/member-agent",
	} {
		said := o.describe(decision{state: state, behind: behind}, nil, "")
		if said.Status != metav1.ConditionFalse || said.Reason != string(state) || !strings.Contains(said.Message, part) ||
			strings.Contains(said.Message, "/first") {
			t.Errorf("%s: %+v", state, said)
		}
	}
	if said := o.describe(decision{state: UpToDate}, nil, ""); said.Status != metav1.ConditionTrue {
		t.Errorf("an agent that is up to date: %+v", said)
	}
	if said := o.describe(decision{state: NotJoined}, nil, ""); said != nil {
		t.Errorf("an agent that has not joined: %+v", said)
	}
}
