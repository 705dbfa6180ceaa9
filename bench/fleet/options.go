package main

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	sizes      []int
	kind       string
	concurrent int
	replicas   int
	idle       time.Duration
	silent     int
	leave      int
	phases     []string
	out        string
	rancher    time.Duration
	hubFlags   string
	hold       bool
	audit      bool
	churn      time.Duration
	noise      time.Duration
	outage     time.Duration
	jobs       time.Duration
	seed       uint64
}

// The kinds of agents, and the phases in their order. The first phase always runs.
var (
	agentKinds = []string{"native", "rancher", "kubefleet"}
	allPhases  = []string{
		"join", "idle", "silence", returning, noise, outage, "bundle", "agents", "placement", "restart", "leave", "churn", lost,
	}
)

// returning takes more than ten minutes. Like the phases of a bad network and of a lost hub, it
// runs only on request.
const returning = "return"

// onRequest are the phases that run only if they are named.
var onRequest = []string{returning, noise, outage, lost}

// disturbs reports whether a phase needs connections that can be disturbed.
func (o options) disturbs() bool {
	return o.kind == "native" && (slices.Contains(o.phases, noise) || slices.Contains(o.phases, outage))
}

func parse(arguments []string) (options, error) {
	var o options
	set := flag.NewFlagSet("fleet", flag.ContinueOnError)
	members := set.String("members", "100", "how many members, or several sizes, each on a control plane of its own: 100,1000")
	others := slices.DeleteFunc(slices.Clone(allPhases), func(phase string) bool { return slices.Contains(onRequest, phase) })
	phases := set.String("phases", strings.Join(others, ","),
		"what to measure after the join; restart is a fail-over with two replicas; "+strings.Join(onRequest, ", ")+
			" take many minutes more and are only measured if they are named")
	set.StringVar(&o.kind, "kind", agentKinds[0], "which agents: "+strings.Join(agentKinds, ", "))
	set.IntVar(&o.concurrent, "concurrent", 100, "how many join at once; 0 for all")
	set.IntVar(&o.replicas, "replicas", 1, "replicas of the hub, 1 or 2")
	set.DurationVar(&o.idle, "idle", 3*time.Minute, "how long to measure an idle fleet")
	set.IntVar(&o.silent, "silent", 10, "how many members stop their heartbeats")
	set.IntVar(&o.leave, "leave", 20, "how many members leave at once")
	set.DurationVar(&o.churn, "churn", 0, "how long members join and leave at random, and labels and Bundles change; 0 for not at all")
	set.DurationVar(&o.noise, noise, 5*time.Minute, "how long members have bad networks")
	set.DurationVar(&o.outage, outage, 10*time.Minute, "how long no member reaches the hub")
	set.DurationVar(&o.jobs, "jobs", time.Minute, "how often a CronJob starts a Pod on each member with a native agent; 0 for never")
	set.Uint64Var(&o.seed, "seed", 1, "which random changes")
	set.StringVar(&o.out, "out", "", "directory for results.md, results.json and plots; none if empty")
	set.DurationVar(&o.rancher, "rancher-beat", 15*time.Minute, "how often agents of Rancher Fleet send a heartbeat")
	set.StringVar(&o.hubFlags, "hub-flags", "", "further flags of muster-hub")
	set.BoolVar(&o.hold, "hold", false, "go on after the last phase until interrupted, for a look at the hub")
	set.BoolVar(&o.audit, "audit", false,
		"say by kind what the hub sends to its API server, by an audit log, which costs the API server some of its time")
	if err := set.Parse(arguments); err != nil {
		return o, err
	}
	for _, text := range strings.Split(*members, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 {
			return o, fmt.Errorf("-members %q: write numbers, as in -members 100,1000", *members)
		}
		o.sizes = append(o.sizes, size)
	}
	o.phases = strings.Split(*phases, ",")
	for _, phase := range o.phases {
		if !slices.Contains(allPhases, phase) {
			return o, fmt.Errorf("-phases: there is no %q; there are %s", phase, strings.Join(allPhases, ","))
		}
	}
	if !slices.Contains(agentKinds, o.kind) {
		return o, fmt.Errorf("-kind %q: it is one of %s", o.kind, strings.Join(agentKinds, ", "))
	}
	if o.replicas < 1 || o.replicas > 2 {
		return o, fmt.Errorf("-replicas %d: it is 1 or 2", o.replicas)
	}
	return o, nil
}
