package importer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/kube"
)

// imported is a Cluster that was imported an hour ago and whose agent is well.
func imported(change ...func(*observed)) observed {
	generation := int64(3)
	o := observed{
		asked: true, generation: 3, deployed: &generation, settings: "settings", input: "input", agent: agentWell,
		last: &fleet.ImportStatus{Time: metav1.NewTime(now.Add(-time.Hour)), SettingsHash: "settings"},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func never(o *observed)         { o.last, o.deployed = nil, nil }
func turn(o *observed)          { o.slot = now }
func otherSettings(o *observed) { o.settings = "other" }

func failed(input string, by problem, next time.Time) func(*observed) {
	return func(o *observed) { o.history.failed, o.history.problem, o.history.next = input, &by, next }
}

func gone(state agentState, since time.Duration) func(*observed) {
	return func(o *observed) { o.agent, o.history.trouble = state, now.Add(-since) }
}

func healed(times int, ago time.Duration) func(*observed) {
	return func(o *observed) { o.history.healed, o.history.healedAt = times, now.Add(-ago) }
}

func installed(ago time.Duration) func(*observed) {
	return func(o *observed) {
		o.agent, o.history.trouble, o.last.Time = agentAbsent, now.Add(-ago), metav1.NewTime(now.Add(-ago))
	}
}

func looked(times int, ago time.Duration) func(*observed) {
	return func(o *observed) { o.history.looks, o.history.lookedAt = times, now.Add(-ago) }
}

func TestDecide(t *testing.T) {
	soon := now.Add(time.Minute)
	for _, c := range []struct {
		name string
		seen observed
		want decision
	}{
		{"a Cluster without a kubeconfig is left alone", imported(never, func(o *observed) { o.asked = false }), decision{action: idle}},
		{"one with a kubeconfig is imported at once", imported(never), decision{action: try, need: needFirst}},
		{"one that is imported and well is left alone", imported(), decision{action: idle}},
		{"bad input waits for another input", imported(never, failed("input", problem{input: true}, soon)), decision{action: wait, need: needFirst}},
		{"which is tried at once", imported(never, failed("before", problem{input: true}, soon)), decision{action: try, need: needFirst}},
		{"a setback waits for its time", imported(never, failed("input", problem{}, soon)), decision{action: wait, need: needFirst, wake: soon}},
		{"or for another input", imported(never, failed("before", problem{}, soon)), decision{action: try, need: needFirst}},
		{"when the time has come it is tried again", imported(never, failed("input", problem{}, now)), decision{action: try, need: needFirst}},
		{"another generation asks for a turn", imported(func(o *observed) { o.generation = 4 }), decision{action: queue, need: needRedeploy}},
		{"other settings too", imported(otherSettings), decision{action: queue, need: needSettings}},
		{"they wait for the turn", imported(otherSettings, func(o *observed) { o.slot = soon }), decision{action: wait, need: needSettings, wake: soon}},
		{"and are tried when it has come", imported(otherSettings, turn), decision{action: try, need: needSettings}},
		{"a changed Secret too", imported(turn, func(o *observed) { o.secretNewer = true }), decision{action: try, need: needSecret}},
		{"an agent that has just fallen silent may come back by itself", imported(gone(agentLost, time.Second)),
			decision{action: idle, wake: now.Add(lostPatience - time.Second)}},
		{"one that did not is installed again", imported(turn, gone(agentLost, lostPatience)), decision{action: try, need: needHealing}},
		{"if that did not help, the hub looks why", imported(gone(agentLost, time.Hour), healed(1, time.Minute)), decision{action: look}},
		{"an agent whose identity is gone cannot", imported(turn, gone(agentRevoked, 0)), decision{action: try, need: needHealing}},
		{"an agent that was installed just now has time to join", imported(installed(time.Second)), decision{action: idle, wake: now.Add(lookPatience - time.Second)}},
		{"then the hub looks why it does not", imported(installed(lookPatience)), decision{action: look}},
		{"and looks again", imported(installed(time.Minute), looked(1, firstLook)), decision{action: look}},
		{"but not at once", imported(installed(time.Minute), looked(1, time.Second)), decision{action: idle, wake: now.Add(firstLook - time.Second)}},
		{"more and more seldom", imported(installed(time.Minute), looked(3, time.Second)), decision{action: idle, wake: now.Add(4*firstLook - time.Second)}},
		{"an agent that never came is waited for", imported(installed(absentPatience-time.Second), looked(9, time.Second)),
			decision{action: idle, wake: now.Add(time.Second)}},
		{"but not for ever", imported(turn, gone(agentAbsent, time.Hour)), decision{action: try, need: needHealing}},
		{"what did not help is not done again at once", imported(gone(agentRevoked, time.Hour), healed(1, time.Minute), looked(9, 0)),
			decision{action: idle, wake: now.Add(firstHealing - time.Minute)}},
		{"and more and more seldom", imported(gone(agentRevoked, time.Hour), healed(3, time.Minute), looked(9, 0)), decision{action: idle, wake: now.Add(maxRetry)}},
		{"at least once an hour", imported(turn, gone(agentRevoked, 48*time.Hour), healed(20, maxHealing)), decision{action: try, need: needHealing}},
	} {
		if diff := cmp.Diff(c.want, decide(c.seen, now), cmp.AllowUnexported(decision{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestRetriesGrowAndDifferFromClusterToCluster(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 4: 40 * time.Second, 50: maxRetry} {
		if got := retryAt(now, failures, 0).Sub(now); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
	if a, b := retryAt(now, 9, spreadOf("a")), retryAt(now, 9, spreadOf("b")); a.Equal(b) {
		t.Error("two clusters that failed together are tried together again")
	}
}

func TestTurnsAreApartAndKept(t *testing.T) {
	m := newMemory()
	key := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	if got := m.slot(key("a"), now); !got.Equal(now) {
		t.Errorf("the first waits until %s", got)
	}
	if got := m.slot(key("b"), now); !got.Equal(now.Add(stagger)) {
		t.Errorf("the second waits until %s", got)
	}
	if got := m.slot(key("b"), now.Add(time.Second)); !got.Equal(now.Add(stagger)) {
		t.Errorf("asked again, the second waits until %s", got)
	}
	if got := m.slot(key("c"), now.Add(time.Hour)); !got.Equal(now.Add(time.Hour)) {
		t.Errorf("after a long time one waits until %s", got)
	}
}

func TestDescribe(t *testing.T) {
	condition := func(ok bool, reason, message string) []fleet.Condition {
		c := kube.Condition(fleet.ConditionImported, ok, reason, message)
		c.LastUpdateTime, c.LastTransitionTime = "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"
		return []fleet.Condition{c}
	}
	unreachable := history{problem: setback(reasonUnreachable, "no answer"), next: now.Add(time.Minute)}
	missing := history{problem: badInput(reasonSecretMissing, "no Secret")}
	done := fleet.ClusterStatus{Conditions: condition(true, reasonImported, "")}
	well := fleet.ClusterStatus{Conditions: append(condition(true, reasonImported, ""), kube.Condition(fleet.ConditionReady, true, "Ready", ""))}
	broken := fleet.ClusterStatus{Conditions: condition(false, reasonUnreachable, "no answer")}
	for _, c := range []struct {
		name      string
		got, want fleet.ClusterStatus
	}{
		{"a setback says when it is tried again", describeProblem(fleet.ClusterStatus{}, imported(never), needFirst, unreachable, now),
			fleet.ClusterStatus{Conditions: condition(false, reasonUnreachable, "no answer; next try at 2026-01-02T03:05:05Z")}},
		{"bad input says what it waits for", describeProblem(fleet.ClusterStatus{}, imported(never), needFirst, missing, now),
			fleet.ClusterStatus{Conditions: condition(false, reasonSecretMissing, "no Secret; tried again when the Cluster, the Secret or the hub's settings change")}},
		{"changed settings that cannot be brought show as upstream shows them", describeProblem(done, imported(), needSettings, unreachable, now),
			fleet.ClusterStatus{Conditions: condition(false, reasonUnreachable, "no answer; next try at 2026-01-02T03:05:05Z"), AgentConfigChanged: true}},
		{"a short turn is not worth a write", describeTurn(done, needSettings, now.Add(time.Second), now), done},
		{"a long one is", describeTurn(done, needSettings, now.Add(time.Minute), now), fleet.ClusterStatus{AgentConfigChanged: true,
			Conditions: condition(true, reasonImported, "what the agent is installed with has changed: it is installed again at 2026-01-02T03:05:05Z")}},
		{"an agent that came back by itself needs no import any more", describeRest(broken, fleet.ClusterSpec{}, config.Default().Agent, imported(), now), done},
		{"one that does not join says why", describeFinding(done, setback(reasonAgentUnschedulable, "no node"), now),
			fleet.ClusterStatus{Conditions: condition(false, reasonAgentUnschedulable, "the agent is installed and has not joined: no node")}},
		{"unless it has done so meanwhile", describeFinding(well, setback(reasonAgentUnschedulable, "no node"), now), well},
		{"one that is still away does", describeRest(broken, fleet.ClusterSpec{}, config.Default().Agent, imported(gone(agentLost, 0)), now), broken},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestHashesAreUpstreams(t *testing.T) {
	on, out := true, outcome{url: "https://hub"}
	status := describeImported(fleet.ClusterStatus{}, fleet.ClusterSpec{HostNetwork: &on, PrivateRepoURL: "registry"}, config.Default().Agent, out, now)
	if status.AgentEnvVarsHash != "" || status.AgentAffinityHash != "" || !status.AgentHostNetwork || status.AgentPrivateRepoURL != "registry" {
		t.Errorf("what was handed over is %+v", status)
	}
}
