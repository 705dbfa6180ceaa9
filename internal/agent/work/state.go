package work

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
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
	// Clearing is a Work whose AppliedWork somebody has deleted: what it owns goes with it, and then all is applied anew.
	Clearing State = "Clearing"
	// Foreign is a Work whose AppliedWork belongs to a Work of the same name in another member namespace. One of an earlier membership under
	// this namespace's name is taken over by a Work, and left alone by one that is deleted.
	Foreign State = "Foreign"
	// Removing is a deleted Work whose objects are being removed.
	Removing State = "Removing"
	// Abandoning is a deleted Work whose objects stay and are being let go.
	Abandoning State = "Abandoning"
	// Removed is a deleted Work of which nothing is left here.
	Removed State = "Removed"
	// Gone is a Work that is being deleted and does not wait for this agent.
	Gone State = "Gone"
)

// State is where a Work stands.
type State string

// observed is all that the next step of a Work depends on.
type observed struct {
	deleted, claimed, abandon bool
	// namespace is the member namespace, membership the UID of the report in it; owner the AppliedWork of that name, nil if there is none.
	namespace  string
	membership types.UID
	owner      *placement.AppliedWork
}

func decide(o observed) State {
	foreign := o.owner != nil && o.owner.Spec.WorkNamespace != o.namespace
	switch {
	case o.deleted && !o.claimed:
		return Gone
	case o.deleted && (o.owner == nil || !appliedFor(o.owner, o.namespace, o.membership)):
		return Removed
	case o.deleted && o.abandon:
		return Abandoning
	case o.deleted:
		return Removing
	case foreign:
		return Foreign
	case o.owner != nil && o.owner.DeletionTimestamp != nil:
		return Clearing
	}
	return Applying
}

const (
	// patience is how often an object is set right at once before that is done less and less often.
	patience = 5
	// calm is how long nobody may have changed an object for that to be forgotten.
	calm = 10 * time.Minute
)

// task is what to do about one manifest.
type task string

const (
	// apply it, because it is new, has changed, failed and is due again, or the object is no longer as it was applied.
	apply task = "Apply"
	// hold it back for a while.
	hold task = "Hold"
	// leave it: it is as it should be, or has failed and is not due again.
	leave task = "Leave"
	// await what is happening to the object.
	await task = "Await"
)

// seen is what is known about the object of a manifest.
type seen struct {
	record
	sight
	// noticed: something happened to it since the last time.
	noticed bool
	// owner is the UID of the AppliedWork.
	owner types.UID
	// full: whatever somebody else writes makes a difference.
	full bool
	now  time.Time
}

// due decides what to do about a manifest that was tried before, and when to look again if nothing happens.
func due(m manifest, e entry, s seen) (task, time.Time) {
	switch {
	case e.hash != m.hash:
		return apply, time.Time{}
	case e.outcome.failed():
		if at := e.retryAt(); !s.noticed && s.now.Before(at) {
			return leave, at
		}
		return apply, time.Time{}
	case s.sight == unsure, s.sight == present && e.intact(s):
		if e.contested(s.now) {
			return leave, e.triedAt.Add(calm)
		}
		return leave, time.Time{}
	case s.sight == present && s.deleting:
		return await, time.Time{}
	}
	if at := e.correctAt(); s.now.Before(at) {
		return hold, at
	}
	return apply, time.Time{}
}

// intact is whether the object is as it was applied.
func (e entry) intact(s seen) bool {
	return e.owns(s) && (!s.full || s.content == e.as.content)
}

// owns is whether nobody has changed what the agent applied.
func (e entry) owns(s seen) bool {
	return !s.deleting && s.uid == e.as.uid && s.fields == e.as.fields && s.hash == e.hash && s.ownedBy(s.owner)
}

// dueReport decides whether to compare an object that was compared before, and when to look again if nothing happens.
func dueReport(m manifest, e entry, s seen) (task, time.Time) {
	_, compared := e.outcome.compared()
	switch {
	case e.hash != m.hash, s.noticed, s.sight == absent && e.as.uid != "", s.sight == present && (s.uid != e.as.uid || s.content != e.as.content):
		return apply, time.Time{}
	case compared:
		return leave, time.Time{}
	}
	if at := e.retryAt(); s.now.Before(at) {
		return leave, at
	}
	return apply, time.Time{}
}

// awaited is the version that a watch has to have reached to say anything about the object; empty once it had its time.
func (e entry) awaited(now time.Time) string {
	if now.Sub(e.triedAt) >= catchUp {
		return ""
	}
	return e.as.version
}

// contested is whether somebody else has kept changing the object.
func (e entry) contested(now time.Time) bool {
	return e.tries >= patience && now.Before(e.triedAt.Add(calm))
}

// retryAt is when to try again what failed.
func (e entry) retryAt() time.Time {
	if e.outcome.waits {
		return e.triedAt.Add(doubled(time.Second, e.tries, 30*time.Second))
	}
	return e.triedAt.Add(doubled(5*time.Second, e.tries, 5*time.Minute))
}

// correctAt is when to set an object right again that somebody else keeps changing.
func (e entry) correctAt() time.Time {
	if e.tries < patience {
		return time.Time{}
	}
	return e.triedAt.Add(doubled(time.Second, e.tries-patience, 5*time.Minute))
}

// doubled is base, doubled with each further time up to most.
func doubled(base time.Duration, times int, most time.Duration) time.Duration {
	for ; times > 1 && base < most; times-- {
		base *= 2
	}
	return min(base, most)
}

// next is the entry after trying again.
func (e entry) next(m manifest, result outcome, as record, now time.Time) entry {
	after := entry{hash: m.hash, outcome: result, as: as, rival: e.rival, triedAt: now}
	again := e.hash == m.hash && e.outcome.failed() == result.failed() && now.Sub(e.triedAt) < calm
	if again || result.failed() {
		after.tries = 1
	}
	if again {
		after.tries = e.tries + 1
	}
	return after
}
