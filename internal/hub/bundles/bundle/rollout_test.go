package bundle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// fleetOf reads candidates from letters: n(ew), c(urrent and available), u(navailable but current),
// o(utdated and available), b(roken: outdated and unavailable), p(aused and outdated), w(as staged
// this moment, and is available). A space begins the next partition.
func fleetOf(letters string) []candidate {
	var candidates []candidate
	partition := 0
	for _, letter := range letters {
		c := candidate{partition: partition, exists: true}
		switch letter {
		case ' ':
			partition++
			continue
		case 'n':
			c.exists = false
		case 'c':
			c.current, c.available = true, true
		case 'u':
			c.current = true
		case 'o':
			c.available = true
		case 'w':
			c.available, c.pending = true, true
		case 'p':
			c.available, c.blocked = true, true
		}
		candidates = append(candidates, c)
	}
	return candidates
}

func number(n int32) *intstr.IntOrString { v := intstr.FromInt32(n); return &v }

func percent(text string) *intstr.IntOrString { v := intstr.FromString(text); return &v }

func TestRollout(t *testing.T) {
	partitions := func(n int, max *intstr.IntOrString) *fleet.RolloutStrategy {
		return &fleet.RolloutStrategy{MaxUnavailable: max, Partitions: make([]fleet.Partition, n)}
	}
	small := int32(4)
	for _, c := range []struct {
		name     string
		strategy *fleet.RolloutStrategy
		have     string
		// want has an x for each that is released.
		want string
	}{
		{"nothing", nil, "", ""},
		{"by default all go at once", nil, "noobc", "xxxx-"},
		{"what is paused stays", nil, "opo", "x-x"},
		{"no more become unavailable than may", &fleet.RolloutStrategy{MaxUnavailable: number(2)}, "oooo", "xx--"},
		{"those that are unavailable count", &fleet.RolloutStrategy{MaxUnavailable: number(2)}, "uooo", "-x--"},
		{"as a percentage", &fleet.RolloutStrategy{MaxUnavailable: percent("50%")}, "ooooo", "xx---"},
		{"none means one after the other", &fleet.RolloutStrategy{MaxUnavailable: number(0)}, "ooo", "x--"},
		{"and waits for it", &fleet.RolloutStrategy{MaxUnavailable: number(0)}, "uoo", "---"},
		{
			"what is broken anyway is updated, so that a bad change can be taken back", &fleet.RolloutStrategy{MaxUnavailable: number(1)}, "bbbo",
			"xxx-",
		},
		{"what is new makes nothing unavailable", &fleet.RolloutStrategy{MaxUnavailable: number(1)}, "nnn", "xxx"},
		{"a partition waits until those before it are updated", partitions(2, number(1)), "oo oo", "x---"},
		{"and to be back", partitions(2, number(0)), "cu oo", "----"},
		{"it begins while no more than may are unavailable", partitions(2, number(1)), "cu oo", "--x-"},
		{"also where all is new", partitions(2, number(0)), "nn nn", "xx--"},
		{"one that is just being staged is neither released nor passed over", partitions(2, nil), "w o", "--"},
		{"a paused one holds nobody up", partitions(2, number(0)), "p o", "-x"},
		{"those in no partition come last", partitions(1, number(0)), "o o", "x-"},
		{"a partition may be let go", &fleet.RolloutStrategy{
			MaxUnavailable: number(0), MaxUnavailablePartitions: number(1), Partitions: make([]fleet.Partition, 3),
		},
			"u o o", "-x-"},
		{"below the threshold all are one partition", &fleet.RolloutStrategy{MaxUnavailable: number(0)}, "ooo", "x--"},
		{"from the threshold on they are divided", &fleet.RolloutStrategy{
			AutoPartitionThreshold: &small, AutoPartitionSize: percent("50%"), MaxUnavailable: percent("50%"),
		},
			"oooo", "x---"},
		{"and go one after the other", &fleet.RolloutStrategy{
			AutoPartitionThreshold: &small, AutoPartitionSize: number(2), MaxUnavailable: number(0),
		},
			"ccoo", "--x-"},
	} {
		var got strings.Builder
		for _, released := range rollout(c.strategy, fleetOf(c.have)).release {
			got.WriteByte(map[bool]byte{true: 'x', false: '-'}[released])
		}
		if got.String() != c.want {
			t.Errorf("%s: of %q released %q, want %q", c.name, c.have, got.String(), c.want)
		}
	}
}

