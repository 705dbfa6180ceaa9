package view

import (
	"slices"
	"strings"
)

// Severity is how urgently a state needs a user.
type Severity int

const (
	// SeverityWaiting is a state that passes by itself, or after a decision of a user.
	SeverityWaiting Severity = iota
	// SeverityOK is the state of an object without a problem.
	SeverityOK
	// SeverityProblem is a state with a problem.
	SeverityProblem
)

// statesOK and statesWithProblem are the states of all tables, except waiting ones. A state of the
// form Not... or Err... has a problem, too.
var (
	statesOK          = []string{StateReady, "Available", "Granted", StateApproved, "Succeeded", "Online"}
	statesWithProblem = []string{
		"Lost", "Unhealthy", "Revoked", StateQuarantined, "Left", "Absent", "WithoutNamespace", "Modified", "OutOfSync", "Denied", "Conflict",
		"Failed", "Stuck", "Stopped", "Expired",
	}
)

// SeverityOf returns the severity of a state of any table.
func SeverityOf(state string) Severity {
	switch {
	case slices.Contains(statesOK, state):
		return SeverityOK
	case slices.Contains(statesWithProblem, state), strings.HasPrefix(state, "Err"), strings.HasPrefix(state, "Not"):
		return SeverityProblem
	}
	return SeverityWaiting
}
