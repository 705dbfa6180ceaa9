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
