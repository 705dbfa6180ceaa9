package importer

import (
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// The states of an import, as the condition Imported and its reason show them:
//
//	                   ┌─ bad input ──► waits until Cluster, Secret or settings change ─┐
//	(new) ──► install ─┼─ setback ────► waits, longer each time, or until they change ──┼─► install
//	             ▲     └─ done ───────► Imported ─┐                                     │
//	             │                                │ the agent does not join: diagnosed, less often each time
//	             └── redeployAgentGeneration, settings, Secret: staggered; agent gone: healed, less often each time
//
// The hub sends nothing downstream while a Cluster is imported and its agent online.

// need is the cause of an import.
type need string

const (
	noNeed       need = ""
	needFirst    need = "First"
	needRedeploy need = "Redeploy"
	needSettings need = "Settings"
	needSecret   need = "Secret"
	needHealing  need = "Healing"
)

// Repeated waits double each time, up to their maximum.
const (
	firstRetry, maxRetry = 5 * time.Second, 5 * time.Minute
	// absentGrace and lostGrace are the times for an agent to appear, or to come back, by itself.
	absentGrace, lostGrace = 10 * time.Minute, time.Minute
	// diagnosisDelay is the time for an installed agent to join before the hub looks for the cause.
	diagnosisDelay = 20 * time.Second
	firstDiagnosis = 30 * time.Second
	firstHealing   = 5 * time.Minute
	maxHealing     = time.Hour
	// maxJitter is the maximum part added to a wait. It differs between Clusters, to spread the
	// retries after a common failure.
	maxJitter = 0.3
)

// observed holds the inputs of a decision.
type observed struct {
	// generation is spec.redeployAgentGeneration, deployed its value at the last import.
	generation int64
	deployed   *int64
	// last is the last import; nil if there was none.
	last *fleet.ImportStatus
	// settings is the digest of the desired values of the agent's chart.
	settings string
	// managed: the agent's Bundle delivers new settings to it. delivered is the digest of the
	// delivered ones. elsewhere: the agent must move to another namespace, and no Bundle can move it.
	managed, elsewhere bool
	delivered          string
	// secretVersion is the version of the kubeconfig Secret, empty if there is none. secretNewer: the
	// version differs from the last import's.
	secretVersion string
	secretNewer   bool
	// input is the digest of all inputs of an import now.
	input   string
	agent   membership.AgentState
	history *history
	// jitter is a number between 0 and 1 of the Cluster's own.
	jitter float64
}

// history is the hub's memory of a Cluster's imports in this process.
type history struct {
	// failed is the input of the last attempt if it failed, problem the cause, next the time of the
	// next attempt.
	failed  string
	problem *problem
	next    time.Time
	// failures counts the failed attempts in a row with this input.
	failures int
	// start is the start of a scheduled re-import; zero if none is scheduled.
	start time.Time
	// tokenAwaited is the start of the wait for the import token.
	tokenAwaited time.Time
	// unwell is the time since when the agent is not healthy. heals counts the re-installations since,
	// the last of them at healed.
	unwell time.Time
	heals  int
	healed time.Time
	// diagnoses counts the diagnoses since the installation of the agent, the last of them at
	// diagnosed.
	diagnoses int
	diagnosed time.Time
}

// action is the next step.
type action string

const (
	// idle: there is nothing to do.
	idle action = "Idle"
	// wait: an import is needed, at its time or after an event.
	wait action = "Wait"
	// schedule: a re-import needs a time to start.
	schedule action = "Schedule"
	install  action = "Install"
	diagnose action = "Diagnose"
)

// decision is the next step, its cause, and the time when time alone may change it.
type decision struct {
	action action
	need   need
	wake   time.Time
}

func decide(o observed, now time.Time) decision {
	need, wake := o.need(now)
	h := o.history
	switch {
	case need == noNeed:
		due := o.diagnosisDue()
		if !due.IsZero() && !now.Before(due) {
			return decision{action: diagnose}
		}
		return decision{action: idle, wake: kube.Earlier(wake, due)}
	case h.failed == o.input && h.problem != nil && h.problem.input:
		return decision{action: wait, need: need}
	case h.failed == o.input && now.Before(h.next):
		return decision{action: wait, need: need, wake: h.next}
	case need != needFirst && h.start.IsZero():
		return decision{action: schedule, need: need}
	case now.Before(h.start):
		return decision{action: wait, need: need, wake: h.start}
	}
	return decision{action: install, need: need}
}

// need returns the cause of a needed import; if none is needed, the time when one may be.
func (o observed) need(now time.Time) (need, time.Time) {
	switch {
	case o.last == nil || o.deployed == nil:
		return needFirst, time.Time{}
	case *o.deployed != o.generation:
		return needRedeploy, time.Time{}
	case o.settings != o.last.SettingsHash && !o.bundled():
		return needSettings, time.Time{}
	case o.secretNewer:
		return needSecret, time.Time{}
	}
	due := o.healingDue()
	if due.IsZero() || now.Before(due) {
		return noNeed, due
	}
	return needHealing, time.Time{}
}

// bundled reports whether new settings reach the agent by its Bundle.
func (o observed) bundled() bool {
	return o.managed && o.agent == membership.AgentOnline && !o.elsewhere
}

// outdated reports whether the agent has other settings than an import would give it.
func (o observed) outdated(why need) bool { return o.last != nil && why != needHealing }

// healingDue returns the time to reinstall an unhealthy agent; zero for a healthy one.
func (o observed) healingDue() time.Time {
	h := o.history
	var due time.Time
	switch o.agent {
	case membership.AgentOnline:
		return due
	case membership.AgentRevoked:
		due = h.unwell
	case membership.AgentLost:
		due = h.unwell.Add(lengthen(lostGrace, o.jitter))
	case membership.AgentAbsent:
		due = o.last.Time.Add(absentGrace)
	default: // agentOf returns no other state
	}
	if again := h.healed.Add(backoff(firstHealing, maxHealing, h.heals, o.jitter)); h.heals > 0 && again.After(due) {
		due = again
	}
	return due
}

// diagnosisDue returns the time to diagnose why an agent does not join. It is zero if the agent is
// healthy, or if no installation could be the cause.
func (o observed) diagnosisDue() time.Time {
	h := o.history
	switch {
	case o.agent == membership.AgentOnline, o.agent != membership.AgentAbsent && h.heals == 0:
		return time.Time{}
	case h.diagnoses == 0:
		return o.last.Time.Add(diagnosisDelay)
	}
	return h.diagnosed.Add(backoff(firstDiagnosis, maxRetry, h.diagnoses, o.jitter))
}

// backoff returns the wait after the nth of several attempts: first, doubled n-1 times up to most,
// and lengthened by the Cluster's jitter.
func backoff(first, most time.Duration, n int, jitter float64) time.Duration {
	for ; n > 1 && first < most; n-- {
		first *= 2
	}
	return lengthen(min(first, most), maxJitter*jitter)
}

func lengthen(d time.Duration, part float64) time.Duration { return d + time.Duration(part*float64(d)) }
