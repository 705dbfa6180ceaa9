package ownbundle

import (
	"fmt"
	"time"
)

// GrantAgain is the interval between attempts to read a Secret before the hub has granted the right
// to it. Within grantedWithin of its creation, an owner does not report a missing right.
const GrantAgain, grantedWithin = 500 * time.Millisecond, 10 * time.Second

// ConditionAccepted shows whether the spec of an owner and its Secrets are usable.
const ConditionAccepted = "Accepted"

// Problem is the reason why an owner is not ready.
type Problem struct {
	// Condition shows the problem, besides Ready.
	Condition, Reason, Message string
	// Again is the time until the next turn, if it is not the usual one.
	Again time.Duration
}

// Turn is the result of one turn of an owner's controller.
type Turn struct {
	// Problem is the first problem; nil if there is none.
	Problem *Problem
	// Again is the time of the next turn; zero if only an event or the interval ends the wait.
	Again time.Time
}

// Fail notes a problem, unless there is an earlier one.
func (t *Turn) Fail(condition, reason, format string, args ...any) {
	if t.Problem == nil {
		t.Problem = &Problem{Condition: condition, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
}

// AwaitsGrant reports whether the hub may still grant the missing right of an owner of the given
// age.
func (t *Turn) AwaitsGrant(age time.Duration) bool {
	return t.Problem != nil && t.Problem.Again > 0 && age < grantedWithin
}
