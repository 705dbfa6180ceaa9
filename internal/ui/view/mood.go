package view

import "strings"

// Mood is how urgently a state needs a user.
type Mood int

const (
	// Waits is a state that passes by itself, or with the decision of a user.
	Waits Mood = iota
	// Well is the state of an object without a problem.
	Well
	// Ill is a state with a problem.
	Ill
)

// wellStates and illStates are the states of all tables that do not wait. A state of the form
// Not... or Err... has a problem, too.
var (
	wellStates = []string{StateReady, "Available", "Granted", "Approved", "Succeeded", "Online"}
	illStates  = []string{
		"Lost", "Unhealthy", "Revoked", "Left", "Absent", "WithoutNamespace", "Modified", "OutOfSync", "Denied", "Conflict", "Failed",
		"Stuck", "Stopped", "Expired",
	}
)

// MoodOf returns the mood of a state of any table.
func MoodOf(state string) Mood {
	for _, well := range wellStates {
		if state == well {
			return Well
		}
	}
	for _, ill := range illStates {
		if state == ill {
			return Ill
		}
	}
	if strings.HasPrefix(state, "Err") || strings.HasPrefix(state, "Not") {
		return Ill
	}
	return Waits
}
