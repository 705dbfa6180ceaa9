package deploy

import (
	"strings"
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

func TestOnlyMappingsOfTheProgramThatNobodyCanWriteAreDropped(t *testing.T) {
	for line, want := range map[string]uint64{
		"00400000-01eb2000 r-xp 00000000 fe:00 123 /a": 0x1eb2000,
		"00400000-01eb2000 r--p 00000000 fe:00 123 /a": 0x1eb2000,
		"00400000-01eb2000 rw-p 00000000 fe:00 123 /a": 0,
		"00400000-01eb2000 r-xp 00000000 fe:00 123 /b": 0,
		"00400000-01eb2000 rw-p 00000000 00:00 0":      0,
	} {
		if _, end := readOnly(strings.Fields(line), "/a"); end != want {
			t.Errorf("%s: got %x, want %x", line, end, want)
		}
	}
}

func TestProgramGoesOnAfterItsPagesWereDropped(t *testing.T) {
	text := strings.Repeat("x", 1<<20)
	for range 10 {
		trim()
		if got := strings.ToUpper(text); strings.Trim(got, "X") != "" {
			t.Fatal("it computes nonsense")
		}
	}
}
