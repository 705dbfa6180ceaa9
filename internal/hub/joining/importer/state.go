package importer

import (
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// The life of an import, as the condition Imported and its reason tell it:
//
//	                   ┌─ bad input ──► waits until Cluster, Secret or settings change ─┐
//	(new) ──► install ─┼─ setback ────► waits, longer each time, or until they change ──┼─► install
//	             ▲     └─ done ───────► Imported ─┐                                     │
//	             │                                │ the agent does not join: diagnosed, less often each time
//	             └── redeployAgentGeneration, settings, Secret: staggered; agent gone: healed, less often each time
//
// Nothing is sent downstream while a Cluster is imported and its agent online.

// need is why a cluster has to be imported.
type need string

const (
	noNeed       need = ""
	needFirst    need = "First"
	needRedeploy need = "Redeploy"
	needSettings need = "Settings"
	needSecret   need = "Secret"
	needHealing  need = "Healing"
)

// Waits that repeat double each time, up to their maximum.
const (
	firstRetry, maxRetry = 5 * time.Second, 5 * time.Minute
	// absentGrace and lostGrace are how long an agent has to appear, or to come back, by itself.
	absentGrace, lostGrace = 10 * time.Minute, time.Minute
	// diagnosisDelay is how long an agent that was installed has to join before the hub looks for the cause.
	diagnosisDelay = 20 * time.Second
	firstDiagnosis = 30 * time.Second
	firstHealing   = 5 * time.Minute
	maxHealing     = time.Hour
	// maxJitter is the part by which a wait differs from Cluster to Cluster, so that imports which failed together are not repeated together.
	maxJitter = 0.3
)

// observed is all that a decision depends on.
type observed struct {
	// generation is spec.redeployAgentGeneration, deployed that of the last import.
	generation int64
	deployed   *int64
	// last is the last import; nil if there was none.
	last *fleet.ImportStatus
	// settings is the digest of the values that the agent should be installed with.
	settings string
	// managed: the agent's Bundle brings it new settings, of which it has brought delivered. elsewhere: the agent has to move to another
	// namespace, which no Bundle does.
	managed, elsewhere bool
	delivered          string
	// secretVersion is that of the kubeconfig Secret, empty if there is none; secretNewer: it is another one than at the last import.
	secretVersion string
	secretNewer   bool
	// input is the digest of all that an import would be made with now.
	input   string
	agent   membership.AgentState
	history *history
	// jitter is a number between 0 and 1 of the Cluster's own.
	jitter float64
}

// history is what the hub remembers of the imports of a Cluster while it runs.
type history struct {
	// failed is the input of the last attempt if that failed, problem the cause, next the time of the next one.
	failed  string
	problem *problem
	next    time.Time
	// failures counts the attempts in a row that failed with this input.
	failures int
	// start is when a re-import may start; zero if none is scheduled.
	start time.Time
	// tokenAwaited is since when the import token has been awaited.
	tokenAwaited time.Time
	// unwell is since when the agent has not been well; heals counts the re-installations since, the last of them at healed.
	unwell time.Time
	heals  int
	healed time.Time
	// diagnoses counts the diagnoses since the agent was installed, the last of them at diagnosed.
	diagnoses int
	diagnosed time.Time
}

// action is what to do.
type action string

const (
	// idle: nothing is needed.
	idle action = "Idle"
	// wait: an import is needed, at its time or after an event.
	wait action = "Wait"
	// schedule: a re-import needs a time to start.
	schedule action = "Schedule"
	install  action = "Install"
	diagnose action = "Diagnose"
)

// decision is what to do, why, and when time alone may change it.
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

// need says whether and why an import is needed, and if none is, when one may be.
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

// bundled says that new settings reach the agent by its Bundle.
func (o observed) bundled() bool {
	return o.managed && o.agent == membership.AgentOnline && !o.elsewhere
}

// outdated says that the agent has other settings than an import would give it.
func (o observed) outdated(why need) bool { return o.last != nil && why != needHealing }

// healingDue is when an agent that is not well is installed again; zero if the agent is well.
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

// diagnosisDue is when the hub looks why an agent does not join; zero if the agent is well, or no installation could be the cause.
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

// backoff is the wait after the nth of several attempts: first, doubled n-1 times up to most, and lengthened by the Cluster's jitter.
func backoff(first, most time.Duration, n int, jitter float64) time.Duration {
	for ; n > 1 && first < most; n-- {
		first *= 2
	}
	return lengthen(min(first, most), maxJitter*jitter)
}

func lengthen(d time.Duration, part float64) time.Duration { return d + time.Duration(part*float64(d)) }
