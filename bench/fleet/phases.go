package main

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// quiet is the time of few writes after which the hub counts as settled.
const quiet = 5 * time.Second

// idle measures a fleet with nothing but heartbeats.
func (r *run) idle() {
	from, oldest := r.now(), 0.0
	waits := r.standby("process_resident_memory_bytes") / (1 << 20)
	for begun := time.Now(); time.Since(begun) < r.options.idle; time.Sleep(time.Second) {
		if _, s, err := r.leader(); err == nil {
			oldest = max(oldest, s.sum("muster_hub_oldest_beat_age_seconds"))
		}
	}
	to := r.now()
	r.costs(from, to, len(r.members))
	beats := to.accepted - from.accepted
	r.result.add("idle: beats accepted", beats, "beats")
	r.result.add("idle: failed heartbeats", to.failed-from.failed, "heartbeats")
	r.result.add("idle: hub writes per heartbeat", (to.written-from.written)/max(beats, 1), "writes")
	r.result.add("idle: hub reads per heartbeat", (to.read-from.read)/max(beats, 1), "reads")
	r.result.add("idle: oldest heartbeat, of the period", oldest/r.period().Seconds(), "periods")
	r.result.add("idle: members falsely lost", to.lost()-from.lost(), "members")
	r.result.add("idle: members that are lost", float64(to.hub.members("Lost")), "members")
	r.explainLost()
	r.result.add("idle: hub memory per member (RSS)", 1024*to.usage["muster-hub"].RSS/float64(len(r.members)), "KiB")
	if r.options.replicas > 1 {
		r.result.add("idle: memory of the replica that waits (RSS), before", waits, "MiB")
		r.result.add("idle: memory of the replica that waits (RSS), after", r.standby("process_resident_memory_bytes")/(1<<20), "MiB")
	}
}

// explainLost notes the state of Muster agents of lost Clusters.
func (r *run) explainLost() {
	for _, m := range r.members {
		n, ok := m.(*native)
		if !ok {
			return
		}
		var cluster fleet.Cluster
		if err := r.Get(r.ctx, client.ObjectKey{Namespace: r.workspace, Name: n.record()}, &cluster); err == nil &&
			kube.ReasonOf(cluster.Status.Conditions, fleet.ConditionReady) == reasons.AgentLost {
			r.note("%s is lost, and its agent says: %s", n.record(), n.says())
		}
	}
}

// period returns the heartbeat period of the agents.
func (r *run) period() time.Duration {
	switch r.options.kind {
	case "rancher":
		return r.options.rancher
	case "kubefleet":
		return time.Minute
	}
	return liveness.PeriodOf(len(r.members))
}

// silence measures the time until members without heartbeats are lost, and until they are back.
func (r *run) silence() {
	some := r.members[:min(r.options.silent, len(r.members))]
	var ending sync.WaitGroup
	for _, m := range some {
		ending.Go(m.silence)
	}
	ending.Wait()
	begun := time.Now()
	lost := func(count int) func() bool {
		return func() bool {
			_, s, err := r.leader()
			return err == nil && s.members("Lost") >= count
		}
	}
	r.eventually("the first member without a heartbeat is lost", lost(1))
	r.result.add("silence: first member lost", time.Since(begun).Seconds()/r.period().Seconds(), "periods")
	r.eventually("all members without a heartbeat are lost", lost(len(some)))
	r.result.add("silence: all members lost", time.Since(begun).Seconds(), "s")
	if _, s, err := r.leader(); err == nil {
		r.result.add("silence: others falsely lost", float64(s.members("Lost")-len(some)), "members")
	}
	for _, m := range some {
		r.check(m.start())
	}
	took := r.eventually("all lost members are back", func() bool {
		_, s, err := r.leader()
		return err == nil && s.members("Lost") == 0
	})
	r.result.add("silence: all back after their agents start", took.Seconds(), "s")
	r.settled()
}

