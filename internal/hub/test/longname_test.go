package hub_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// longTail ends the names of Clusters whose member namespaces have 20 bits of a digest. The name of
// such a namespace is cut within the last word, whatever the name of the workspace is: at a dash it
// would have 24 bits.
const longTail = "production-primaryclusteroftheshopinthedata"

// colliding returns a name that begins with a given one, for a Cluster with a given member
// namespace, whose name has 20 bits of a digest.
func colliding(t *testing.T, workspace, begin, namespace string) string {
	t.Helper()
	head, digest := namespace[:len(namespace)-5], namespace[len(namespace)-5:]
	full, key := []byte("cluster-"+workspace+"-"+begin), []byte(workspace+"::"+begin)
	if !strings.HasPrefix(string(full), strings.TrimSuffix(head, "-")) {
		t.Fatalf("no namespace of %s/%s begins with %s", workspace, begin, head)
	}
	for i := range int64(1 << 24) { // of which one in a million fits
		inner := sha256.Sum256(strconv.AppendInt(key, i, 10))
		end := hex.AppendEncode([]byte("-"), inner[:6])
		sum := sha256.Sum256(append(strconv.AppendInt(full, i, 10), end...))
		if hex.EncodeToString(sum[:3])[:5] != digest {
			continue
		}
		if name := begin + strconv.FormatInt(i, 10); naming.MemberNamespace(workspace, name) == namespace {
			return name
		}
	}
	t.Fatal("no name collides")
	return ""
}

// otherWorkspace creates a workspace for Clusters with names that begin with longTail. Their member
// namespaces begin like the namespaces of this workspace's Clusters with names that begin with a-.
func (f fixture) otherWorkspace() string {
	f.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.workspace + "-a"}}
	f.check(f.Create(context.Background(), namespace))
	f.t.Cleanup(func() { _ = f.Delete(context.Background(), namespace) }) // the control plane may be gone
	return namespace.Name
}

// TestNoTenantTakesTheNamespaceOfTheNextEpoch: a tenant of another workspace creates a Cluster
// whose member namespace has the name that a Cluster would have after its next revocation, with
// 20 bits of a digest.
func TestNoTenantTakesTheNamespaceOfTheNextEpoch(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	victim := f.clusterRecord("a-" + longTail)
	victim.Spec.ClientID = "victim"
	f.check(f.Create(ctx, victim))
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "victim"})
	f.untilReady(victim.Name, "Ready")
	f.untilFeature(victim)
	m.stop()

	next, tenant := naming.MemberNamespaceAt(1, f.workspace, victim.Name), f.otherWorkspace()
	taking := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: colliding(t, tenant, longTail, next)}, Spec: fleet.ClusterSpec{ClientID: "t"},
	}
	f.check(f.Create(ctx, taking))
	f.eventually("the tenant's Cluster has the namespace", func() error {
		var is corev1.Namespace
		if err := f.get(&is, "", next); err != nil {
			return err
		}
		if of := is.Annotations[fleet.AnnotationClusterNamespace]; of != tenant {
			return fmt.Errorf("it is of %q", of)
		}
		return nil
	})

	f.check(revoke(f.Client, f.clusterRecord(victim.Name), `"true"`))
	f.untilRevoked(victim.Name)
	f.check(revoke(f.Client, f.clusterRecord(victim.Name), "null"))
	f.untilReady(victim.Name, "IdentityMissing")
	_, values = f.token("another-token", "")
	m.bootstrap(values)
	m.start() // with its key: another agent would have to be approved
	f.eventually("the agent has a credential for the namespace with a long digest", func() error {
		if _, namespace := m.credential(); namespace != naming.LongMemberNamespaceAt(1, f.workspace, victim.Name) {
			return fmt.Errorf("its namespace is %s", namespace)
		}
		return nil
	})
	f.untilReady(victim.Name, "Ready")
}

// untilFeature waits until the agent of a Cluster reports that it knows names with a long digest.
func (f fixture) untilFeature(cluster *fleet.Cluster) {
	f.t.Helper()
	f.eventually("the agent reports what it knows", func() error {
		var report clusterv1beta1.InternalMemberCluster
		if err := f.get(&report, membernamespace.OfCluster(cluster).Namespace, cluster.Name); err != nil {
			return err
		}
		if !strings.Contains(fmt.Sprint(report.Status.Features), clusterv1beta1.FeatureLongDigest) {
			return fmt.Errorf("it reports %v", report.Status.Features)
		}
		return nil
	})
}

// TestACollidingClusterIsNamedWithinItsWorkspaceOnly: the message of NamespaceTaken is no oracle
// for the Clusters of others.
func TestACollidingClusterIsNamedWithinItsWorkspaceOnly(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	first := f.clusterRecord("a-" + longTail)
	first.Spec.ClientID = "first"
	f.check(f.Create(ctx, first))
	namespace := naming.MemberNamespace(f.workspace, first.Name)
	f.eventually("the first has its namespace", func() error { return f.get(&corev1.Namespace{}, "", namespace) })
	tenant := f.otherWorkspace()
	for _, c := range []struct{ workspace, begin, says, not string }{
		{f.workspace, first.Name, "is the member namespace of Cluster " + f.workspace + "/" + first.Name, "another workspace"},
		{tenant, longTail, "is the member namespace of a Cluster in another workspace", first.Name},
	} {
		second := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.workspace, Name: colliding(t, c.workspace, c.begin, namespace)}}
		second.Spec.ClientID = "second"
		f.check(f.Create(ctx, second))
		f.eventually("the second says who has the namespace", func() error {
			if err := f.Get(ctx, client.ObjectKeyFromObject(second), second); err != nil {
				return err
			}
			ready := kube.FindCondition(second.Status.Conditions, fleet.ConditionReady)
			if ready == nil || ready.Reason != "NamespaceTaken" || !strings.Contains(ready.Message, c.says) ||
				strings.Contains(ready.Message, c.not) {
				return fmt.Errorf("it says %v", ready)
			}
			return nil
		})
	}
}

