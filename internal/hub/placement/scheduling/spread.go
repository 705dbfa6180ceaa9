package scheduling

import (
	"cmp"
	"fmt"
	"math"
)

// spread counts how many picked members each value of each constraint's label has, and hands out candidates.
type spread struct {
	constraints []constraint
	counts      []map[string]int
	// queues hold the candidates, best first, one queue for those of the same values: they are all alike to the constraints.
	queues [][]*Member
	order  func(a, b *Member) int
}

// newSpread starts from those that hold the placement. The values to spread over are those of all that may be picked. The candidates
// are in the given order.
func newSpread(constraints []constraint, held, candidates []*Member, order func(a, b *Member) int) *spread {
	s := &spread{constraints: constraints, order: order}
	for _, c := range constraints {
		counts := map[string]int{}
		for _, members := range [][]*Member{held, candidates} {
			for _, m := range members {
				if value, has := m.Labels[c.key]; has {
					counts[value] = 0
				}
			}
		}
		s.counts = append(s.counts, counts)
	}
	for _, m := range held {
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

// next takes the candidate that breaks no strict constraint, the fewest of the others, leaves the members spread the most evenly, and
// is the best of those alike. It returns nil if there is none.
func (s *spread) next() *Member {
	floors, best := s.floors(), -1
	var least [2]int
	for i, queue := range s.queues {
		if len(queue) == 0 {
			continue
		}
		broken, skew, allowed := s.weigh(queue[0], floors)
		if !allowed {
			continue
		}
		if best < 0 || cmp.Or(broken-least[0], skew-least[1], s.order(queue[0], s.queues[best][0])) < 0 {
			best, least = i, [2]int{broken, skew}
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

// weigh says how many constraints one more pick would break, how uneven it would leave things, and whether it is allowed at all.
func (s *spread) weigh(m *Member, floors []int) (broken, skew int, allowed bool) {
	allowed = true
	for i, c := range s.constraints {
		over := c.maxSkew + 1 // for who cannot be spread at all
		if value, has := m.Labels[c.key]; has {
			over = s.counts[i][value] + 1 - floors[i]
		}
		skew += over
		if over > c.maxSkew {
			broken++
			allowed = allowed && !c.strict
		}
	}
	return broken, skew, allowed
}

// floors is the lowest count of each constraint.
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

// violates says which strict constraint one more pick would break; "" if none.
func (s *spread) violates(m *Member, floors []int) string {
	for i, c := range s.constraints {
		value := m.Labels[c.key]
		if over := s.counts[i][value] + 1 - floors[i]; c.strict && over > c.maxSkew {
			return fmt.Sprintf("%s=%s would have %d more than the value with the fewest; maxSkew is %d", c.key, value, over, c.maxSkew)
		}
	}
	return ""
}
