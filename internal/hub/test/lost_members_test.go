package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	muster "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// noOthers removes the members, and the requests of some, that earlier tests left on this control
// plane. The hub starts again without them.
func (f fixture) noOthers() {
	f.t.Helper()
	ctx := context.Background()
	f.hub.Kill()
	for _, list := range []client.ObjectList{&fleet.ClusterRegistrationList{}, &fleet.ClusterList{}, &clusterv1beta1.MemberClusterList{}} {
		f.check(f.List(ctx, list))
		f.check(meta.EachListItem(list, func(o runtime.Object) error {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			left := o.(client.Object)
			return errors.Join(client.IgnoreNotFound(f.Patch(ctx, left, patch)), client.IgnoreNotFound(f.Delete(ctx, left)))
		}))
	}
	f.hub.Start()
}

// longLost writes that the hub has seen no heartbeat of two members for two days. No hub runs.
func (f fixture) longLost(cluster *fleet.Cluster, mc *clusterv1beta1.MemberCluster) {
	f.t.Helper()
	ctx, ago := context.Background(), metav1.NewTime(time.Now().Add(-48*time.Hour).Truncate(time.Second))
	f.check(f.Get(ctx, client.ObjectKeyFromObject(cluster), cluster))
	cluster.Status.Agent.LastSeen = ago
	cluster.Status.Conditions = kube.SetCondition(cluster.Status.Conditions, time.Now(), kube.Condition("Ready", false, "AgentLost", "lost"))
	f.check(f.Status().Update(ctx, cluster))
	f.check(f.Get(ctx, client.ObjectKeyFromObject(mc), mc))
	clusterv1beta1.FindAgent(mc.Status.AgentStatus, clusterv1beta1.MemberAgent).LastReceivedHeartbeat = ago
	meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{
		Type: "Healthy", Status: metav1.ConditionFalse, Reason: "AgentLost", Message: "lost",
	})
	f.check(f.Status().Update(ctx, mc))
}

// annotate sets an annotation, or removes it (null).
func annotate(by client.Client, o client.Object, key, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value)
	return by.Patch(context.Background(), o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// untilTainted waits until the hub has tainted a member, or has removed the taint, and returns the
// time.
func (f fixture) untilTainted(o client.Object, tainted bool) (since time.Time) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%s is tainted: %t", o.GetName(), tainted), func() (err error) {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		at, is := membership.LostSince(o)
		if since = at; is != tainted {
			err = fmt.Errorf("its annotations are %v", o.GetAnnotations())
		}
		return err
	})
	return since
}

// untilLostSays waits until the message about a lost member has a text.
func (f fixture) untilLostSays(o client.Object, text string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%s says %q", o.GetName(), text), func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		var status membership.Status
		switch o := o.(type) {
		case *fleet.Cluster:
			status = membership.ClusterStatus(&o.Status, nil)
		case *clusterv1beta1.MemberCluster:
			status = membership.MemberClusterStatus(&o.Status)
		}
		if status.Reason != "AgentLost" || !strings.Contains(status.Message, text) {
			return fmt.Errorf("it is %s: %s", status.Reason, status.Message)
		}
		return nil
	})
}

