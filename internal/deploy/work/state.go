package work

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/retry"
)

// The life of a Work on its member:
//
//	            AppliedWork is ours                 deleted                    nothing is left
//	(new) ────────────────────────► Applying ─────────────────► Removing ───────────────────────► Removed ──► (gone)
//	  │                               │   ▲                   or Abandoning                          ▲
//	  │ it is another's     it is     ▼   │ it is gone                                               │ deleted
//	  ▼                     deleted                                                                  │
//	Foreign ───────────────────────► Clearing ───────────────────────────────────────────────────────┘
const (
	// Applying is a Work whose manifests are kept applied.
	Applying State = "Applying"
	// Clearing is a Work whose AppliedWork somebody deleted: the objects are deleted with the AppliedWork, and then all is applied again.
	Clearing State = "Clearing"
	// Misdirected is a Work that is labelled for another member: no manifest is applied, and applied objects stay.
	Misdirected State = "Misdirected"
	// Foreign is a Work whose AppliedWork belongs to a Work of the same name in another member namespace. An AppliedWork of an earlier membership
	// in this namespace is adopted by a Work, and left alone by a deleted Work.
	Foreign State = "Foreign"
	// Removing is a deleted Work whose objects are being removed.
	Removing State = "Removing"
	// Abandoning is a deleted Work whose objects stay and lose their owner.
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
	// namespace is the member namespace, membership the UID of the report in it; owner the AppliedWork of that name, nil if there is none.
	namespace  string
	membership types.UID
	owner      *placement.AppliedWork
	// recipient is the other member that the Work is labelled for; empty if none.
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
	// patience is how many corrections of an object follow each other without a delay.
	patience = 5
	// calm is how long an object has to stay as applied for its corrections to be forgotten.
	calm = 10 * time.Minute
)

// task is what to do with one manifest.
type task string

const (
	// apply: the manifest is new or changed, an attempt failed and is due again, or the object is not as applied.
	apply task = "Apply"
	// delay: the object is contested.
	delay task = "Delay"
	// skip: the object is as applied, or the attempt failed and is not due again.
	skip task = "Skip"
	// wait: the object is being deleted.
	wait task = "Wait"
)

// observation is what is known of the object of a manifest.
type observation struct {
	summary
	applied.Sight
	// changed: an event concerned the object since the last pass.
	changed bool
	// owner is the UID of the AppliedWork.
	owner types.UID
	// full: a field that only the object has is a difference, too.
	full bool
	now  time.Time
}

// due decides what to do with a manifest, and when to reconcile again without an event.
func due(m manifest, e attempt, s observation) (task, time.Time) {
	switch {
	case e.hash != m.hash:
		return apply, time.Time{}
	case e.outcome.failed():
		if at := e.retryAt(); !s.changed && s.now.Before(at) {
			return skip, at
		}
		return apply, time.Time{}
	case e.outcome.ran != "" && s.Sight == applied.Absent:
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

// intact says whether the object is as applied.
func (e attempt) intact(s observation) bool {
	return e.owns(s) && (!s.full || s.contentDigest == e.as.contentDigest)
}

// owns says whether no applied field changed.
func (e attempt) owns(s observation) bool {
	return !s.deleting && s.uid == e.as.uid && s.fieldDigest == e.as.fieldDigest && s.hash == e.hash && s.ownedBy(s.owner)
}

// dueComparison decides whether to compare an object again, and when to reconcile again without an event.
func dueComparison(m manifest, e attempt, s observation) (task, time.Time) {
	_, compared := e.outcome.compared()
	switch {
	case e.hash != m.hash, s.changed, s.Sight == applied.Absent && e.as.uid != "", s.Sight == applied.Present && (s.uid != e.as.uid || s.contentDigest != e.as.contentDigest):
		return apply, time.Time{}
	case compared:
		return skip, time.Time{}
	}
	if at := e.retryAt(); s.now.Before(at) {
		return skip, at
	}
	return apply, time.Time{}
}

// waitsFor is the resource version that a watch has to have reached; empty once the watch is believed anyway.
func (e attempt) waitsFor(now time.Time) string {
	if now.Sub(e.triedAt) >= applied.CatchUp {
		return ""
	}
	return e.as.version
}

// contested says whether somebody else keeps changing the object.
func (e attempt) contested(now time.Time) bool {
	return e.tries >= patience && now.Before(e.triedAt.Add(calm))
}

// retryAt is when to try again after a failure.
func (e attempt) retryAt() time.Time {
	if e.outcome.waits {
		return e.triedAt.Add(retry.Doubled(time.Second, e.tries, 30*time.Second))
	}
	return e.triedAt.Add(retry.Doubled(5*time.Second, e.tries, 5*time.Minute))
}

// correctAt is when to correct a contested object again.
func (e attempt) correctAt() time.Time {
	if e.tries < patience {
		return time.Time{}
	}
	return e.triedAt.Add(retry.Doubled(time.Second, e.tries-patience, 5*time.Minute))
}

// next is the attempt after another try.
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
