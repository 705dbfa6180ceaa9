package bundle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// Defaults of a rollout, as upstream's.
var (
	defaultMaxUnavailable    = intstr.FromString("100%")
	defaultPartitionSize     = intstr.FromString("25%")
	defaultPartitionsAtLeast = int32(200)
	defaultMaxNew            = int32(50)
)

// candidate is a deployment as the rollout sees it. Candidates are in the order in which they are to be updated.
type candidate struct {
	// partition is the index of the partition that was asked for, or their number for one that is in none.
	partition int
	// exists, and current: it was told of what the Bundle wants.
	exists, current bool
	// available: what it was last told is in place and ready.
	available bool
	// held by something else than the rollout: it is paused, or the Bundle does not make sense for it.
	held bool
	// busy: a write of it is under way, so that it cannot be released now.
	busy bool
}

// wave is a partition of the rollout.
type wave struct {
	name string
	// members are indexes of candidates.
	members []int
	// maxUnavailable of them may be unavailable; unavailable of them are, once the plan is carried out.
	maxUnavailable, unavailable int
}

// plan is what a rollout does next.
type plan struct {
	// release says of each candidate whether it is created or updated now.
	release []bool
	waves   []wave
	// maxUnavailable deployments and maxUnavailablePartitions partitions may be unavailable in all.
	maxUnavailable, maxUnavailablePartitions int
	// unavailable deployments and unavailablePartitions there are, once the plan is carried out.
	unavailable, unavailablePartitions int
}

// rollout decides which deployments are created or updated now.
//
// Partitions go one after the other: one begins when those before it, maxUnavailablePartitions of them aside, have all been told and have
// no more unavailable than they may. Within a partition what is unavailable anyway is updated at once, so that an offline cluster
// gets only the last change and a bad change can be taken back; what is available is updated as long as maxUnavailable is not reached.
// What does not exist yet is created at once: nothing becomes unavailable by that.
func rollout(strategy *fleet.RolloutStrategy, candidates []candidate) plan {
	if strategy == nil {
		strategy = &fleet.RolloutStrategy{}
	}
	p := plan{release: make([]bool, len(candidates)), waves: partition(strategy, candidates)}
	p.maxUnavailablePartitions = resolve(strategy.MaxUnavailablePartitions, intstr.FromInt32(0), len(p.waves))
	unfinished := 0
	for i := range p.waves {
		w := &p.waves[i]
		if !p.advance(w, candidates, unfinished <= p.maxUnavailablePartitions) {
			unfinished++
		}
		p.maxUnavailable += w.maxUnavailable
		p.unavailable += w.unavailable
		if w.unavailable > w.maxUnavailable {
			p.unavailablePartitions++
		}
	}
	return p
}

// advance releases what may go now of one partition, if it is its turn, and says whether the partition is finished.
func (p *plan) advance(w *wave, candidates []candidate, turn bool) (finished bool) {
	for _, m := range w.members {
		if c := candidates[m]; c.exists && !c.available {
			w.unavailable++
		}
	}
	finished = true
	for _, m := range w.members {
		c := candidates[m]
		switch {
		case c.held || (c.exists && c.current):
		case !turn, c.busy, c.exists && c.available && w.unavailable >= max(w.maxUnavailable, 1):
			finished = false
		default:
			p.release[m] = true
			if !c.exists || c.available {
				w.unavailable++
			}
		}
	}
	return finished && w.unavailable <= w.maxUnavailable
}

// partition divides the candidates into the partitions that were asked for, or else into ones of equal size if there are many.
func partition(strategy *fleet.RolloutStrategy, candidates []candidate) []wave {
	if len(candidates) == 0 {
		return nil
	}
	var waves []wave
	if len(strategy.Partitions) > 0 {
		waves = make([]wave, len(strategy.Partitions)+1)
		for i, c := range candidates {
			waves[c.partition].members = append(waves[c.partition].members, i)
		}
		for i, asked := range strategy.Partitions {
			waves[i].name = asked.Name
			if asked.Name == "" {
				waves[i].name = fmt.Sprintf("Partition %d", i+1)
			}
			limit(&waves[i], strategy, &asked)
		}
		rest := &waves[len(waves)-1]
		if rest.name = "All others"; len(rest.members) == 0 {
			return waves[:len(waves)-1]
		}
		limit(rest, strategy, nil)
		return waves
	}
	size := len(candidates)
	if len(candidates) >= int(valueOr(strategy.AutoPartitionThreshold, defaultPartitionsAtLeast)) {
		size = max(resolve(strategy.AutoPartitionSize, defaultPartitionSize, len(candidates)), 1)
	}
	for from := 0; from < len(candidates); from += size {
		w := wave{name: "All"}
		if size < len(candidates) {
			w.name = fmt.Sprintf("Partition %d", len(waves)+1)
		}
		for i := from; i < min(from+size, len(candidates)); i++ {
			w.members = append(w.members, i)
		}
		limit(&w, strategy, nil)
		waves = append(waves, w)
	}
	return waves
}

// limit sets how many of a partition may be unavailable. Where it is none, one after the other is updated, and all have to be back before
// the partition is finished.
func limit(w *wave, strategy *fleet.RolloutStrategy, asked *fleet.Partition) {
	value := strategy.MaxUnavailable
	if asked != nil && asked.MaxUnavailable != nil {
		value = asked.MaxUnavailable
	}
	w.maxUnavailable = resolve(value, defaultMaxUnavailable, len(w.members))
}

// resolve makes a number of a number or a percentage, rounded down. What is neither is the default: newMatcher has refused it.
func resolve(value *intstr.IntOrString, fallback intstr.IntOrString, total int) int {
	if value == nil {
		value = &fallback
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, total, false)
	if err != nil {
		n, err = intstr.GetScaledValueFromIntOrPercent(&fallback, total, false)
	}
	if err != nil {
		return 0 // a default is well-formed
	}
	return max(n, 0)
}

func valueOr(value *int32, fallback int32) int32 {
	if value == nil {
		return fallback
	}
	return *value
}

// checkStrategy finds numbers that are none.
func checkStrategy(strategy *fleet.RolloutStrategy) error {
	if strategy == nil {
		return nil
	}
	fields := map[string]*intstr.IntOrString{
		"maxUnavailable": strategy.MaxUnavailable, "maxUnavailablePartitions": strategy.MaxUnavailablePartitions, "autoPartitionSize": strategy.AutoPartitionSize,
	}
	for i, p := range strategy.Partitions {
		fields[fmt.Sprintf("partitions[%d].maxUnavailable", i)] = p.MaxUnavailable
	}
	for name, value := range fields {
		if value == nil {
			continue
		}
		if _, err := intstr.GetScaledValueFromIntOrPercent(value, 100, false); err != nil {
			return fmt.Errorf("rolloutStrategy.%s is %q: it is a number or a percentage such as 25%%", name, value.String())
		}
	}
	return nil
}
