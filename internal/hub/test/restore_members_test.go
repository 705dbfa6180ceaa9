package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// again gives the agent the values of another registration token.
func (e *elsewhere) again(token string) {
	e.t.Helper()
	_, values := e.token(token, "")
	from := e.install(values, map[string]any{})
	var secret corev1.Secret
	e.check(e.get(&secret, from.agentNamespace, naming.AgentBootstrapSecret))
	e.check(e.on.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.agent.agentNamespace, Name: secret.Name}, Data: secret.Data,
	}))
}

// uidOf returns the UID of the ConfigMap of a release, or "" if there is none.
func (e *elsewhere) uidOf(name string) string {
	e.t.Helper()
	var found corev1.ConfigMap
	if err := e.on.get(&found, e.target, name); err != nil {
		e.check(gone(err))
		return ""
	}
	return string(found.UID)
}

// TestMembersThatJoinedLeftAndGotBundlesSinceTheSnapshotLoseNothing restores the hub's cluster from
// a snapshot of before all of that.
func TestMembersThatJoinedLeftAndGotBundlesSinceTheSnapshotLoseNothing(t *testing.T) {
	f := newAlone(t, "")
	stays, left, joins := f.elsewhere("stays"), f.neighbour().elsewhere("left"), f.neighbour()
	stays.release()
	left.release()
	first := f.untilReady(stays.name, "Ready")
	restore := testkube.Snapshot(t, f.cluster.Name())

	joined := joins.elsewhere("joins")
	joined.release()
	stays.bundle("later", "defaultNamespace: "+stays.target+strings.ReplaceAll(configMap, "WORKSPACE", "later")+everywhere)
	changed := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: stays.workspace, Name: "app"}}
	stays.change(changed, func() { changed.Spec.Resources[0].Content += "data: {a: changed}\n" })
	value := func() string {
		var cm corev1.ConfigMap
		f.check(stays.on.get(&cm, stays.target, stays.workspace))
		return cm.Data["a"]
	}
	stays.eventually("both Bundles are delivered", func() error {
		if value() != "changed" || stays.uidOf("later") == "" {
			return fmt.Errorf("it has %q, and the later one %q", value(), stays.uidOf("later"))
		}
		return nil
	})
	stays.untilBundle("later", fleet.ConditionReady, corev1.ConditionTrue)
	f.check(f.Delete(context.Background(), left.record()))
	left.untilGone()
	before := []string{stays.uidOf(stays.workspace), stays.uidOf("later"), left.uidOf(left.workspace), joined.uidOf(joined.workspace)}
	f.age(2000) // otherwise the restored server may reach an observed version before any client requests its version

	restore()
	restored := time.Now()
	joined.eventually("the agent that joined since says what to do", func() error {
		state, reason, _ := joined.agent.agent.Status()
		if state != agent.Waiting || !strings.Contains(reason, "give the cluster a new registration token") {
			return fmt.Errorf("it is %s: %s", state, reason)
		}
		return nil
	})
	_, reason, _ := joined.agent.agent.Status()
	t.Logf("after %s the agent that joined since says: %s", time.Since(restored).Round(time.Second), reason)
	stays.eventually("the Bundle is as it was when the snapshot was made", func() error {
		if now := value(); now != "" {
			return fmt.Errorf("it has %q", now)
		}
		return nil
	})
	stays.eventually("the report names the release that the hub does not know", func() error {
		var report clusterv1beta1.InternalMemberCluster
		if err := f.get(&report, naming.MemberNamespace(stays.workspace, stays.name), stays.name); err != nil {
			return err
		}
		if own := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent); own == nil ||
			!strings.Contains(fmt.Sprint(own.Conditions), "HubRestored") {
			return fmt.Errorf("it says %+v", own)
		}
		cluster := stays.record()
		if err := f.get(cluster, stays.workspace, stays.name); err != nil {
			return err
		}
		if pruned := kube.FindCondition(cluster.Status.Conditions, clusterv1beta1.ConditionPruned); pruned == nil ||
			pruned.Reason != "HubRestored" || !strings.Contains(pruned.Message, "/later") {
			return fmt.Errorf("the Cluster says %+v", pruned)
		}
		return nil
	})
	if now := f.untilReady(stays.name, "Ready"); now.UID != first.UID {
		t.Error("the one that stayed is another Cluster")
	}
	// as in the snapshot: it can be asked to leave once more
	left.untilReady(left.name, "Ready")
	left.eventually("the agent that had left is a member as in the snapshot", func() error { // whose record shows at once what it showed then
		if state, reason, _ := left.agent.agent.Status(); state != agent.Joined {
			return fmt.Errorf("it is %s: %s", state, reason)
		}
		return nil
	})
	t.Logf("all is as it was in the snapshot after %s", time.Since(restored).Round(time.Second))

	joined.again("new-token")
	joined.untilReady(joined.name, "Ready")
	joined.bundle("app", "defaultNamespace: "+joined.target+configMap+everywhere)
	joined.untilBundle("app", fleet.ConditionReady, corev1.ConditionTrue)
	stays.bundle("later", "defaultNamespace: "+stays.target+strings.ReplaceAll(configMap, "WORKSPACE", "later")+everywhere)
	stays.untilBundle("later", fleet.ConditionReady, corev1.ConditionTrue)
	if after := []string{stays.uidOf(stays.workspace), stays.uidOf("later"), left.uidOf(left.workspace),
		joined.uidOf(joined.workspace)}; fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("what was delivered is %q, and was %q", after, before)
	}
}