// bundle measures the roll-out of one Bundle to all members.
func (r *run) bundle() {
	if r.options.kind == "kubefleet" {
		return // Bundles are for Clusters
	}
	from, before := r.now(), r.deployed.bundles.Load()+r.deployed.failures.Load()
	b := r.everywhere("everywhere")
	members := float64(len(r.members))
	if r.options.kind == "native" {
		took := r.eventually("all members have deployed the Bundle", func() bool {
			// for a failure, the status of the Bundle shows whether it came too late
			return r.deployed.bundles.Load()+r.deployed.failures.Load()-before >= int64(len(r.members))
		})
		r.result.add("bundle: deployed by all", took.Seconds(), "s")
		r.untilReady(b)
		r.result.add("bundle: ready on all", time.Since(from.at).Seconds(), "s")
	}
	settled := r.settled()
	to := r.now()
	r.result.add("bundle: settled", settled.Sub(from.at).Seconds(), "s")
	r.result.add("bundle: members per second", members/settled.Sub(from.at).Seconds(), "members/s")
	r.costs(from, to, len(r.members))
	r.check(r.Delete(r.ctx, b))
	r.settled()
}

// everywhere creates a Bundle for all members.
func (r *run) everywhere(name string) *fleet.Bundle {
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: name}, Spec: fleet.BundleSpec{
		Resources: []fleet.BundleResource{{Name: "cm.yaml", Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}},
		Targets:   []fleet.BundleTarget{{ClusterSelector: &metav1.LabelSelector{}}},
	}}
	r.check(r.Create(r.ctx, b))
	return b
}

// untilReady waits until a Bundle is ready on all members.
func (r *run) untilReady(b *fleet.Bundle) {
	want := fmt.Sprintf("%d/%d", len(r.members), len(r.members))
	r.eventually("Bundle "+b.Name+" is ready", func() bool {
		r.check(r.Get(r.ctx, client.ObjectKeyFromObject(b), b))
		return b.Status.Display.ReadyClusters == want
	})
}

// agents measures the roll-out of a new version of the agent to all members, in the hub's waves. It
// changes a setting of the hub that all agents follow.
func (r *run) agents() {
	if r.options.kind != "native" {
		return // the hub leaves other agents alone
	}
	from, before := r.now(), r.deployed.agents.Load()+r.deployed.failures.Load()
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubConfigMap}}
	r.check(r.Get(r.ctx, client.ObjectKeyFromObject(settings), settings))
	settings.Data["config"] = `{"importLoopback":true,"agentImagePullPolicy":"Always"}`
	r.check(r.Update(r.ctx, settings))
	took := r.eventually("all agents have the new version", func() bool {
		return r.deployed.agents.Load()+r.deployed.failures.Load()-before >= int64(len(r.members))
	})
	r.result.add("agents: deployed by all", took.Seconds(), "s")
	settled := r.settled()
	to := r.now()
	r.result.add("agents: settled", settled.Sub(from.at).Seconds(), "s")
	r.costs(from, to, len(r.members))
}

// placement measures the placement of ten objects onto at most 100 members.
func (r *run) placement() {
	if r.options.kind == "rancher" {
		return // agents of Rancher Fleet know no Works
	}
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	r.check(r.Create(r.ctx, shop))
	for i := range 9 {
		r.check(r.Create(r.ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop.Name, Name: fmt.Sprintf("settings-%d", i)}, Data: map[string]string{
				"text": fmt.Sprintf("%01000d", i),
			},
		}))
	}
	r.settled()
	from, picked := r.now(), min(100, len(r.members))
	crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: placement.PlacementSpec{
		ResourceSelectors: []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: shop.Name}},
		Policy:            &placement.PlacementPolicy{PlacementType: placement.PickN, NumberOfClusters: new(int32(picked))},
	}}
	r.check(r.Create(r.ctx, crp))
	scheduled := r.eventually("the placement is scheduled", func() bool {
		r.check(r.Get(r.ctx, client.ObjectKeyFromObject(crp), crp))
		return meta.IsStatusConditionTrue(crp.Status.Conditions, "ClusterResourcePlacementScheduled")
	})
	r.result.add("placement: members picked", scheduled.Seconds(), "s")
	if r.options.kind == "native" {
		r.eventually("the placement is available", func() bool {
			r.check(r.Get(r.ctx, client.ObjectKeyFromObject(crp), crp))
			return meta.IsStatusConditionTrue(crp.Status.Conditions, "ClusterResourcePlacementAvailable")
		})
		r.result.add("placement: available on all that are picked", time.Since(from.at).Seconds(), "s")
	}
	r.settled()
	r.costs(from, r.now(), picked)
	r.check(r.Delete(r.ctx, crp))
	r.settled()
}

