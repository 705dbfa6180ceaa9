package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

// patience is the usual length of a hub's watch of a member before the removal; a shorter
// RemoveAfter shortens it. A restored hub may show a heartbeat from long ago, and its members may
// need minutes to connect.
const patience = time.Hour

// Limits are the settings for a member without heartbeats.
type Limits struct {
	settings.LostMembers
	// Problem describes a fault in the settings of the workspace; the hub then does nothing.
	Problem string
	// Unknown: the hub has read no settings yet.
	Unknown bool
}

// cleanupStep is the next step for a member without heartbeats.
//
//	          taintAfter            removeAfter
//	(no mark) ──────────► taint ─────────────────► remove
//	    ▲                   │
//	    └──── heartbeat ────┘
type cleanupStep string

const (
	cleanupNone    cleanupStep = ""
	cleanupTaint   cleanupStep = "Taint"
	cleanupUntaint cleanupStep = "RemoveTaint"
	cleanupRemove  cleanupStep = "Remove"
)

// Cleanup is the plan for a member without heartbeats.
type Cleanup struct {
	step cleanupStep
	// next is the time of the next step; zero if only an event leads to one.
	next time.Time
	// Message announces the next step and its time; "" if there is none.
	Message string
}

// PlanCleanup decides how to handle a member without heartbeats. It writes nothing.
func (c *Controller) PlanCleanup(record client.Object, o Observed, limits Limits) Cleanup {
	plan := planCleanup(o, lostMark(record), limits, c.Clock.Now())
	if plan.acts() && !c.Liveness.Calm(o.Namespace) {
		return plan.held() // the tracker enqueues the member again
	}
	return plan
}

// removedAsLost reports whether the hub deleted a member for its missing heartbeats. If a user
// deletes such a member before the hub does, the leave policy decides.
func removedAsLost(record client.Object) bool {
	return record.GetDeletionTimestamp() != nil && record.GetAnnotations()[fleet.AnnotationLostRemoved] != ""
}

// mark is the hub's mark on a member without heartbeats, and the reason to keep the member.
type mark struct {
	// set: there is a mark. since is its time; zero if there is none or it is malformed.
	set   bool
	since time.Time
	// keeps is the reason why the hub does not remove the member, as the predicate of a sentence; ""
	// if nothing keeps it.
	keeps string
}

func lostMark(record client.Object) mark {
	var m mark
	m.since, m.set = membership.LostSince(record)
	switch {
	case membership.Protected(record):
		m.keeps = "is protected by " + fleet.MarkProtected
	case membership.Quarantined(record):
		m.keeps = "is quarantined"
	}
	return m
}

func planCleanup(o Observed, m mark, limits Limits, now time.Time) Cleanup {
	switch {
	case limits.Unknown || o.Revoked || !o.Deleted.IsZero():
		return Cleanup{}
	case m.set && o.Liveness.State == liveness.Online, m.set && limits.Problem == "" && limits.TaintAfter == 0:
		return Cleanup{step: cleanupUntaint}
	case o.Liveness.State != liveness.Lost || !o.Seen():
		return Cleanup{}
	case limits.Problem != "":
		return Cleanup{Message: limits.Problem}
	case limits.TaintAfter == 0:
		return Cleanup{}
	case m.since.IsZero():
		return o.at(now, cleanupTaint, o.LastSeen().Add(limits.TaintAfter), 0, "the hub taints it "+membership.TaintText(membership.TaintLost()))
	}
	tainted := fmt.Sprintf("tainted %s since %s", membership.TaintText(membership.TaintLost()), m.since.UTC().Format(time.RFC3339))
	switch {
	case limits.RemoveAfter == 0:
		return Cleanup{Message: tainted}
	case m.keeps != "":
		return Cleanup{Message: tainted + "; the hub does not remove it, because it " + m.keeps}
	}
	since := m.since // a user with the verb taint may have set an earlier time
	if earliest := o.LastSeen().Add(limits.TaintAfter); since.Before(earliest) {
		since = earliest
	}
	return o.at(now, cleanupRemove, since.Add(limits.RemoveAfter), min(limits.RemoveAfter, patience), tainted+"; the hub removes it")
}

// at returns the plan for a step due at a time. The step waits until this process has watched the
// member for the given time, and for its budget.
func (o Observed) at(now time.Time, step cleanupStep, due time.Time, watched time.Duration, message string) Cleanup {
	if earliest := o.Liveness.Tracked.Add(max(watched, o.Liveness.Budget)); due.Before(earliest) {
		due = earliest
	}
	if now.Before(due) {
		return Cleanup{next: due, Message: message + " at " + due.UTC().Truncate(time.Second).Format(time.RFC3339)}
	}
	return Cleanup{step: step, Message: message}
}

// acts reports whether the plan adds a taint or removes the member.
func (p Cleanup) acts() bool { return p.step == cleanupTaint || p.step == cleanupRemove }

// held returns the plan while too many members send no heartbeats.
func (p Cleanup) held() Cleanup {
	return Cleanup{Message: p.Message + " once at most a tenth of the members of the hub, and of the workspace, send no heartbeats"}
}

// WithCleanup returns a message about a member without heartbeats, followed by the plan for it.
func (o Observed) WithCleanup(message string) string {
	if o.Cleanup.Message == "" {
		return message
	}
	return message + "; " + o.Cleanup.Message
}

// Sooner returns the shorter of a wait and the wait for the next step; zero if there is none.
func (p Cleanup) Sooner(wait time.Duration, now time.Time) time.Duration {
	if p.next.IsZero() {
		return wait
	}
	left := kube.At(p.next, now).RequeueAfter
	return min(cmp.Or(wait, left), left)
}
