package deploy

import (
	"testing"
)

func TestTheAgentKeepsItsShareOfTheContainersLimit(t *testing.T) {
	for limit, want := range map[string]uint64{
		"": 1 << 30, "many": 1 << 30, "67430000000": 1 << 30, "536870912": 416 << 20, "67108864": 128 << 20, "1": 128 << 20,
	} {
		if got := bound(limit); got != want {
			t.Errorf("of a limit of %q it takes %d MiB, want %d", limit, got>>20, want>>20)
		}
	}
}
