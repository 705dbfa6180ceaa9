package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// survivors are members of either door that beat every ten seconds and to which something was
// delivered, and one more that dies while the hub's etcd is in trouble.
type survivors struct {
	fixture
	cluster *elsewhere
	record  *delivering
	shop    string
	// others is a workspace to which nothing is delivered; dies is a member of it.
	others fixture
	values map[string]string
	dies   *member
	// delivered are the objects on the members.
	delivered map[string]corev1.ConfigMap
}

// survivors makes the members, and starts the hub again whenever it ends, as a kubelet does.
func (f fixture) survivors() *survivors {
	f.t.Helper()
	s := &survivors{
		fixture: f, cluster: f.elsewhere("lives"), record: f.delivering("lives", "env=prod"), shop: f.shop(), others: f.neighbour(),
	}
	mc := s.record.record()
	f.patch(&mc, `{"spec":{"heartbeatPeriodSeconds":10}}`)
	s.cluster.release()
	f.crp(strings.ReplaceAll(prodOnly, "$SHOP", s.shop))
	f.eventually("the MemberCluster has what is placed", func() error { return s.record.has(s.shop) })
	_, s.values = s.others.token("new-token", "")
	s.dies = s.others.join(s.values, map[string]any{"clientID": "dies"})
	s.others.untilReady(naming.Cluster("dies"), "Ready")
	s.delivered = s.configMaps()

	stop, stopped := make(chan struct{}), make(chan struct{})
	f.t.Cleanup(func() { close(stop); <-stopped })
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(time.Second); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
			}
			if f.hub.Ended() {
				f.hub.Start()
			}
		}
	}()
	return s
}

func (s *survivors) configMaps() map[string]corev1.ConfigMap {
	s.t.Helper()
	all := map[string]corev1.ConfigMap{}
	for namespace, name := range map[string]string{s.cluster.target: s.workspace, s.shop: "settings"} {
		var found corev1.ConfigMap
		s.check(s.cluster.on.get(&found, namespace, name))
		all[namespace] = found
	}
	return all
}

// say waits until the hub and the agents say in their logs what is wrong.
func (s *survivors) say(texts ...string) {
	s.t.Helper()
	for who, log := range map[string]func() string{
		"the hub": s.hub.Log, "the agent of a Cluster": s.cluster.agent.logged.String, "that of a MemberCluster": s.record.agent.logged.String,
	} {
		s.eventually(who+" says what is wrong", func() error {
			for line := range strings.Lines(log()) {
				for _, text := range texts {
					if strings.Contains(line, text) {
						s.t.Logf("%s: %s", who, line)
						return nil
					}
				}
			}
			return errors.New(log())
		})
	}
}

// areWell checks the survivors after the trouble, which ended at the given time. Everything must
// continue by itself, and the hub must have marked no living member Lost.
func (s *survivors) areWell(over time.Time) {
	s.t.Helper()
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: s.workspace, Name: "app"}}
	s.change(bundle, func() {
		bundle.Spec.Resources[0].Content += "data: {after: trouble}\n"
	})
	var shop corev1.ConfigMap
	s.check(s.get(&shop, s.shop, "settings"))
	s.change(&shop, func() { shop.Data["a"] = "after" })
	s.eventually("changes reach the members", func() error {
		now := s.configMaps()
		if cm := now[s.cluster.target]; cm.Data["after"] != "trouble" {
			return fmt.Errorf("that of the Bundle has %v", cm.Data)
		}
		if cm := now[s.shop]; cm.Data["a"] != "after" {
			return fmt.Errorf("that of the placement has %v", cm.Data)
		}
		return nil
	})
	s.t.Logf("changes reached the members %s after the trouble", time.Since(over).Round(time.Second/10))
	s.others.join(s.values, map[string]any{"clientID": "joins"})
	s.others.untilReady(naming.Cluster("joins"), "Ready")
	s.t.Logf("a new member was ready %s after the trouble", time.Since(over).Round(time.Second/10))

	// The hub finds out who has died, so that it judges again.
	s.others.untilReady(naming.Cluster("dies"), "AgentLost")
	s.t.Logf("the member that died was lost %s after the trouble", time.Since(over).Round(time.Second/10))
	s.untilReady(s.cluster.name, "Ready")
	s.record.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	for line := range strings.Lines(s.hub.Log()) {
		if lives := strings.Contains(line, "namespace="+s.workspace) ||
			strings.Contains(line, "name="+s.record.name); lives && strings.Contains(line, "to=AgentLost") {
			s.t.Errorf("a member that lives was called lost: %s", line)
		}
	}
	for namespace, now := range s.configMaps() {
		if before := s.delivered[namespace]; before.UID != now.UID {
			s.t.Errorf("the ConfigMap in %s was deleted in between", namespace)
		}
	}
	for who, m := range map[string]*member{"of a Cluster": s.cluster.agent, "of a MemberCluster": s.record.agent} {
		if state, reason, joined := m.agent.Status(); state != agent.Joined || !joined {
			s.t.Errorf("the agent %s is %s: %s", who, state, reason)
		}
		if strings.Contains(m.logged.String(), string(agent.Waiting)) {
			s.t.Errorf("the agent %s took its credential for refused:\n%s", who, m.logged.String())
		}
	}
	mc := s.record.record()
	if left := meta.FindStatusCondition(mc.Status.Conditions, "Joined"); left == nil || left.Status != metav1.ConditionTrue {
		s.t.Errorf("the MemberCluster has %+v", mc.Status.Conditions)
	}
}

// TestWhileTheHubsEtcdRefusesWritesNobodyIsLost raises the alarm that etcd raises when it has
// reached its quota, for longer than a member may be silent: no heartbeat can be written, and
// everything can be read. The leader ends, because it cannot renew its Lease, and the one after it
// begins to judge anew.
func TestWhileTheHubsEtcdRefusesWritesNobodyIsLost(t *testing.T) {
	s := newAlone(t, "", "--leader-elect=true").survivors()
	accept := testkube.RefuseWrites(t, s.fixture.cluster.Name())
	s.dies.stop()
	if err := s.Create(context.Background(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.workspace, Name: "refused"}}); err == nil {
		t.Fatal("a write is accepted: the test proves nothing")
	}
	s.say("database space exceeded")
	<-time.After(4 * period)
	accept()
	s.areWell(time.Now())
}

// period is how often the members beat.
const period = 10 * time.Second
