package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/naming"
)

// state is the usage up to a moment.
type state struct {
	at                  time.Time
	hub, api            samples
	usage               map[string]rig.Usage
	accepted, failed    float64
	written, read, used float64
	audit               rig.Audit
}

// now returns the state of the leading replica.
func (r *run) now() state {
	s := state{at: time.Now(), api: r.apiServer()}
	leader, hub, err := r.leader()
	if err == nil {
		s.hub, s.written, s.read, s.used = hub, hub.writes(), hub.reads(), hub.sum("process_cpu_seconds_total")
		s.usage, err = rig.Usages(r.cluster.Dir, leader.PID(), os.Getpid())
	}
	if err == nil && r.options.audit {
		s.audit, err = rig.MarkAudit(r.cluster.Dir)
	}
	if err != nil {
		r.note("%v", err)
	}
	s.accepted, s.failed = beats()
	return s
}

// beats returns the numbers of accepted and failed heartbeats of all agents.
func beats() (accepted, failed float64) {
	families, err := agent.Metrics().Gather()
	if err != nil {
		return 0, 0
	}
	accepted, failed = float64(upstreamAccepted.Load()), float64(upstreamFailed.Load())
	for _, family := range families {
		if family.GetName() != "muster_agent_heartbeats_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == "accepted" {
				accepted += metric.GetCounter().GetValue()
			} else {
				failed += metric.GetCounter().GetValue()
			}
		}
	}
	return accepted, failed
}

// fresh returns the state of a hub that has just started, without any usage.
func (s state) fresh() state {
	s.hub, s.written, s.read, s.used = nil, 0, 0, 0
	return s
}

// costs adds the usage between two states, for a number of members.
func (r *run) costs(from, to state, members int) {
	took := to.at.Sub(from.at).Seconds()
	per := func(v float64) float64 { return v / float64(max(members, 1)) }
	add := func(what string, value float64, unit string) { r.result.add(r.phase+": "+what, value, unit) }
	add("hub processor time", to.used-from.used, "s")
	add("hub processor", 100*(to.used-from.used)/took, "% of a core")
	add("hub processor time per member", 1000*per(to.used-from.used), "ms")
	add("hub writes per member", per(to.written-from.written), "writes")
	add("hub reads per member", per(to.read-from.read), "reads")
	add("hub memory (RSS)", to.usage["muster-hub"].RSS, "MiB")
	for _, program := range []string{"kube-apiserver", "etcd", "kube-controller-manager"} {
		add(program+" processor", 100*(to.usage[program].CPU-from.usage[program].CPU)/took, "% of a core")
		add(program+" memory (RSS)", to.usage[program].RSS, "MiB")
	}
	add("simulated agents' processor", 100*(to.usage["fleet"].CPU-from.usage["fleet"].CPU)/took, "% of a core")
	add("simulated agents' memory (RSS)", to.usage["fleet"].RSS, "MiB")
	add("admission policies per write", policies(from.api, to.api), "ms")
	r.detail("requests to the API server", from.api.requests(), to.api.requests(), members)
	if r.options.audit {
		asked, err := from.audit.Of("system:serviceaccount:" + naming.SystemNamespace + ":fleet-controller")
		r.check(err)
		counts := map[string]float64{}
		for kind, count := range asked {
			counts[kind] = float64(count)
		}
		r.detail("requests of the hub", nil, counts, members)
	}
	name := func(label func(string) string) string { return label("controller") + " " + label("result") }
	r.detail("reconciles of the hub", from.hub.by("controller_runtime_reconcile_total", name),
		to.hub.by("controller_runtime_reconcile_total", name), members)
}

// detail notes the growth of the figures with the most growth.
func (r *run) detail(what string, from, to map[string]float64, members int) {
	grown := map[string]float64{}
	for key, value := range to {
		if more := value - from[key]; more > 0 {
			grown[key] = more
		}
	}
	keys := slices.SortedFunc(maps.Keys(grown), func(a, b string) int { return int(grown[b]) - int(grown[a]) })
	var words []string
	for _, key := range keys[:min(25, len(keys))] {
		words = append(words, fmt.Sprintf("%s %.0f (%.2f each)", key, grown[key], grown[key]/float64(max(members, 1))))
	}
	r.note("%s in %s: %s", what, r.phase, strings.Join(words, "; "))
}

// note keeps a sentence for the results, and prints it.
func (r *run) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintln(os.Stderr, text)
	r.result.Notes = append(r.result.Notes, text)
}
