package applied

import (
	"cmp"
	"slices"
	"strings"

	"github.com/muster-fleet/muster/internal/kube"
)

// Kept is a delivery that a restored hub does not know. It stays until a user decides.
type Kept struct {
	// Name names the delivery, and Remove is the command to remove it on the member.
	Name, Remove string
}

const (
	// maxKept is the number of deliveries by name in a message, and maxKeptMessage its length. A hub
	// shows as much of a message.
	maxKept, maxKeptMessage = 5, 400
	// moreKept is the length of the number of the others.
	moreKept = len(" and 1000000 more")
)

// DescribeKept describes kept deliveries, with the remedy. The first of each command comes before
// the others, so that the objects of a Work do not hide a release.
func DescribeKept(deliveries []Kept) string {
	deliveries = slices.SortedFunc(slices.Values(deliveries), func(a, b Kept) int { return cmp.Compare(a.Name, b.Name) })
	var names, commands []string
	var first, others []Kept
	for _, kept := range deliveries {
		if slices.Contains(commands, kept.Remove) {
			others = append(others, kept)
			continue
		}
		first, commands = append(first, kept), append(commands, kept.Remove)
	}
	deliveries = append(first, others...)
	slices.Sort(commands)
	const before = "the restored hub does not know "
	after := ". All of this stays. To keep it, create its Bundle, placement or object on the hub again: nothing is installed anew. " +
		"To remove it, run on this cluster: " + strings.Join(commands, "; ")
	room := maxKeptMessage - len(before) - len(after) - moreKept
	for _, kept := range deliveries[:min(len(deliveries), maxKept)] {
		if len(names) > 0 && len(kept.Name) > room {
			break
		}
		names = append(names, kube.Clip(kept.Name, room-len("...")))
		room -= len(kept.Name + ", ")
	}
	return before + kube.JoinNames(names, len(deliveries)) + after
}
