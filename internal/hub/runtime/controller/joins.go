package controller

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	// manyJoins is the number of joining members that delays other work for new members.
	manyJoins = 8
	// joinsFirst bounds this delay, from the creation of the Cluster or MemberCluster.
	joinsFirst = time.Minute
	// lookAgain is the mean time until work that was delayed looks again.
	lookAgain = 2 * time.Second
)

// Joins lets first heartbeats go ahead of the work that follows a join, while many members join.
type Joins struct{ waiting atomic.Int64 }

// Set sets the number of new members without a heartbeat.
func (j *Joins) Set(number int) {
	if j != nil {
		j.waiting.Store(int64(number))
	}
}

// Delay returns the time that the work after a join has to wait, by the creation of the Cluster or
// MemberCluster. It is 0 if few members join, and after a minute.
func (j *Joins) Delay(created, now time.Time) time.Duration {
	left := created.Add(joinsFirst).Sub(now)
	if j == nil || j.waiting.Load() < manyJoins || left <= 0 || left > joinsFirst {
		return 0
	}
	return min(left, lookAgain/2+rand.N(lookAgain))
}
