package bundle

import (
	"fmt"
	"math"
	"strconv"
	"strings"

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

// candidate is a BundleDeployment as seen by the rollout. Candidates are in the order of their
// update.
type candidate struct {
	// partition is the index of the configured partition, or the number of partitions for a
	// candidate outside all of them.
	partition int
	// exists reports whether the BundleDeployment exists. current reports whether it has the
	// Bundle's deployment ID for it.
	exists, current bool
	// available reports whether its deployment ID is in place and ready.
	available bool
	// blocked reports whether another cause than the rollout stops changes: it is paused, or the
	// Bundle is invalid for its Cluster.
	blocked bool
	// pending reports whether its last write is missing in the cache, and so blocks its release.
	pending bool
}

// partition is a part of the candidates, updated before the next one begins.
type partition struct {
	name string
	// members are indexes of candidates.
	members []int
	// maxUnavailable limits the unavailable members. unavailable is their number after the plan
	// is carried out.
	maxUnavailable, unavailable int
}

// plan is the next step of a rollout.
type plan struct {
	// release reports for each candidate whether it is created or updated now.
	release    []bool
	partitions []partition
	// maxUnavailable and maxUnavailablePartitions limit the unavailable deployments and
	// partitions in all.
	maxUnavailable, maxUnavailablePartitions int
	// unavailable and unavailablePartitions are the numbers of unavailable deployments and
	// partitions after the plan is carried out.
	unavailable, unavailablePartitions int
}

// rollout selects the deployments to create or update now.
//
// Partitions go one after the other. A partition begins when the partitions before it are updated
// and within their maxUnavailable, except for maxUnavailablePartitions of them. Within a
// partition, unavailable deployments are updated at once. An offline cluster then gets only the
// last change, and a bad change can be reverted. Available ones are updated as long as
// maxUnavailable is not reached. Missing deployments are created at once: this makes nothing
// unavailable.
func rollout(strategy *fleet.RolloutStrategy, candidates []candidate) plan {
	if strategy == nil {
		strategy = &fleet.RolloutStrategy{}
	}
	p := plan{release: make([]bool, len(candidates)), partitions: partitionsOf(strategy, candidates)}
	p.maxUnavailablePartitions = resolve(strategy.MaxUnavailablePartitions, intstr.FromInt32(0), len(p.partitions))
	unfinished := 0
	for i := range p.partitions {
		w := &p.partitions[i]
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

// advance releases the updates allowed in a partition, if the partition has begun. It reports
// whether the partition is finished.
func (p *plan) advance(w *partition, candidates []candidate, begun bool) (finished bool) {
	for _, m := range w.members {
		if c := candidates[m]; c.exists && !c.available {
			w.unavailable++
		}
	}
	finished = true
	for _, m := range w.members {
		c := candidates[m]
		switch {
		case c.blocked || (c.exists && c.current):
		case !begun, c.pending, c.exists && c.available && w.unavailable >= max(w.maxUnavailable, 1):
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

// partitionsOf divides the candidates into the configured partitions. Without them it makes
// partitions of equal size if there are many candidates.
func partitionsOf(strategy *fleet.RolloutStrategy, candidates []candidate) []partition {
	if len(candidates) == 0 {
		return nil
	}
	var partitions []partition
	if len(strategy.Partitions) > 0 {
		partitions = make([]partition, len(strategy.Partitions)+1)
		for i, c := range candidates {
			partitions[c.partition].members = append(partitions[c.partition].members, i)
		}
		for i, asked := range strategy.Partitions {
			partitions[i].name = asked.Name
			if asked.Name == "" {
				partitions[i].name = fmt.Sprintf("Partition %d", i+1)
			}
			limit(&partitions[i], strategy, &asked)
		}
		rest := &partitions[len(partitions)-1]
		if rest.name = "All others"; len(rest.members) == 0 {
			return partitions[:len(partitions)-1]
		}
		limit(rest, strategy, nil)
		return partitions
	}
	size := len(candidates)
	requested := strategy.AutoPartitionSize
	whole := requested != nil && requested.Type == intstr.Int && requested.IntVal <= 0 // as upstream: no partitions
	if len(candidates) >= int(valueOr(strategy.AutoPartitionThreshold, defaultPartitionsAtLeast)) && !whole {
		size = max(resolve(strategy.AutoPartitionSize, defaultPartitionSize, len(candidates)), 1)
	}
	for from := 0; from < len(candidates); from += size {
		w := partition{name: "All"}
		if size < len(candidates) {
			w.name = fmt.Sprintf("Partition %d", len(partitions)+1)
		}
		for i := from; i < min(from+size, len(candidates)); i++ {
			w.members = append(w.members, i)
		}
		limit(&w, strategy, nil)
		partitions = append(partitions, w)
	}
	return partitions
}

// limit sets the maximum of unavailable members of a partition. With zero, they are updated one
// after the other, and the partition is finished when all are available.
func limit(w *partition, strategy *fleet.RolloutStrategy, asked *fleet.Partition) {
	value := strategy.MaxUnavailable
	if asked != nil && asked.MaxUnavailable != nil {
		value = asked.MaxUnavailable
	}
	w.maxUnavailable = resolve(value, defaultMaxUnavailable, len(w.members))
}

// resolve returns a limit: a number, at least zero, or a percentage of the total, rounded down and
// at least one. A malformed value counts as the default: newMatcher has refused it.
func resolve(value *intstr.IntOrString, fallback intstr.IntOrString, total int) int {
	if value == nil {
		value = &fallback
	}
	n, percent, err := limitOf(value)
	if err != nil {
		n, percent, _ = limitOf(&fallback) // defaults are well-formed
	}
	if percent {
		return max(int(n*float64(total)/100), min(total, 1))
	}
	return max(int(n), 0)
}

// limitOf parses a limit as Rancher Fleet does: a number, also as a text, or a percentage,
// possibly with a fraction.
func limitOf(value *intstr.IntOrString) (n float64, percent bool, err error) {
	if value.Type == intstr.Int {
		return float64(value.IntVal), false, nil
	}
	text, percent := strings.CutSuffix(value.StrVal, "%")
	if !percent {
		whole, err := strconv.ParseInt(text, 10, 32)
		return float64(whole), false, err
	}
	if n, err = strconv.ParseFloat(text, 64); err == nil && !(math.Abs(n) <= math.MaxInt32) {
		err = strconv.ErrRange
	}
	return n, true, err
}

func valueOr(value *int32, fallback int32) int32 {
	if value == nil {
		return fallback
	}
	return *value
}

// checkStrategy refuses malformed numbers and percentages.
func checkStrategy(strategy *fleet.RolloutStrategy) error {
	if strategy == nil {
		return nil
	}
	fields := map[string]*intstr.IntOrString{
		"maxUnavailable": strategy.MaxUnavailable, "maxUnavailablePartitions": strategy.MaxUnavailablePartitions,
		"autoPartitionSize": strategy.AutoPartitionSize,
	}
	for i, p := range strategy.Partitions {
		fields[fmt.Sprintf("partitions[%d].maxUnavailable", i)] = p.MaxUnavailable
	}
	for name, value := range fields {
		if value == nil {
			continue
		}
		if _, _, err := limitOf(value); err != nil {
			return fmt.Errorf("rolloutStrategy.%s is %q: it is a number or a percentage such as 25%%", name, value.String())
		}
	}
	return nil
}

// maxNewOf returns the number of deployments of a Bundle created at once.
func maxNewOf(bundle *fleet.Bundle) int {
	if strategy := bundle.Spec.RolloutStrategy; strategy != nil {
		return int(max(valueOr(strategy.MaxNew, defaultMaxNew), 1))
	}
	return int(defaultMaxNew)
}
