package controller

import (
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// manyJoins is a number of joining members: with this many, the hub delays other work for new
	// members.
	manyJoins = 8
	// joinsFirst bounds this delay, from the creation of the Cluster or MemberCluster. A member that
	// has not joined by then delays nothing.
	joinsFirst = time.Minute
	// Moment is the wait of a first status for the next steps of a join. One write then shows all.
	Moment = 2 * time.Second
	// momentOfMany is this wait while many members join.
	momentOfMany = 10 * time.Second
	// Adoption is the time for a new agent to become up to date. Most agents are faster. Until then no
	// status shows its deployment, and so saves a write for each state.
	Adoption = 30 * time.Second
	// lookAgain is the mean delay of postponed work before its next attempt.
	lookAgain = 2 * time.Second
)

// Joins gives first heartbeats priority over the work after a join, while many members join.
type Joins struct {
	mu sync.Mutex
	// began holds the members without a heartbeat, with the time of their creation.
	began map[types.NamespacedName]time.Time
}

// NewJoins returns a Joins without members.
func NewJoins() *Joins { return &Joins{began: map[types.NamespacedName]time.Time{}} }

// Begin adds a new member without a heartbeat.
func (j *Joins) Begin(member types.NamespacedName, created time.Time) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.began[member] = created
}

// End removes a member with a heartbeat, or without a Cluster.
func (j *Joins) End(member types.NamespacedName) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.began, member)
}

// Delay returns the wait of the work after a join, by the creation of the Cluster or MemberCluster.
// It is 0 if few members join, and after a minute.
func (j *Joins) Delay(created, now time.Time) time.Duration {
	left := created.Add(joinsFirst).Sub(now)
	if j == nil || left <= 0 || left > joinsFirst || !j.many(now) {
		return 0
	}
	return min(left, lookAgain/2+rand.N(lookAgain))
}

// Moment returns the wait of a first status for the next steps of a join.
func (j *Joins) Moment(now time.Time) time.Duration {
	if j != nil && j.many(now) {
		return momentOfMany
	}
	return Moment
}

// MomentLeft returns the rest of the wait of a first status, by the time of the last step. A step
// in the future, by another clock, has no wait.
func (j *Joins) MomentLeft(since, now time.Time) time.Duration {
	moment := j.Moment(now)
	if left := since.Add(moment).Sub(now); left > 0 && left <= moment {
		return left
	}
	return 0
}

// many reports whether many members began to join within the last minute. It drops earlier ones.
func (j *Joins) many(now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	joining := 0
	for member, began := range j.began {
		if now.Sub(began) >= joinsFirst {
			delete(j.began, member)
		} else if joining++; joining >= manyJoins {
			return true
		}
	}
	return false
}
