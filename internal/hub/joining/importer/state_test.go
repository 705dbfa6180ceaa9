package importer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

// imported is a Cluster that was imported an hour ago and whose agent is well.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func imported(change ...func(*observed)) observed {
	generation := int64(3)
	o := observed{
		generation: 3, deployed: &generation, settings: "settings", input: "input", agent: membership.AgentOnline, history: &history{},
		last: &fleet.ImportStatus{Time: metav1.NewTime(now.Add(-time.Hour)), SettingsHash: "settings"},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func never(o *observed)         { o.last, o.deployed = nil, nil }
func scheduled(o *observed)     { o.history.start = now }
func otherSettings(o *observed) { o.settings = "other" }

func failed(input string, by problem, next time.Time) func(*observed) {
	return func(o *observed) { o.history.failed, o.history.problem, o.history.next = input, &by, next }
}

func gone(state membership.AgentState, since time.Duration) func(*observed) {
	return func(o *observed) { o.agent, o.history.unwell = state, now.Add(-since) }
}

func healed(times int, ago time.Duration) func(*observed) {
	return func(o *observed) { o.history.heals, o.history.healed = times, now.Add(-ago) }
}

func installed(ago time.Duration) func(*observed) {
	return func(o *observed) {
		o.agent, o.history.unwell, o.last.Time = membership.AgentAbsent, now.Add(-ago), metav1.NewTime(now.Add(-ago))
	}
}

func diagnosed(times int, ago time.Duration) func(*observed) {
	return func(o *observed) { o.history.diagnoses, o.history.diagnosed = times, now.Add(-ago) }
}

func TestDecide(t *testing.T) {
	soon := now.Add(time.Minute)
	for _, c := range []struct {
		name     string
		observed observed
		want     decision
	}{
		{"a new Cluster is imported at once", imported(never), decision{action: install, need: needFirst}},
		{"one that is imported and well is left alone", imported(), decision{action: idle}},
		{"bad input waits for another input", imported(never, failed("input", problem{input: true}, soon)),
			decision{action: wait, need: needFirst}},
		{"which is tried at once", imported(never, failed("before", problem{input: true}, soon)), decision{action: install, need: needFirst}},
		{"a setback waits for its time", imported(never, failed("input", problem{}, soon)), decision{action: wait, need: needFirst, wake: soon}},
		{"or for another input", imported(never, failed("before", problem{}, soon)), decision{action: install, need: needFirst}},
		{"when the time has come it is tried again", imported(never, failed("input", problem{}, now)), decision{
			action: install, need: needFirst,
		}},
		{"another generation needs a time to start", imported(func(o *observed) { o.generation = 4 }), decision{
			action: schedule, need: needRedeploy,
		}},
		{"other settings too", imported(otherSettings), decision{action: schedule, need: needSettings}},
		{"they wait for that", imported(otherSettings, func(o *observed) { o.history.start = soon }), decision{
			action: wait, need: needSettings, wake: soon,
		}},
		{"and are tried when it has come", imported(otherSettings, scheduled), decision{action: install, need: needSettings}},
		{"a changed Secret too", imported(scheduled, func(o *observed) { o.secretNewer = true }), decision{action: install, need: needSecret}},
		{"an agent that has just fallen silent may come back by itself", imported(gone(membership.AgentLost, time.Second)),
			decision{action: idle, wake: now.Add(lostGrace - time.Second)}},
		{"one that did not is installed again", imported(scheduled, gone(membership.AgentLost, lostGrace)), decision{
			action: install, need: needHealing,
		}},
		{"if that did not help, the hub looks for the cause", imported(gone(membership.AgentLost, time.Hour), healed(1, time.Minute)),
			decision{action: diagnose}},
		{"an agent whose identity is gone cannot", imported(scheduled, gone(membership.AgentRevoked, 0)), decision{
			action: install, need: needHealing,
		}},
		{"an agent that was installed just now has time to join", imported(installed(time.Second)), decision{
			action: idle, wake: now.Add(diagnosisDelay - time.Second),
		}},
		{"then the hub looks for the cause", imported(installed(diagnosisDelay)), decision{action: diagnose}},
		{"and looks again", imported(installed(time.Minute), diagnosed(1, firstDiagnosis)), decision{action: diagnose}},
		{"but not at once", imported(installed(time.Minute), diagnosed(1, time.Second)), decision{
			action: idle, wake: now.Add(firstDiagnosis - time.Second),
		}},
		{"more and more seldom", imported(installed(time.Minute), diagnosed(3, time.Second)), decision{
			action: idle, wake: now.Add(4*firstDiagnosis - time.Second),
		}},
		{"an agent that never came is waited for", imported(installed(absentGrace-time.Second), diagnosed(9, time.Second)),
			decision{action: idle, wake: now.Add(time.Second)}},
		{"but not for ever", imported(scheduled, gone(membership.AgentAbsent, time.Hour)), decision{action: install, need: needHealing}},
		{"what did not help is not done again at once",
			imported(gone(membership.AgentRevoked, time.Hour), healed(1, time.Minute), diagnosed(9, 0)),
			decision{action: idle, wake: now.Add(firstHealing - time.Minute)}},
		{"and more and more seldom", imported(gone(membership.AgentRevoked, time.Hour), healed(3, time.Minute), diagnosed(9, 0)), decision{
			action: idle, wake: now.Add(maxRetry),
		}},
		{"at least once an hour", imported(scheduled, gone(membership.AgentRevoked, 48*time.Hour), healed(20, maxHealing)), decision{
			action: install, need: needHealing,
		}},
	} {
		if diff := cmp.Diff(c.want, decide(c.observed, now), cmp.AllowUnexported(decision{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestRetriesGrowAndDifferFromClusterToCluster(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 4: 40 * time.Second, 50: maxRetry} {
		if got := backoff(firstRetry, maxRetry, failures, 0); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
	if got := backoff(firstRetry, maxRetry, 1, 1); got != 6500*time.Millisecond {
		t.Errorf("with the largest jitter: %s", got)
	}
	if a, b := backoff(firstRetry, maxRetry, 9, kube.Jitter("a")), backoff(firstRetry, maxRetry, 9, kube.Jitter("b")); a == b {
		t.Error("two clusters that failed together are tried together again")
	}
}

func TestDescribe(t *testing.T) {
	condition := func(ok bool, reason, message string) []fleet.Condition {
		c := kube.Condition(fleet.ConditionImported, ok, reason, message)
		c.LastUpdateTime, c.LastTransitionTime = "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"
		return []fleet.Condition{c}
	}
	unreachable, missing, soon := setback(reasons.Unreachable, "no answer"), badInput(reasons.SecretMissing, "no Secret"), now.Add(time.Minute)
	done := func() fleet.ClusterStatus {
		return fleet.ClusterStatus{Conditions: condition(true, reasons.Imported, "")}
	}
	well := fleet.ClusterStatus{
		Conditions: append(condition(true, reasons.Imported, ""), kube.Condition(fleet.ConditionReady, true, "Ready", "")),
	}
	broken := func() fleet.ClusterStatus {
		return fleet.ClusterStatus{Conditions: condition(false, reasons.Unreachable, "no answer")}
	}
	for _, c := range []struct {
		name      string
		got, want fleet.ClusterStatus
	}{
		{"a setback says when it is tried again",
			describeProblem(fleet.ClusterStatus{}, imported(never).outdated(needFirst), unreachable, soon, now),
			fleet.ClusterStatus{Conditions: condition(false, reasons.Unreachable, "no answer; next try at 2026-01-02T03:05:05Z")}},
		{"bad input says what it waits for", describeProblem(fleet.ClusterStatus{}, imported(never).outdated(needFirst), missing, soon, now),
			fleet.ClusterStatus{
				Conditions: condition(false, reasons.SecretMissing, "no Secret; the hub retries when the Cluster, the Secret or the hub's settings "+
					"change"),
			}},
		{"changed settings that cannot be brought show as upstream shows them",
			describeProblem(done(), imported().outdated(needSettings), unreachable, soon, now),
			fleet.ClusterStatus{
				Conditions: condition(false, reasons.Unreachable, "no answer; next try at 2026-01-02T03:05:05Z"), AgentConfigChanged: true,
			}},
		{"a start that is near is not worth a write", describeScheduled(done(), needSettings, now.Add(time.Second), now), done()},
		{"a later one is", describeScheduled(done(), needSettings, now.Add(time.Minute), now), fleet.ClusterStatus{AgentConfigChanged: true,
			Conditions: condition(true, reasons.Imported,
				"the settings of the agent have changed; the hub installs it again at 2026-01-02T03:05:05Z")}},
		{"an agent that came back by itself needs no import any more",
			describeIdle(broken(), fleet.ClusterSpec{}, settings.Default().Agent, imported(), now), done()},
		{"one that does not join says why", describeCause(done(), setback(reasons.AgentUnschedulable, "no node"), now),
			fleet.ClusterStatus{Conditions: condition(false, reasons.AgentUnschedulable, "the agent is installed and has not joined: no node")}},
		{"unless it has done so meanwhile", describeCause(well, setback(reasons.AgentUnschedulable, "no node"), now), well},
		{"one that is still away does",
			describeIdle(broken(), fleet.ClusterSpec{}, settings.Default().Agent, imported(gone(membership.AgentLost, 0)), now), broken()},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestHashesAreUpstreams(t *testing.T) {
	on, out := true, outcome{url: "https://hub"}
	status := describeImported(fleet.ClusterStatus{}, fleet.ClusterSpec{HostNetwork: &on, PrivateRepoURL: "registry"},
		settings.Default().Agent, out, now)
	if status.AgentEnvVarsHash != "" || status.AgentAffinityHash != "" || !status.AgentHostNetwork ||
		status.AgentPrivateRepoURL != "registry" {
		t.Errorf("what was handed over is %+v", status)
	}
}

// TestTheDigestsOfFieldsAreUpstreams has golden vectors: the SHA-224 digest of the JSON of a field.
func TestTheDigestsOfFieldsAreUpstreams(t *testing.T) {
	status := describeImported(fleet.ClusterStatus{}, fleet.ClusterSpec{
		AgentEnvVars:     []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy"}},
		AgentTolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}},
	}, settings.Default().Agent, outcome{}, now)
	if status.AgentEnvVarsHash != "e1726be77f3ad3b0fc436fbcb4716db9c3cd864fd8c210ec450c7a2a" ||
		status.AgentTolerationsHash != "790df69f7ed19fd48f675f8aee43ff2061bbf9ed37e6b106dc5f4132" || status.AgentAffinityHash != "" {
		t.Errorf("got %q, %q and %q", status.AgentEnvVarsHash, status.AgentTolerationsHash, status.AgentAffinityHash)
	}
}
