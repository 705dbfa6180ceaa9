package controller

import (
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// manyJoins is the number of joining members that delays other work for new members.
	manyJoins = 8
	// joinsFirst bounds this delay, from the creation of the Cluster or MemberCluster. A member that
	// has not joined by then delays nothing.
	joinsFirst = time.Minute
	// lookAgain is the mean time until work that was delayed looks again.
	lookAgain = 2 * time.Second
)

// Joins lets first heartbeats go ahead of the work that follows a join, while many members join.
type Joins struct {
	mu sync.Mutex
	// began holds the members without a heartbeat, with the time of their creation; order holds them
	// in the order of Begin.
	began map[types.NamespacedName]time.Time
	order []types.NamespacedName
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
	j.prune(created)
	if _, known := j.began[member]; !known {
		j.order = append(j.order, member)
	}
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

// Delay returns the time that the work after a join has to wait, by the creation of the Cluster or
// MemberCluster. It is 0 if few members join, and after a minute.
func (j *Joins) Delay(created, now time.Time) time.Duration {
	left := created.Add(joinsFirst).Sub(now)
	if j == nil || left <= 0 || left > joinsFirst || j.count(now) < manyJoins {
		return 0
	}
	return min(left, lookAgain/2+rand.N(lookAgain))
}

// count returns the number of members that began to join within the last minute.
func (j *Joins) count(now time.Time) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.prune(now)
	return len(j.began)
}

// prune drops the members that have joined, or began more than a minute ago, up to the first other
// one.
func (j *Joins) prune(now time.Time) {
	for len(j.order) > 0 {
		first := j.order[0]
		if began, joins := j.began[first]; joins && now.Sub(began) < joinsFirst {
			break
		}
		delete(j.began, first)
		j.order = j.order[1:]
	}
}
