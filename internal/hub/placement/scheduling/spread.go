package scheduling

import (
	"cmp"
	"fmt"
	"math"
)

// spread counts the picked members by the value of each constraint's label, and returns
// candidates one after another.
type spread struct {
	constraints []constraint
	counts      []map[string]int
	// queues hold the candidates, best first. Candidates with the same values for all constraints
	// share a queue.
	queues [][]*Member
	order  func(a, b *Member) int
}

// newSpread counts the members with the placement. It spreads over the label values of all
// eligible members. The candidates are in the given order.
func newSpread(constraints []constraint, bound, candidates []*Member, order func(a, b *Member) int) *spread {
	s := &spread{constraints: constraints, order: order}
	for _, c := range constraints {
		counts := map[string]int{}
		for _, members := range [][]*Member{bound, candidates} {
			for _, m := range members {
				if value, has := m.Labels[c.key]; has {
					counts[value] = 0
				}
			}
		}
		s.counts = append(s.counts, counts)
	}
	for _, m := range bound {
		s.add(m)
	}
	queueOf := map[string]int{}
	for _, m := range candidates {
		values := ""
		for _, c := range constraints {
			value, has := m.Labels[c.key]
			values += fmt.Sprintf("%s/%t,", value, has)
		}
		queue, known := queueOf[values]
		if !known {
			queue = len(s.queues)
			queueOf[values] = queue
			s.queues = append(s.queues, nil)
		}
		s.queues[queue] = append(s.queues[queue], m)
	}
	return s
}

func (s *spread) add(m *Member) {
	for i, c := range s.constraints {
		if value, has := m.Labels[c.key]; has {
			s.counts[i][value]++
		}
	}
}

// next removes and returns the best candidate; nil if there is none. The candidate violates no
// strict constraint and the fewest others. Among equals it spreads most evenly, then comes first
// in the given order.
func (s *spread) next() *Member {
	floors, best := s.floors(), -1
	var least [2]int
	for i, queue := range s.queues {
		if len(queue) == 0 {
			continue
		}
		violated, skew, allowed := s.weigh(queue[0], floors)
		if !allowed {
			continue
		}
		if best < 0 || cmp.Or(violated-least[0], skew-least[1], s.order(queue[0], s.queues[best][0])) < 0 {
			best, least = i, [2]int{violated, skew}
		}
	}
	if best < 0 {
		return nil
	}
	m := s.queues[best][0]
	s.queues[best] = s.queues[best][1:]
	s.add(m)
	return m
}

// weigh returns the number of constraints violated by one more pick, and the skew after it. It
// reports whether the pick violates no strict constraint.
func (s *spread) weigh(m *Member, floors []int) (violated, skew int, allowed bool) {
	allowed = true
	for i, c := range s.constraints {
		over := c.maxSkew + 1 // a member without the label cannot be spread
		if value, has := m.Labels[c.key]; has {
			over = s.counts[i][value] + 1 - floors[i]
		}
		skew += over
		if over > c.maxSkew {
			violated++
			allowed = allowed && !c.strict
		}
	}
	return violated, skew, allowed
}

// floors returns the lowest count of each constraint.
func (s *spread) floors() []int {
	floors := make([]int, len(s.counts))
	for i, counts := range s.counts {
		if len(counts) == 0 {
			continue
		}
		floors[i] = math.MaxInt
		for _, count := range counts {
			floors[i] = min(floors[i], count)
		}
	}
	return floors
}

// violates returns a message about the strict constraint violated by one more pick; "" if none.
func (s *spread) violates(m *Member, floors []int) string {
	for i, c := range s.constraints {
		value := m.Labels[c.key]
		if over := s.counts[i][value] + 1 - floors[i]; c.strict && over > c.maxSkew {
			return fmt.Sprintf("%s=%s would have %d more than the value with the fewest; maxSkew is %d", c.key, value, over, c.maxSkew)
		}
	}
	return ""
}
