package work

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/retry"
)

// The life cycle of a Work on its member:
//
//	            AppliedWork is ours                 deleted                    nothing is left
//	(new) ────────────────────────► Applying ─────────────────► Removing ───────────────────────► Removed ──► (gone)
//	  │                               │   ▲                   or Abandoning                          ▲
//	  │ it is another's     it is     ▼   │ it is gone                                               │ deleted
//	  ▼                     deleted                                                                  │
//	Foreign ───────────────────────► Clearing ───────────────────────────────────────────────────────┘
const (
	// Applying is a Work with continuously applied manifests.
	Applying State = "Applying"
	// Clearing is a Work after a client deleted its AppliedWork. The objects are deleted with the
	// AppliedWork, then everything is applied again.
	Clearing State = "Clearing"
	// Misdirected is a Work with the label of another member. No manifest is applied, and applied
	// objects stay.
	Misdirected State = "Misdirected"
	// Foreign is a Work with the AppliedWork of another Work of the same name, in another member
	// namespace.
	//
	// A Work adopts an AppliedWork of an earlier membership in this namespace; a deleted Work leaves
	// it alone.
	Foreign State = "Foreign"
	// Removing is a deleted Work with objects to be removed.
	Removing State = "Removing"
	// Abandoning is a deleted Work with objects to keep without an owner.
	Abandoning State = "Abandoning"
	// Removed is a deleted Work without objects.
	Removed State = "Removed"
	// Gone is a deleted Work without this agent's finalizer.
	Gone State = "Gone"
)

// State is the state of a Work.
type State string

// observed is the input of decide.
type observed struct {
	deleted, hasFinalizer, abandon bool
	// namespace is the member namespace, membership the UID of its report, owner the AppliedWork of
	// the same name or nil.
	namespace  string
	membership types.UID
	owner      *placement.AppliedWork
	// recipient is the other member in the labels of the Work; empty if there is none.
	recipient string
}

func decide(o observed) State {
	foreign := o.owner != nil && o.owner.Spec.WorkNamespace != o.namespace
	switch {
	case o.deleted && !o.hasFinalizer:
		return Gone
	case o.deleted && (o.owner == nil || !appliedFor(o.owner, o.namespace, o.membership)):
		return Removed
	case o.deleted && o.abandon:
		return Abandoning
	case o.deleted:
		return Removing
	case o.recipient != "":
		return Misdirected
	case foreign:
		return Foreign
	case o.owner != nil && o.owner.DeletionTimestamp != nil:
		return Clearing
	}
	return Applying
}

const (
	// patience is the number of corrections of an object without a delay.
	patience = 5
	// calm is the time without a correction before the corrections of an object are forgotten.
	calm = 10 * time.Minute
)

// task is the action for one manifest.
type task string

const (
	// apply: the manifest is new or changed, a failed attempt is due again, or the object has drifted.
	apply task = "Apply"
	// delay: the object is contested.
	delay task = "Delay"
	// skip: the object is as applied, or a failed attempt is not due again.
	skip task = "Skip"
	// wait: the object is being deleted.
	wait task = "Wait"
)

// observation is the observed state of the object of a manifest.
type observation struct {
	summary
	applied.Sight
	// changed is set after an event of the object since the last pass.
	changed bool
	// owner is the UID of the AppliedWork.
	owner types.UID
	// full is set if fields missing from the manifest count as differences too.
	full bool
	now  time.Time
}

// due decides the task for a manifest, and the time of the next reconciliation without an event.
func due(m manifest, e attempt, s observation) (task, time.Time) {
	switch {
	case e.hash != m.hash:
		return apply, time.Time{}
	case e.outcome.failed():
		if at := e.retryAt(); !s.changed && s.now.Before(at) {
			return skip, at
		}
		return apply, time.Time{}
	case e.outcome.ran.Ended != "" && s.Sight == applied.Absent:
		return skip, time.Time{}
	case s.Sight == applied.Unsure, s.Sight == applied.Present && e.intact(s):
		if e.contested(s.now) {
			return skip, e.triedAt.Add(calm)
		}
		return skip, time.Time{}
	case s.Sight == applied.Present && s.deleting:
		return wait, time.Time{}
	}
	if at := e.correctAt(); s.now.Before(at) {
		return delay, at
	}
	return apply, time.Time{}
}

// intact reports whether the object is as applied.
func (e attempt) intact(s observation) bool {
	scaled := e.as.scaler == nil || e.as.scaler.Hold(s.replicas)
	return e.owns(s) && scaled && (!s.full || s.contentDigest == e.as.contentDigest)
}

// owns reports whether all applied fields are unchanged.
func (e attempt) owns(s observation) bool {
	return !s.deleting && s.uid == e.as.uid && s.fieldDigest == e.as.fieldDigest && s.hash == e.hash && s.ownedBy(s.owner)
}

// dueComparison decides whether to compare an object again, and the time of the next reconciliation
// without an event.
func dueComparison(m manifest, e attempt, s observation) (task, time.Time) {
	_, compared := e.outcome.compared()
	switch {
	case e.hash != m.hash, s.changed, s.Sight == applied.Absent && e.as.uid != "",
		s.Sight == applied.Present && (s.uid != e.as.uid || s.contentDigest != e.as.contentDigest):
		return apply, time.Time{}
	case compared:
		return skip, time.Time{}
	}
	if at := e.retryAt(); s.now.Before(at) {
		return skip, at
	}
	return apply, time.Time{}
}

// waitsFor returns the resource version that a watch must reach; empty once the watch is trusted
// anyway.
func (e attempt) waitsFor(now time.Time) string {
	if now.Sub(e.triedAt) >= applied.CatchUp {
		return ""
	}
	return e.as.version
}

// contested reports whether another client keeps changing the object.
func (e attempt) contested(now time.Time) bool {
	return e.tries >= patience && now.Before(e.triedAt.Add(calm))
}

// retryAt returns the time of the next attempt after a failure.
func (e attempt) retryAt() time.Time {
	if e.outcome.waits {
		return e.triedAt.Add(retry.Doubled(time.Second, e.tries, 30*time.Second))
	}
	return e.triedAt.Add(retry.Doubled(5*time.Second, e.tries, 5*time.Minute))
}

// correctAt returns the time of the next correction of a contested object.
func (e attempt) correctAt() time.Time {
	if e.tries < patience {
		return time.Time{}
	}
	return e.triedAt.Add(retry.Doubled(time.Second, e.tries-patience, 5*time.Minute))
}

// next returns the attempt after another try.
func (e attempt) next(m manifest, result outcome, as summary, now time.Time) attempt {
	after := attempt{hash: m.hash, outcome: result, as: as, rival: e.rival, triedAt: now}
	again := e.hash == m.hash && e.outcome.failed() == result.failed() && now.Sub(e.triedAt) < calm
	if again || result.failed() {
		after.tries = 1
	}
	if again {
		after.tries = e.tries + 1
	}
	return after
}