func TestRolloutCounts(t *testing.T) {
	got := rollout(&fleet.RolloutStrategy{
		MaxUnavailable: number(0), MaxUnavailablePartitions: percent("50%"),
		Partitions: []fleet.Partition{{Name: "first", MaxUnavailable: percent("100%")}, {}},
	}, fleetOf("ou ou o"))
	got.release = nil
	want := plan{
		partitions: []partition{
			{name: "first", members: []int{0, 1}, maxUnavailable: 2, unavailable: 2},
			{name: "Partition 2", members: []int{2, 3}, unavailable: 1},
			{name: "All others", members: []int{4}, unavailable: 1},
		},
		maxUnavailable: 2, maxUnavailablePartitions: 1, unavailable: 4, unavailablePartitions: 2,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(plan{}, partition{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestARolloutAlwaysEnds plays agents that deploy whatever they are sent, for every
// fleet of up to five.
func TestARolloutAlwaysEnds(t *testing.T) {
	strategies := []*fleet.RolloutStrategy{
		nil, {MaxUnavailable: number(0)}, {MaxUnavailable: percent("30%"), Partitions: make([]fleet.Partition, 2)}, {
			MaxUnavailable: number(1), Partitions: make([]fleet.Partition, 1),
		},
	}
	var fleets []string
	var grow func(string)
	grow = func(prefix string) {
		fleets = append(fleets, prefix)
		if len(prefix) < 5 {
			for _, letter := range "nuob" {
				grow(prefix + string(letter))
			}
		}
	}
	grow("")
	for _, strategy := range strategies {
		for _, letters := range fleets {
			candidates := fleetOf(letters)
			for i := range candidates {
				candidates[i].partition = i % 2
				if strategy == nil || len(strategy.Partitions) == 0 {
					candidates[i].partition = 0
				} else {
					candidates[i].partition = min(candidates[i].partition, len(strategy.Partitions))
				}
			}
			for round := 0; ; round++ {
				done := true
				for i, released := range rollout(strategy, candidates).release {
					if candidates[i].exists && candidates[i].current {
						candidates[i].available = true // its agent came back
					}
					if released {
						candidates[i] = candidate{partition: candidates[i].partition, exists: true, current: true}
					}
					done = done && candidates[i].current && candidates[i].available
				}
				if done {
					break
				}
				if round > 20 {
					t.Fatalf("%q with %+v never ends: %+v", letters, strategy, candidates)
				}
			}
		}
	}
}

func TestLimitsAreThoseOfUpstream(t *testing.T) {
	for _, c := range []struct {
		value *intstr.IntOrString
		of    int
		want  int
	}{
		{percent("10%"), 5, 1}, {percent("12.5%"), 16, 2}, {percent("12.5%"), 2, 1}, {percent("10"), 100, 10}, {percent("0%"), 5, 1},
		{percent("100%"), 0, 0},
		{percent("25%"), 100, 25}, {number(0), 5, 0}, {number(-1), 5, 0}, {nil, 7, 7},
	} {
		if got := resolve(c.value, defaultMaxUnavailable, c.of); got != c.want {
			t.Errorf("%v of %d is %d, want %d", c.value, c.of, got, c.want)
		}
		if err := checkStrategy(&fleet.RolloutStrategy{MaxUnavailable: c.value}); err != nil {
			t.Errorf("%v: %v", c.value, err)
		}
	}
}

func TestAStrategyThatIsNoNumberIsRefused(t *testing.T) {
	for name, strategy := range map[string]*fleet.RolloutStrategy{
		"rolloutStrategy.maxUnavailable":               {MaxUnavailable: percent("half")},
		"rolloutStrategy.autoPartitionSize":            {AutoPartitionSize: percent("NaN%")},
		"rolloutStrategy.maxUnavailablePartitions":     {MaxUnavailablePartitions: percent("1.5")},
		"rolloutStrategy.partitions[0].maxUnavailable": {Partitions: []fleet.Partition{{MaxUnavailable: percent("x")}}},
	} {
		if err := checkStrategy(strategy); err == nil || !strings.Contains(err.Error(), name+" is") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkStrategy(&fleet.RolloutStrategy{MaxUnavailable: percent("25%"), AutoPartitionSize: number(3)}); err != nil {
		t.Error(err)
	}
}