// TestAnAgentThatDoesNotKnowItsNamespaceIsNamed plays an agent of an earlier version, by what that
// reports, which is installed after an epoch began with a long digest.
func TestAnAgentThatDoesNotKnowItsNamespaceIsNamed(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	web := f.knownLong("web")
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "web"})
	f.untilReady("web", "Ready")
	f.untilFeature(web)
	bearer, namespace := m.credential()
	m.stop()
	report := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	f.check(f.as(bearer).Status().Patch(ctx, report,
		client.RawPatch("application/merge-patch+json", []byte(`{"status":{"features":["HandOver"]}}`))))
	cluster := f.untilReady("web", "AgentTooOld")
	said := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady).Message
	for _, text := range []string{namespace, "upgrade it with helm", "revoke this Cluster once more"} {
		if !strings.Contains(said, text) {
			t.Errorf("it does not say %q: %s", text, said)
		}
	}
	f.check(revoke(f.Client, f.clusterRecord("web"), `"true"`))
	f.untilRevoked("web")
	f.check(revoke(f.Client, f.clusterRecord("web"), "null"))
	f.eventually("such an agent knows the next namespace", func() error {
		return f.get(&corev1.Namespace{}, "", naming.MemberNamespaceAt(2, f.workspace, "web"))
	})
}

// knownLong creates a Cluster that was revoked once, and whose member namespace has
// a long digest since.
func (f fixture) knownLong(name string) *fleet.Cluster {
	f.t.Helper()
	cluster := f.clusterRecord(name)
	cluster.Spec.ClientID = name
	cluster.Annotations = map[string]string{clusterv1beta1.AnnotationMemberEpoch: "1", clusterv1beta1.AnnotationLongDigests: "1"}
	f.check(f.asHub().Create(context.Background(), cluster))
	return cluster
}

// TestTheNamespaceThatAnEarlierHubMadeMeanwhileEnds: a hub of an earlier version knows only the
// short form of the name, and has the member use another namespace for as long as it runs.
func TestTheNamespaceThatAnEarlierHubMadeMeanwhileEnds(t *testing.T) {
	f := newFixture(t)
	cluster := f.clusterRecord("web")
	cluster.Spec.ClientID = "web"
	cluster.Annotations = map[string]string{clusterv1beta1.AnnotationMemberEpoch: "1"}
	f.createdBeforeThePolicy(cluster)
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "web"})
	f.untilReady("web", "Ready")
	bearer, namespace := m.credential()
	m.stop()
	if short := naming.MemberNamespaceAt(1, f.workspace, "web"); namespace != short {
		t.Fatalf("its namespace is %s, want %s", namespace, short)
	}
	f.check(merge(f.asHub(), f.clusterRecord("web"), `{"metadata":{"annotations":{"`+clusterv1beta1.AnnotationLongDigests+`":"1"}}}`))
	f.eventually("the namespace is gone", func() error { return gone(f.get(&corev1.Namespace{}, "", namespace)) })
	f.refused("it lists", f.as(bearer).List(context.Background(), &fleet.BundleDeploymentList{}, client.InNamespace(namespace)))
	f.untilReady("web", "IdentityMissing")
}

// TestATenantDoesNotChooseTheFormOfANamespace has a tenant with all rights on Clusters try it.
func TestATenantDoesNotChooseTheFormOfANamespace(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	const key, refused = clusterv1beta1.AnnotationLongDigests, "muster/long-digest-epochs"
	f.knownLong("long")
	f.check(f.Create(ctx, f.clusterRecord("short")))
	creator := f.creator()
	for _, c := range []struct{ what, name, value string }{
		{"taking the list off", "long", "null"}, {"another list", "long", `"1,2"`}, {"an empty list", "long", `""`},
		{"a list where there is none", "short", `"0"`},
	} {
		f.forbids(c.what, refused, func() error {
			return merge(creator, f.clusterRecord(c.name), `{"metadata":{"annotations":{"`+key+`":`+c.value+`}}}`, client.DryRunAll)
		})
	}
	for _, value := range []string{"", "0", "1"} {
		made := f.clusterRecord("made")
		made.Annotations = map[string]string{key: value}
		f.forbids("a Cluster with the list "+value, refused, func() error { return creator.Create(ctx, made.DeepCopy(), client.DryRunAll) })
	}
	f.check(merge(creator, f.clusterRecord("long"), `{"metadata":{"labels":{"a":"b"}}}`, client.DryRunAll))
	f.check(creator.Create(ctx, f.clusterRecord("made"), client.DryRunAll))
}
