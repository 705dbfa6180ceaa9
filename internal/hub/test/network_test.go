package hub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// linked is a member that reaches the hub only by a link.
type linked struct {
	*member
	link *testkube.Link
	id   string
}

// behind installs an agent behind a link, and does not start it.
func (f fixture) behind(values map[string]string, id string) linked {
	f.t.Helper()
	l := linked{f.install(values, map[string]any{"clientID": id}), testkube.NewLink(f.t, f.cluster.Config.Host), id}
	var secret corev1.Secret
	f.check(f.get(&secret, l.agentNamespace, naming.AgentBootstrapSecret))
	secret.Data["apiServerURL"] = []byte(l.link.URL)
	f.check(f.Update(context.Background(), &secret))
	return l
}

// until waits until the Cluster is so, and logs how long that took.
func (l linked) until(reason string) fleet.Cluster {
	l.t.Helper()
	begun := time.Now()
	cluster := l.untilReady(naming.Cluster(l.id), reason)
	l.t.Logf("%s: %s after %s", l.id, reason, time.Since(begun).Round(time.Second/10))
	return cluster
}

// beats waits for so many heartbeats.
func (l linked) beats(count int) {
	l.t.Helper()
	var cluster fleet.Cluster
	l.check(l.get(&cluster, l.workspace, naming.Cluster(l.id)))
	seen := map[time.Time]bool{}
	l.eventually(fmt.Sprintf("%s beats %d times", l.id, count), func() error {
		var lease coordinationv1.Lease
		if err := l.get(&lease, cluster.Status.Namespace, naming.HeartbeatLease); err != nil {
			return err
		}
		if seen[lease.Spec.RenewTime.Time] = true; len(seen) <= count {
			return fmt.Errorf("%d times so far", len(seen)-1)
		}
		return nil
	})
}

// leaves deletes the Cluster, after one registration, and waits until it is gone and
// the agent has noticed.
func (l linked) leaves() {
	l.t.Helper()
	var requests fleet.ClusterRegistrationList
	l.check(l.List(context.Background(), &requests, client.InNamespace(l.workspace)))
	if len(requests.Items) != 1 {
		l.t.Errorf("%s has registered %d times", l.id, len(requests.Items))
	}
	begun, cluster := time.Now(), &fleet.Cluster{}
	l.check(l.get(cluster, l.workspace, naming.Cluster(l.id)))
	l.check(l.Delete(context.Background(), cluster))
	l.eventually(l.id+" has left", func() error { return gone(l.get(cluster, l.workspace, cluster.Name)) })
	l.eventually("the agent of "+l.id+" says so", func() error {
		if state, reason, _ := l.agent.Status(); state == agent.Joined {
			return fmt.Errorf("it is %s: %s", state, reason)
		}
		return nil
	})
	l.t.Logf("%s: gone after %s", l.id, time.Since(begun).Round(time.Second/10))
}

func TestAMemberWhoseNetworkWasCutOrWentSilentIsLostAndComesBackByItself(t *testing.T) {
	t.Parallel()
	for id, quality := range map[string]testkube.Quality{"cut": {Cut: true}, "half-open": {Silent: true}} {
		t.Run(id, func(t *testing.T) {
			f := newFixture(t)
			_, values := f.token("new-token", "")
			l := f.behind(values, id)
			l.start()
			first := l.until("Ready")
			l.link.Become(quality)
			l.until("AgentLost")
			l.link.Become(testkube.Quality{})
			if back := l.until("Ready"); back.UID != first.UID {
				t.Error("it is another Cluster")
			}
			l.leaves()
		})
	}
}

func TestAMemberWithASlowOrLossyNetworkJoinsStaysAndLeaves(t *testing.T) {
	t.Parallel()
	for id, quality := range map[string]testkube.Quality{"slow": {Delay: time.Second}, "lossy": {Loss: 0.2}} {
		t.Run(id, func(t *testing.T) {
			f := newFixture(t)
			_, values := f.token("new-token", "")
			l := f.behind(values, id)
			l.link.Become(quality)
			l.start()
			since := kube.FindCondition(l.until("Ready").Status.Conditions, fleet.ConditionReady).LastTransitionTime
			l.beats(4)
			if ready := kube.FindCondition(l.until("Ready").Status.Conditions, fleet.ConditionReady); ready.LastTransitionTime != since {
				t.Errorf("it was not ready all the time: %+v, since %s before", ready, since)
			}
			l.leaves()
		})
	}
}
