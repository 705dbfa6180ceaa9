package deploy

import (
	"maps"
	"slices"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// unknown has the deliveries unknown to the hub of one controller.
type unknown struct {
	// blocked is the obstacle to a removal, kept are the deliveries that a restored hub does not know.
	blocked protocol.Blocked
	kept    []applied.Kept
}

// reportUnknown reports the deliveries unknown to the hub to the agent. It reports that there are
// none only once each controller has found none.
func (d *controllers) reportUnknown(kind protocol.Kind, now unknown) {
	d.mu.Lock()
	kinds := len(d.idle)
	d.mu.Unlock()
	d.unknowing.Lock()
	defer d.unknowing.Unlock()
	d.unknown[kind] = now
	if joint := joinUnknown(d.unknown); joint != (protocol.Blocked{}) || len(d.unknown) >= kinds {
		d.reply(protocol.Reply{Blocked: &joint})
	}
}

// joinUnknown merges the reports of all controllers. An obstacle comes before kept deliveries,
// because a user has requested its removal.
func joinUnknown(reports map[protocol.Kind]unknown) protocol.Blocked {
	var kept []applied.Kept
	for _, kind := range slices.Sorted(maps.Keys(reports)) {
		if reports[kind].blocked != (protocol.Blocked{}) {
			return reports[kind].blocked
		}
		kept = append(kept, reports[kind].kept...)
	}
	if len(kept) == 0 {
		return protocol.Blocked{}
	}
	return protocol.Blocked{Reason: reasons.HubRestored, Message: applied.DescribeKept(kept)}
}