// restart kills the leading hub. A single replica restarts at once, as a container in its Pod, and
// takes back its Lease. Otherwise the killed replica stays away, as with its node, and the other
// one takes over.
func (r *run) restart() {
	from := r.now()
	leader, _, err := r.leader()
	r.check(err)
	killed := time.Now()
	from.at = killed
	leader.kill(r.options.replicas == 1)
	var next *hub
	r.result.add("restart: leads", r.eventually("a hub leads", func() bool {
		next, _, err = r.leader()
		return err == nil
	}).Seconds(), "s")
	if next == nil {
		return
	}
	knows := func() bool {
		_, s, err := r.leader()
		return err == nil && s.sum("muster_hub_members") >= float64(len(r.members))
	}
	r.eventually("the hub knows all members", knows)
	r.result.add("restart: knows all members", time.Since(killed).Seconds(), "s")
	settled := r.settled()
	r.result.add("restart: settled", settled.Sub(killed).Seconds(), "s")
	if _, s, err := r.leader(); err == nil {
		r.result.add("restart: members that are lost", float64(s.members("Lost")), "members")
	}
	if next == leader { // the usage of another replica since then is unknown
		r.costs(from.fresh(), r.now(), len(r.members))
	}
	if peak, err := rig.Memory(next.PID(), "VmHWM:"); err == nil {
		r.result.add("restart: hub memory, peak", peak, "MiB")
	}
}

// leave deletes the membership objects of some members at once.
func (r *run) leave() {
	staying := len(r.members) - min(r.options.leave, len(r.members))
	leaving := r.members[staying:]
	from := r.now()
	for _, m := range leaving {
		r.check(r.Delete(r.ctx, r.recordOf(m)))
	}
	took := r.eventually("the Clusters and MemberClusters are gone", func() bool {
		return !slices.ContainsFunc(leaving, func(m member) bool {
			return r.Get(r.ctx, client.ObjectKeyFromObject(r.recordOf(m)), r.recordOf(m)) == nil
		})
	})
	r.result.add("leave: records gone", took.Seconds(), "s")
	r.settled()
	r.costs(from, r.now(), len(leaving))
	for _, m := range leaving {
		m.silence()
	}
	r.members = r.members[:staying]
}

func (r *run) recordOf(m member) client.Object {
	if r.options.kind == "kubefleet" {
		return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.record()}}
	}
	return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: m.record()}}
}

// join makes all members join, a bounded number of them at once.
func (r *run) join(size int) {
	r.phase = "join"
	from := r.now()
	concurrent := r.options.concurrent
	if concurrent == 0 {
		concurrent = size
	}
	started, took, progress := map[member]time.Time{}, []time.Duration{}, time.Now()
	for next := 0; (next < size || len(started) > 0) && time.Since(progress) < 2*time.Minute; time.Sleep(10 * time.Millisecond) {
		for ; next < size && len(started) < concurrent; next++ {
			m := r.newMember(next)
			r.members = append(r.members, m)
			started[m] = time.Now()
			r.check(m.start())
		}
		for m, at := range started {
			if m.joined() {
				took, progress = append(took, time.Since(at)), time.Now()
				delete(started, m)
			}
		}
	}
	elapsed := progress.Sub(from.at).Seconds()
	slices.Sort(took)
	r.result.add("join: failed", float64(size-len(took)), "members")
	r.result.add("join: rate", float64(len(took))/elapsed, "members/s")
	r.result.add("join: p50", rig.Percentile(took, 0.5).Seconds(), "s")
	r.result.add("join: p99", rig.Percentile(took, 0.99).Seconds(), "s")
	if r.options.kind == "native" {
		r.eventually("all agents are managed", func() bool { return r.deployed.agents.Load() >= int64(len(took)) })
		r.result.add("join: all managed", time.Since(from.at).Seconds(), "s")
	}
	settled := r.settled()
	r.result.add("join: settled", settled.Sub(from.at).Seconds(), "s")
	to := r.now()
	r.costs(from, to, len(took))
	rate := r.result.value("raw-write ceiling before")
	r.result.add("join: hub writes per second, of the ceiling", 100*(to.written-from.written)/elapsed/math.Max(rate, 1), "%")
}

func (r *run) newMember(i int) member {
	switch r.options.kind {
	case "rancher":
		return r.newRancher(i)
	case "kubefleet":
		return r.newKubeFleet(i)
	}
	return r.newNative(i)
}
