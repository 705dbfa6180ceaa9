package importer

import (
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// The life of an import, as the condition Imported and its reason tell it:
//
//	               ┌─ bad input ──► waits until Cluster, Secret or settings change ─┐
//	(asked) ─► try ┼─ setback ────► waits, longer each time, or until they change ──┼─► try
//	            ▲  └─ done ───────► Imported ─┐                                     │
//	            │                             │ the agent does not join: look why, ever more seldom
//	            └── redeployAgentGeneration, settings, Secret: staggered; agent gone: healed, ever more seldom
//
// While it is Imported and the agent is well, nothing is sent downstream.

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

// agentState is what became of the agent that was installed.
type agentState string

const (
	// agentWell: it beats, or nothing bad is known of it.
	agentWell agentState = "Well"
	// agentAbsent: it has never been heard of.
	agentAbsent agentState = "Absent"
	// agentLost: it fell silent.
	agentLost agentState = "Lost"
	// agentRevoked: its identity on the hub is gone, so that it cannot come back by itself.
	agentRevoked agentState = "Revoked"
)

const (
	// firstRetry doubles with each failure up to maxRetry.
	firstRetry = 5 * time.Second
	maxRetry   = 5 * time.Minute
	// absentPatience and lostPatience are how long an agent may be expected to appear, or to come back, by itself.
	absentPatience = 10 * time.Minute
	lostPatience   = time.Minute
	// lookPatience is after how long the hub looks why an agent that it installed has not joined; then after firstLook, which doubles up to maxRetry.
	lookPatience = 20 * time.Second
	firstLook    = 30 * time.Second
	// firstHealing doubles with each healing that did not help, up to maxHealing.
	firstHealing = 5 * time.Minute
	maxHealing   = time.Hour
	// spreading is the part of a wait that differs from cluster to cluster, so that those which failed together do not try together.
	spreading = 0.3
)

// observed is all that a decision depends on.
type observed struct {
	// asked: the Cluster names a kubeconfig and is not being deleted.
	asked bool
	// generation is spec.redeployAgentGeneration, deployed that of the last import.
	generation int64
	deployed   *int64
	// last is the last import; nil if there was none.
	last *fleet.ImportStatus
	// settings is the digest of how the agent is to be installed.
	settings string
	// managed says that its Bundle brings these settings to the agent, and delivered the settings that it has brought; elsewhere says that the
	// agent has to go to another namespace, which no Bundle brings about.
	managed, elsewhere bool
	delivered          string
	// secretVersion is the kubeconfig Secret's; empty if there is none. secretNewer: it changed since the last import.
	secretVersion string
	secretNewer   bool
	// input is the digest of everything that the last try was made with, if it were made now.
	input string
	agent agentState
	// history is what is remembered of the tries before.
	history history
	// slot is when a re-import may begin; zero if it has not been given one.
	slot time.Time
	// spread is between 0 and 1 and the Cluster's own.
	spread float64
}

// history is what the hub remembers of a Cluster while it runs.
type history struct {
	// failed is the input of the last try, if that failed, and problem why.
	failed  string
	problem *problem
	// failures counts the tries since that failed in a row; next is when it is tried again.
	failures int
	next     time.Time
	// waiting is since when the import token is waited for.
	waiting time.Time
	// trouble is since when the agent is not well; healed counts the healings since, the last of them at healedAt.
	trouble  time.Time
	healed   int
	healedAt time.Time
	// looks counts how often the hub has looked why the agent does not join, the last time at lookedAt.
	looks    int
	lookedAt time.Time
}

// action is what to do.
type action string

const (
	// idle: nothing is needed.
	idle action = "Idle"
	// wait: something is needed, at its time or after an event.
	wait action = "Wait"
	// queue asks for a slot.
	queue action = "Queue"
	try   action = "Try"
	// look finds out why the agent does not join.
	look action = "Look"
)

// decision is what to do, why, and when time alone may change it.
type decision struct {
	action action
	need   need
	wake   time.Time
}

func decide(o observed, now time.Time) decision {
	if !o.asked {
		return decision{action: idle}
	}
	need, wake := o.need(now)
	h := o.history
	switch {
	case need == noNeed:
		due := o.looking()
		if !due.IsZero() && !now.Before(due) {
			return decision{action: look}
		}
		return decision{action: idle, wake: earlier(wake, due)}
	case h.failed == o.input && h.problem != nil && h.problem.input:
		return decision{action: wait, need: need}
	case h.failed == o.input && now.Before(h.next):
		return decision{action: wait, need: need, wake: h.next}
	case need != needFirst && o.slot.IsZero():
		return decision{action: queue, need: need}
	case now.Before(o.slot):
		return decision{action: wait, need: need, wake: o.slot}
	}
	return decision{action: try, need: need}
}

// need says whether and why an import is needed, and if not, when one may be.
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
	due := o.healing()
	if due.IsZero() || now.Before(due) {
		return noNeed, due
	}
	return needHealing, time.Time{}
}

// bundled says that new settings reach the agent by its Bundle.
func (o observed) bundled() bool { return o.managed && o.agent == agentWell && !o.elsewhere }

// healing is when an agent that is not well is installed again; zero if it is well.
func (o observed) healing() time.Time {
	h := o.history
	var due time.Time
	switch o.agent {
	case agentWell:
		return due
	case agentRevoked:
		due = h.trouble
	case agentLost:
		due = h.trouble.Add(longer(lostPatience, 1+o.spread))
	case agentAbsent:
		due = o.last.Time.Add(absentPatience)
	}
	if h.healed > 0 {
		if again := h.healedAt.Add(longer(growing(firstHealing, maxHealing, h.healed), 1+spreading*o.spread)); again.After(due) {
			due = again
		}
	}
	return due
}

// looking is when the hub looks why an agent does not join; zero if that is not due to an installation.
func (o observed) looking() time.Time {
	h := o.history
	switch {
	case o.agent == agentWell, o.agent != agentAbsent && h.healed == 0:
		return time.Time{}
	case h.looks == 0:
		return o.last.Time.Add(lookPatience)
	}
	return h.lookedAt.Add(longer(growing(firstLook, maxRetry, h.looks), 1+spreading*o.spread))
}

// earlier is the first of two times, of which each may be zero for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// retryAt is when a try that failed for the nth time in a row is repeated.
func retryAt(now time.Time, failures int, spread float64) time.Time {
	return now.Add(longer(growing(firstRetry, maxRetry, failures), 1+spreading*spread)).Truncate(time.Second)
}

// growing is the nth of waits that double.
func growing(first, most time.Duration, n int) time.Duration {
	for ; n > 1 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}

func longer(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}
