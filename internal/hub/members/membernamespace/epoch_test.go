package membernamespace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestTheFormOfTheNamespaceIsDecidedWhenAnEpochBegins(t *testing.T) {
	reported := func(features ...string) *clusterv1beta1.InternalMemberCluster {
		return &clusterv1beta1.InternalMemberCluster{Status: clusterv1beta1.InternalMemberClusterStatus{
			AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}, Features: features,
		}}
	}
	knows, earlier := reported(clusterv1beta1.FeatureLongDigest), reported(clusterv1beta1.FeatureHandOver)
	silent := &clusterv1beta1.InternalMemberCluster{}
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", UID: "1"}}
	short, long := naming.MemberNamespaceAt, naming.LongMemberNamespaceAt
	for i, step := range []struct {
		report       *clusterv1beta1.InternalMemberCluster
		before, form func(int, string, string) string
		says         string
	}{
		{nil, short, short, ""},
		{earlier, short, short, ""},
		{knows, short, long, "3"},
		{nil, long, long, "3,4"},
		{silent, long, long, "4,5"},
		{earlier, long, short, "5"},
		{silent, short, short, ""},
		{knows, short, long, "8"},
	} {
		epoch := i + 1
		BeginEpoch(cluster, step.report)
		if got, want := OfCluster(cluster).Namespace, step.form(epoch, "clusters", "web"); got != want {
			t.Errorf("epoch %d: got %s, want %s", epoch, got, want)
		}
		if former, _ := Former(cluster); former.Namespace != step.before(epoch-1, "clusters", "web") {
			t.Errorf("epoch %d: the one before has %s", epoch, former.Namespace)
		}
		if says := cluster.Annotations[clusterv1beta1.AnnotationLongDigests]; says != step.says {
			t.Errorf("epoch %d: the record says %q, want %q", epoch, says, step.says)
		}
	}
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	if BeginEpoch(mc, knows); OfMemberCluster(mc).Namespace != naming.MemberClusterNamespaceAt(1, "m") {
		t.Errorf("the namespace of a MemberCluster is %s", OfMemberCluster(mc).Namespace)
	}
}

func TestOnlyAnAgentThatSaysSoDoesNotKnowItsNamespace(t *testing.T) {
	in := func(list string) Member {
		return OfCluster(&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", UID: "1",
			Annotations: map[string]string{
				clusterv1beta1.AnnotationMemberEpoch: "2", clusterv1beta1.AnnotationLongDigests: list,
			}}})
	}
	reported := func(features ...string) *clusterv1beta1.InternalMemberCluster {
		return &clusterv1beta1.InternalMemberCluster{Status: clusterv1beta1.InternalMemberClusterStatus{
			AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}, Features: features,
		}}
	}
	large := reported()
	metav1.SetMetaDataAnnotation(&large.ObjectMeta, annotationOversized, "300000")
	for _, c := range []struct {
		name   string
		member Member
		report *clusterv1beta1.InternalMemberCluster
		want   bool
	}{
		{"an earlier agent in a namespace with the long form", in("1,2"), reported(clusterv1beta1.FeatureHandOver), true},
		{"one that knows it", in("2"), reported(clusterv1beta1.FeatureLongDigest), false},
		{"an earlier agent in one with the short form", in("1"), reported(), false},
		{"no report", in("2"), nil, false},
		{"a report that no agent has written", in("2"), &clusterv1beta1.InternalMemberCluster{}, false},
		{"a report of which only the health is kept", in("2"), large, false},
	} {
		if got := c.member.Unnamed(c.report); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestNamespacesThatAnEarlierHubLeftAreDisused(t *testing.T) {
	short := func(epoch int) string { return naming.MemberNamespaceAt(epoch, "clusters", "web") }
	long := func(epoch int) string { return naming.LongMemberNamespaceAt(epoch, "clusters", "web") }
	for _, c := range []struct {
		name, epoch, list string
		want              []string
	}{
		{"never revoked", "", "", nil},
		{"never revoked, with a list of somebody's", "0", "0,1", nil},
		{"without long digests", "3", "", []string{short(2)}},
		{"with one now", "3", "3", []string{short(2), short(3)}},
		{"with one before and now", "3", "2,3", []string{long(2), short(2), short(3)}},
		{"revoked twice by an earlier hub", "5", "3", []string{short(4), long(3), short(3)}},
		{"with a list of somebody's", "2", "x,-1,0,7", []string{short(1)}},
	} {
		record := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", UID: "1", Annotations: map[string]string{
			clusterv1beta1.AnnotationMemberEpoch: c.epoch, clusterv1beta1.AnnotationLongDigests: c.list,
		}}}
		var got []string
		for _, m := range Disused(record) {
			if got = append(got, m.Namespace); !m.ending {
				t.Errorf("%s: %s is in use", c.name, m.Namespace)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	mc := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: "m", Annotations: map[string]string{clusterv1beta1.AnnotationMemberEpoch: "2", clusterv1beta1.AnnotationLongDigests: "1,2"},
		},
	}
	if all := Disused(mc); len(all) != 1 || all[0].Namespace != naming.MemberClusterNamespaceAt(1, "m") {
		t.Errorf("of a MemberCluster: %v", all)
	}
}

func TestOnlyAClusterOfTheSameWorkspaceIsNamedAsTheOneThatHasTheNamespace(t *testing.T) {
	m := OfCluster(&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", UID: "1"}})
	of := func(workspace, name, managed string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{fleet.LabelManaged: managed},
			Annotations: map[string]string{fleet.AnnotationClusterNamespace: workspace, fleet.LabelCluster: name},
		}}
	}
	for _, c := range []struct {
		name      string
		namespace *metav1.PartialObjectMetadata
		says, not string
	}{
		{"of the same workspace", of("clusters", "shop", "true"), "is the member namespace of Cluster clusters/shop:", "delete it"},
		{"of another workspace", of("secret", "shop", "true"), "is the member namespace of a Cluster in another workspace:", "secret"},
		{"not the hub's", of("secret", "shop", ""), "was not created for this Cluster: delete it", "secret"},
		{"forged as its own", of("clusters", "web", "true"), "was not created for this Cluster: delete it", "member namespace"},
		{"unknown", &metav1.PartialObjectMetadata{}, "was not created for this Cluster: delete it", "member namespace"},
	} {
		if says := m.Taken(c.namespace); !strings.Contains(says, c.says) || strings.Contains(says, c.not) {
			t.Errorf("%s: %s", c.name, says)
		}
	}
	if says := m.Taken(nil); !strings.Contains(says, "was not created for this Cluster") {
		t.Errorf("without a namespace: %s", says)
	}
}
