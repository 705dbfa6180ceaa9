package membership

import (
	"strings"
	"time"
)

// lastKnown is the mark of a message with the last report of an agent without further reports.
const lastKnown = ", as of "

// Gone returns the reason why an agent sends no further reports; "" if it may send some.
func (s AgentState) Gone() string {
	switch s {
	case AgentLost:
		return "agent lost"
	case AgentLeft:
		return "agent left"
	case AgentRevoked:
		return "agent without access"
	default:
		return ""
	}
}

// AsOf returns the message about the last report of a departed or lost agent: `agent lost, as of
// 2026-01-02T03:04:05Z: Ready`. The time is the last known heartbeat, zero if there is none.
func AsOf(gone string, seen time.Time, report string) string {
	at := "its last report"
	if !seen.IsZero() {
		at = seen.UTC().Format(time.RFC3339)
	}
	return gone + lastKnown + at + ": " + report
}

// IsAsOf reports whether a message repeats the last report of a departed or lost agent.
func IsAsOf(message string) bool {
	before, _, found := strings.Cut(message, lastKnown)
	return found && (strings.HasSuffix(before, " lost") || strings.HasSuffix(before, " left") || strings.HasSuffix(before, " without access"))
}
