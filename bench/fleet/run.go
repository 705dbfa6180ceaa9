package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// member is a simulated member of any kind.
type member interface {
	// start starts the agent, again after silence. silence ends it without a message to the hub.
	start() error
	silence()
	// joined reports whether the hub has accepted a heartbeat.
	joined() bool
	// record returns the name of the Cluster or MemberCluster.
	record() string
}

// run is the simulation of a fleet of one size.
type run struct {
	client.Client
	t         testing.TB
	ctx       context.Context
	options   options
	cluster   testkube.Cluster
	admin     rest.Interface
	workspace string
	values    map[string]string
	bootstrap client.Client
	hubs      []*hub
	members   []member
	deployed  deployed
	// ends counts the hubs that ended by themselves.
	ends   atomic.Int64
	result *result
	phase  string
	// patience bounds each wait of a phase.
	patience time.Duration
}

// simulate measures a fleet of a size on a control plane of its own.
func simulate(t testing.TB, o options, size int) *result {
	r := &run{t: t, ctx: context.Background(), options: o, patience: 10*time.Minute + time.Duration(size)*100*time.Millisecond}
	r.result = &result{Members: size, Kind: o.kind, Replicas: o.replicas, Begun: time.Now().UTC().Truncate(time.Second)}
	r.setUp(fmt.Sprintf("fleet-%d", size))
	stop := make(chan struct{})
	go r.progress(stop)
	r.ceiling("before")
	r.join(size)
	phases := map[string]func(){
		"idle": r.idle, "silence": r.silence, "return": r.comeBack, noise: r.noise, outage: r.outage, "bundle": r.bundle,
		"agents": r.agents, "placement": r.placement, "restart": r.restart, "leave": r.leave, "churn": r.churn, lost: r.lose,
	}
	for _, name := range allPhases[1:] {
		if slices.Contains(o.phases, name) {
			r.phase = name
			phases[name]()
		}
	}
	r.phase = "end"
	r.ceiling("after")
	r.result.add("hubs that ended by themselves", float64(r.ends.Load()), "processes")
	r.result.add("answers to deliveries that failed", float64(r.deployed.failures.Load()), "answers")
	if problem := r.deployed.problem.Load(); problem != nil {
		r.note("the last of them: %v", *problem)
	}
	if o.hold {
		fmt.Fprintf(os.Stderr, "holding; the control plane is in %s\n", r.cluster.Dir)
		select {}
	}
	close(stop)
	for _, h := range r.hubs {
		h.kill(false)
	}
	for _, m := range r.members {
		m.silence()
	}
	testkube.Discard(r.cluster.Name())
	return r.result
}

func (r *run) setUp(name string) {
	flags := []string{"--default-limits"}
	if r.options.audit {
		flags = append(flags, "--audit")
	}
	cluster := testkube.Start(r.t, name, flags...)
	cluster.InstallHub(r.t)
	r.use(cluster)
	workspace := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "clusters-", Labels: map[string]string{"muster/placement": "true"}},
	}
	r.check(r.Create(r.ctx, workspace))
	r.workspace = workspace.Name
	path := kubeconfig(r.t, r.cluster)
	for i := range r.options.replicas {
		h := startHub(r.t, path, fmt.Sprintf("muster-hub-%d", i), strings.Fields(r.options.hubFlags))
		r.hubs = append(r.hubs, h)
		go r.supervise(h)
	}
	var err error
	r.values, err = rig.Token(r.ctx, r.Client, r.workspace, "fleet")
	r.check(err)
	r.bootstrap, err = r.as(r.values["token"])
	r.check(err)
	r.eventually("there is a namespace for identities", func() bool {
		return r.Get(r.ctx, client.ObjectKey{Name: naming.MemberSystemNamespace}, &corev1.Namespace{}) == nil
	})
}

// use makes a cluster the one of the hub.
func (r *run) use(cluster testkube.Cluster) {
	clientset, err := kubernetes.NewForConfig(cluster.Config)
	r.check(err)
	r.cluster, r.Client, r.admin = cluster, cluster.Client(r.t), clientset.Discovery().RESTClient()
}

func (r *run) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// eventually waits until a condition holds, and returns the time it took. It notes a condition that
// never held.
func (r *run) eventually(what string, is func() bool) time.Duration {
	begun := time.Now()
	for !is() {
		if time.Since(begun) > r.patience {
			r.note("not so after %s: %s", r.patience, what)
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(begun)
}

// ceiling measures the capacity of the API server, for comparison with all other figures.
func (r *run) ceiling(when string) {
	rate, err := rig.Ceiling(r.ctx, r.Client, r.workspace)
	if err != nil {
		r.note("measuring the ceiling: %.300v", err)
	}
	r.result.add("raw-write ceiling "+when, rate, "writes/s")
}

// progress prints a line every few seconds.
func (r *run) progress(stop chan struct{}) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		_, s, err := r.leader()
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s %d members, %s: no hub leads\n", time.Now().Format(time.TimeOnly), r.result.Members, r.phase)
			continue
		}
		fmt.Fprintf(os.Stderr, "%s %d members, %s: online %d, lost %d, agents deployed %d, bundles %d, works %d, queued %.0f, hub %.0f MiB, "+
			"%.0f s of processor, %.0f writes\n",
			time.Now().Format(time.TimeOnly), r.result.Members, r.phase, s.members("Online"), s.members("Lost"), r.deployed.agents.Load(),
			r.deployed.bundles.Load(),
			r.deployed.works.Load(), s.queued(), s.sum("process_resident_memory_bytes")/(1<<20), s.sum("process_cpu_seconds_total"), s.writes())
	}
}