// TestMembersWithoutHeartbeatsAreTaintedAndThenRemoved has a Cluster and a MemberCluster that
// stopped two days ago, and a hub that has just started. A tenth of the others must beat first.
func TestMembersWithoutHeartbeatsAreTaintedAndThenRemoved(t *testing.T) {
	f := newAlone(t, `{"forceDeleteWaitTime":"30s","lostMembers":{"taintAfter":"1h","removeAfter":"1m"}}`)
	ctx := context.Background()
	f.noOthers()
	_, values := f.token("new-token", "")
	agent := f.join(values, map[string]any{"clientID": "web"})
	web := f.clusterRecord(naming.Cluster("web"))
	f.untilReady(web.Name, "Ready")
	var others []legacyAgent
	for i := range 9 {
		others = append(others, f.legacyJoinAs(values, fmt.Sprintf("other-%d", i), fmt.Sprintf("r4nd0m-%d", i)))
	}
	beat := func() {
		for _, other := range others {
			f.eventually("an agent of Rancher Fleet beats", func() error { return other.beat(time.Now()) })
		}
	}
	beat()
	c := f.crowd(11)
	edge := c.members[0].record()
	namespace := membership.Namespace(web)

	agent.stop()
	f.hub.Kill()
	c.silence(c.members...)
	f.longLost(web, &edge)
	started := time.Now()
	f.hub.Start()
	f.untilLostSays(web, "the hub taints it muster/lost:NoSchedule at ")
	f.untilLostSays(&edge, "the hub taints it muster/lost:NoSchedule at ")
	f.untilLostSays(web, "muster/lost:NoSchedule once at most a tenth of the members")
	f.untilTainted(web, false)
	c.silence(c.members[0])
	beat()
	for _, o := range []client.Object{web, &edge} {
		if since := f.untilTainted(o, true); since.Sub(started) < 29*time.Second {
			t.Errorf("%s was tainted %s after the start of the hub", o.GetName(), since.Sub(started))
		}
		f.untilLostSays(o, "; the hub removes it at ")
	}
	f.eventually("an Event says so", func() error { return f.event("LostTainted", web.Name, "no heartbeat since") })
	f.othersCannotChange(web, namespace, c.members[1])

	workspace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.workspace}}
	if err := annotate(f, workspace, fleet.AnnotationLostTaintAfter, `"30d"`); !apierrors.IsInvalid(err) {
		t.Errorf("a setting that is no time: %v", err)
	}
	f.check(annotate(f, workspace, fleet.AnnotationLostTaintAfter, `"0"`))
	f.untilTainted(web, false)
	f.check(annotate(f, workspace, fleet.AnnotationLostTaintAfter, "null"))
	f.untilTainted(web, true)

	f.check(mark(f, web, "annotations", `"true"`))
	long := fmt.Sprintf("%q", time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339))
	f.check(errors.Join(annotate(f, web, fleet.AnnotationLost, long), annotate(f, &edge, fleet.AnnotationLost, long)))
	f.untilLostSays(web, "does not remove it, because it is protected by muster/protected")
	f.check(annotate(f, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: others[0].answer["clusterName"]}},
		fleet.AnnotationLost, long))
	f.untilTainted(f.clusterRecord(others[0].answer["clusterName"]), false) // it sends heartbeats

	report := &clusterv1beta1.InternalMemberCluster{}
	f.eventually("the hub asks the agent to leave, and to remove nothing", func() error {
		if err := f.get(report, c.members[0].namespaceName(), edge.Name); err != nil {
			return err
		}
		if report.Spec.State != clusterv1beta1.ClusterStateLeave || report.Spec.LeavePolicy != clusterv1beta1.LeaveOrphan {
			return fmt.Errorf("it asks %+v", report.Spec)
		}
		return nil
	})
	if passed := time.Since(started); passed < time.Minute {
		t.Errorf("the member was removed %s after the start of the hub", passed)
	}
	f.check(mark(f, web, "annotations", "null"))
	f.eventually("the Cluster is gone", func() error { return f.absent(f.get(&fleet.Cluster{}, f.workspace, web.Name)) })
	f.eventually("the member namespace is gone", func() error { return f.absent(f.get(&corev1.Namespace{}, "", namespace)) })
	c.members[0].untilGone()
	var entries muster.AuditEntryList
	f.check(f.List(ctx, &entries, client.InNamespace(f.workspace), client.MatchingFields{"spec.reason": "Removed"}))
	said := f.auditedMember(edge.Name, muster.AuditRemoved)
	for _, entry := range entries.Items {
		said = append(said, entry.Spec)
	}
	if len(said) != 2 || said[0].Object.UID != edge.UID || said[1].Object.UID != web.UID ||
		!strings.Contains(said[1].Message, "its deliveries stay on the member: no heartbeat since ") {
		t.Errorf("the audit has %+v", said)
	}
	for _, kept := range c.members[1:] {
		if mc := kept.record(); mc.DeletionTimestamp != nil {
			t.Errorf("the hub removed %s", kept.name)
		}
	}
}

// othersCannotChange plays a tenant with all rights on Clusters but the verb taint, and another
// member.
func (f fixture) othersCannotChange(cluster *fleet.Cluster, namespace string, other *registered) {
	f.t.Helper()
	tenant, _ := f.userWith(f.workspace, "tenant", rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusters"},
		Verbs: []string{"get", "create", "update", "patch", "cordon", "protect", "quarantine"},
	})
	for what, err := range map[string]error{
		"a tenant removes the taint":   annotate(tenant, cluster, fleet.AnnotationLost, "null"),
		"a tenant postpones a removal": annotate(tenant, cluster, fleet.AnnotationLost, `"2099-01-01T00:00:00Z"`),
		"a tenant marks a removal":     annotate(tenant, cluster, fleet.AnnotationLostRemoved, `"x"`),
		"a tenant changes the settings": annotate(tenant, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.workspace}},
			fleet.AnnotationLostTaintAfter, `"0"`),
		"another member removes the taint": annotate(other.agent, cluster, fleet.AnnotationLost, "null"),
		"another member beats": other.agent.Patch(context.Background(), leaseOf(namespace),
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"renewTime":"2099-01-01T00:00:00.000000Z"}}`))),
	} {
		if !apierrors.IsForbidden(err) {
			f.t.Errorf("%s: %v", what, err)
		}
	}
}
