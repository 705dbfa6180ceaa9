package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// crowd is many MemberClusters whose agents are played: each beats every ten seconds.
type crowd struct {
	fixture
	members []*registered

	mu     sync.Mutex
	silent map[string]bool
}

func (f fixture) crowd(size int) *crowd {
	f.t.Helper()
	c := &crowd{fixture: f, silent: map[string]bool{}}
	for i := range size {
		c.members = append(c.members, f.register(fmt.Sprintf("crowd-%d", i), every(10)))
	}
	for _, m := range c.members {
		m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "v1") })
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.beat(ctx)
	}()
	f.t.Cleanup(func() { stop(); <-done })
	for _, m := range c.members {
		m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	}
	return c
}

// beat renews the Leases of those that are not silent, evenly spread over each period.
func (c *crowd) beat(ctx context.Context) {
	ticker := time.NewTicker(10 * time.Second / time.Duration(len(c.members)))
	defer ticker.Stop()
	var beats sync.WaitGroup // none waits for another, however slow the hub's cluster is
	defer beats.Wait()
	for i := 0; ; i = (i + 1) % len(c.members) {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		m := c.members[i]
		c.mu.Lock()
		silent := c.silent[m.name]
		c.mu.Unlock()
		if silent {
			continue
		}
		beats.Go(func() {
			patch := fmt.Sprintf(`{"spec":{"renewTime":%q,"holderIdentity":"played"}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
			if err := m.agent.Patch(ctx, leaseOf(m.namespaceName()), client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil &&
				ctx.Err() == nil {
				c.t.Errorf("%s beats: %v", m.name, err)
			}
		})
	}
}

// silence lets members stop beating, and others beat on.
func (c *crowd) silence(members ...*registered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = map[string]bool{}
	for _, m := range members {
		c.silent[m.name] = true
	}
}

// alarms watches all records from now on, and keeps those that are not shown as well.
type alarms struct {
	mu     sync.Mutex
	raised map[string]string
}

func (f fixture) alarms() *alarms {
	f.t.Helper()
	a := &alarms{raised: map[string]string{}}
	for _, list := range []client.ObjectList{&clusterv1beta1.MemberClusterList{}, &fleet.ClusterList{}} {
		events := f.follow(list)
		go func() {
			for e := range events {
				a.observe(e)
			}
		}()
	}
	return a
}

func (a *alarms) observe(e watch.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch record := e.Object.(type) {
	case *clusterv1beta1.MemberCluster:
		if c := meta.FindStatusCondition(record.Status.Conditions, clusterv1beta1.ConditionHealthy); c == nil ||
			c.Status != metav1.ConditionTrue {
			a.raised[record.Name] = fmt.Sprintf("%+v", c)
		}
	case *fleet.Cluster:
		if c := kube.FindCondition(record.Status.Conditions, fleet.ConditionReady); c == nil || c.Status != "True" {
			a.raised[record.Namespace+"/"+record.Name] = fmt.Sprintf("%+v", c)
		}
	default:
		a.raised["the watch"] = fmt.Sprintf("%s %+v", e.Type, e.Object)
	}
}

// of returns why a record was not well, or "".
func (a *alarms) of(record string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.raised[record]
}

// TestHubKilledUnderFiftyMembersRaisesNoFalseAlarm stops all heartbeats for longer than a budget
// while the hub is away, as if the network was away too. Then all members but one send heartbeats
// again. The new hub detects the lost member by itself, after watching it for a budget.
func TestHubKilledUnderFiftyMembersRaisesNoFalseAlarm(t *testing.T) {
	const budget = 30 * time.Second
	f := newAlone(t, "")
	_, values := f.token("new-token", "")
	c := f.crowd(47)
	var others []string
	for _, m := range c.members[1:] {
		others = append(others, m.name)
	}
	for _, id := range []string{"a", "b", "c"} {
		f.join(values, map[string]any{"clientID": id})
		others = append(others, f.workspace+"/"+f.untilReady(naming.Cluster(id), "Ready").Name)
	}
	alarms := f.alarms()

	f.hub.Kill()
	c.silence(c.members...)
	// The others are silent for longer than the budget, most of it while no hub runs, and beat again
	// long before the new hub has waited for that.
	again := time.AfterFunc(budget+time.Second, func() { c.silence(c.members[0]) })
	defer again.Stop()
	<-time.After(budget * 2 / 3)
	started := time.Now().Truncate(time.Second) // as precise as a condition
	f.hub.Start()
	f.register("proof").until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin") // the new hub works
	up := time.Now()
	lost := c.members[0].until("Healthy", metav1.ConditionFalse, "AgentLost").LastTransitionTime
	if lost.Sub(started) < budget || lost.Sub(up) > budget+slack {
		t.Errorf("the silent member was lost %s after the hub was started and %s after it worked, want %s",
			lost.Sub(started), lost.Sub(up), budget)
	}
	f.eventually("the watch shows the member that is lost, so it would show others", func() error {
		if alarms.of(c.members[0].name) == "" {
			return errors.New("it does not")
		}
		return nil
	})
	for _, name := range append(others, "the watch") {
		if why := alarms.of(name); why != "" {
			t.Errorf("a false alarm: %s: %s", name, why)
		}
	}
	if text := f.hub.Log(); strings.Contains(text, "Starting") || !strings.Contains(text, "changed state") {
		t.Errorf("the hub prints more than its own lines, or not even those:\n%s", text)
	}
}
