package hub_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// TestHubGoesOnAfterItsClusterWasRestoredFromAnOlderSnapshot lets a hub live through a restore: the
// objects that it has written since the snapshot are there as they were before, with lower resource
// versions than those that it remembers.
func TestHubGoesOnAfterItsClusterWasRestoredFromAnOlderSnapshot(t *testing.T) {
	f := newAlone(t, "")
	a := f.place("a", nil)
	bundle := f.bundle("app", configMap+everywhere)
	old := a.deployment("app", there)
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "WaitApplied(1)")
	before := bundle.ResourceVersion
	restore := testkube.Snapshot(t, f.cluster.Name())
	f.age(2000)
	f.change(bundle, func() { bundle.Spec.Resources[0].Content += "\n# changed" })
	newer := a.deployment("app", func(d fleet.BundleDeployment) error {
		if d.Spec.DeploymentID == old.Spec.DeploymentID {
			return fmt.Errorf("it is still %s", d.Spec.DeploymentID)
		}
		return nil
	})
	lost := f.place("lost", nil)
	lost.deployment("app", there)
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "WaitApplied(2)")
	f.check(f.Get(context.Background(), client.ObjectKeyFromObject(bundle), bundle))
	after := bundle.ResourceVersion
	restore()
	f.check(f.Get(context.Background(), client.ObjectKeyFromObject(bundle), bundle))
	if number(t, bundle.ResourceVersion) >= number(t, after) || number(t, bundle.ResourceVersion) < number(t, before) {
		t.Fatalf("the resource version is %s, was %s when the snapshot was made and %s when it was restored",
			bundle.ResourceVersion, before, after)
	}
	// What the hub does now all has lower versions than what it remembers.
	f.change(bundle, func() { bundle.Spec.Resources[0].Content += "\n# changed in another way" })
	a.deployment("app", func(d fleet.BundleDeployment) error {
		if d.Spec.DeploymentID == old.Spec.DeploymentID || d.Spec.DeploymentID == newer.Spec.DeploymentID {
			return fmt.Errorf("it is still %s", d.Spec.DeploymentID)
		}
		return nil
	})
	f.place("b", nil).deployment("app", there)
	f.place("lost", nil).deployment("app", there)
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "WaitApplied(3)")
	f.token("new-token", "")
	if f.check(f.Get(context.Background(), client.ObjectKeyFromObject(bundle), bundle)); number(t,
		bundle.ResourceVersion) >= number(t, after) {
		t.Errorf("the resource version is %s, above that before the restore, %s: the test proves nothing", bundle.ResourceVersion, after)
	}
}

// TestAMemberWhoseCredentialIsNewerThanARestoredHubKnowsStays restores a hub from a snapshot taken
// before a renewal. The hub issues a number again that the agent already has. Neither the agent nor
// the hub may be taken for a copy.
func TestAMemberWhoseCredentialIsNewerThanARestoredHubKnowsStays(t *testing.T) {
	f := newAlone(t, "")
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "ahead"})
	name := naming.Cluster("ahead")
	first := f.untilReady(name, "Ready")
	f.hub.Kill() // so that nothing is renewed before the snapshot, however long the join took
	f.configure(`{"importLoopback":true,"agentTokenLifetime":"10m"}`)
	restore := testkube.Snapshot(t, f.cluster.Name())
	f.hub.Start()
	uses := func(sequence int64) {
		t.Helper()
		f.eventually(fmt.Sprintf("credential %d is in use", sequence), func() error {
			var cluster fleet.Cluster
			if err := f.get(&cluster, f.workspace, name); err != nil {
				return err
			}
			if cloned := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionCloned); cloned != nil {
				t.Fatalf("it is called a copy: %s", cloned.Message)
			}
			if c := cluster.Status.Credential; c == nil || c.Sequence < sequence {
				return fmt.Errorf("the status says %+v", c)
			}
			return nil
		})
	}
	uses(1)
	renewed := string(m.stored().Data["token"])
	f.age(2000) // otherwise the restored server may reach an observed version before any client requests its version
	restore()
	var restored fleet.Cluster
	if f.check(f.get(&restored, f.workspace, name)); restored.Status.Credential != nil && restored.Status.Credential.Sequence > 0 {
		t.Fatalf("the restored hub knows credential %d: the test proves nothing", restored.Status.Credential.Sequence)
	}
	uses(2)
	stored := m.stored()
	if sequence := string(stored.Data["sequence"]); sequence != "2" || string(stored.Data["token"]) == renewed {
		t.Errorf("the agent has stored credential %s", sequence)
	}
	m.stop()
	m.start()
	m.untilState(agent.Joined, "joined as")
	if last := f.untilReady(name, "Ready"); last.UID != first.UID {
		t.Error("it is another Cluster")
	}
	uses(2)
}

// age lets so many versions pass.
func (f fixture) age(versions int) {
	f.t.Helper()
	const atOnce = 20
	var group sync.WaitGroup
	for i := range atOnce {
		group.Go(func() {
			for n := range versions / atOnce {
				c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: fmt.Sprintf("age-%d-%d", i, n)}}
				if err := f.Create(context.Background(), c); err != nil {
					f.t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

func number(t *testing.T, resourceVersion string) int {
	t.Helper()
	n, err := strconv.Atoi(resourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
