package scheduling

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// value is the measure of a preference on one member.
type value struct {
	applies bool
	number  float64
}

func (p preference) value(m *Member) value {
	if !p.labels.Matches(labels.Set(m.Labels)) {
		return value{}
	}
	if p.sorter == nil {
		return value{applies: true}
	}
	text, known := m.property(p.sorter.Name)
	if !known {
		return value{}
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return value{}
	}
	return value{applies: true, number: quantity.AsApproximateFloat64()}
}

// scores returns the sums of the weights of each member's matching preferences. A sorter gives a
// part of the weight, by the distance of the member to the worst one.
func (p *Policy) scores(members []*Member) []int {
	sums := make([]float64, len(members))
	values := make([]value, len(members))
	for _, preferred := range p.preferred {
		least, most := math.Inf(1), math.Inf(-1)
		for i, m := range members {
			values[i] = preferred.value(m)
			if values[i].applies {
				least, most = min(least, values[i].number), max(most, values[i].number)
			}
		}
		for i, v := range values {
			if v.applies {
				sums[i] += preferred.weight * preferred.part(v.number, least, most)
			}
		}
	}
	scores := make([]int, len(members))
	for i, sum := range sums {
		scores[i] = int(math.Round(sum))
	}
	return scores
}

// part returns the part of the weight for a member.
func (p preference) part(number, least, most float64) float64 {
	switch {
	case p.sorter == nil, least == most:
		return 1
	case p.sorter.SortOrder == placement.Ascending:
		return (most - number) / (most - least)
	}
	return (number - least) / (most - least)
}
