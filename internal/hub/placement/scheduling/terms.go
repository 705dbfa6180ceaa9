package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// term is one ClusterSelectorTerm, compiled.
type term struct {
	labels     labels.Selector
	properties []requirement
}

// requirement compares a property of a member.
type requirement struct {
	name     string
	operator placement.PropertySelectorOperator
	value    string
}

// preference is one PreferredClusterSelector, compiled.
type preference struct {
	weight float64
	labels labels.Selector
	// sorter is nil if every member with the labels gets the whole weight.
	sorter *placement.PropertySorter
}

func compileTerm(t placement.ClusterSelectorTerm, path string) (term, error) {
	selector, err := compileLabels(t.LabelSelector, path)
	if err != nil {
		return term{}, err
	}
	compiled := term{labels: selector}
	if t.PropertySelector == nil {
		return compiled, nil
	}
	for i, e := range t.PropertySelector.MatchExpressions {
		at := fmt.Sprintf("%s.propertySelector.matchExpressions[%d]", path, i)
		if len(e.Values) != 1 {
			return term{}, fmt.Errorf("%s.values must have exactly one value", at)
		}
		if _, err := resource.ParseQuantity(e.Values[0]); err != nil {
			if _, err := version.ParseGeneric(e.Values[0]); err != nil {
				return term{}, fmt.Errorf("%s.values[0] is %q, which is not a quantity such as 5 or 8Gi", at, e.Values[0])
			}
		}
		compiled.properties = append(compiled.properties, requirement{name: e.Name, operator: e.Operator, value: e.Values[0]})
	}
	return compiled, nil
}

func compileLabels(selector *metav1.LabelSelector, path string) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("%s.labelSelector: %w", path, err)
	}
	return compiled, nil
}

// unreported is the prefix of a miss about an unknown property. For a member with the placement
// it is no miss.
const unreported = "it does not report "

// miss returns the unmet requirement of a term for a member; "" if it meets all.
func (t term) miss(m *Member) string {
	if !t.labels.Matches(labels.Set(m.Labels)) {
		return fmt.Sprintf("its labels do not match %q", t.labels.String())
	}
	unknown := ""
	for _, r := range t.properties {
		have, reported := m.property(r.name)
		if !reported {
			unknown = cmp.Or(unknown, unreported+r.name)
			continue
		}
		order, err := compare(have, r.value)
		if err != nil {
			return fmt.Sprintf("its %s is %s: %v", r.name, have, err)
		}
		if !holds(r.operator, order) {
			return fmt.Sprintf("its %s is %s, not %s %s", r.name, have, r.operator, r.value)
		}
	}
	return unknown
}

// misses returns the reason why a member meets none of the terms. It returns "" if the member
// meets one, or if there are none.
func misses(terms []term, m *Member) string {
	var why []string
	for _, t := range terms {
		miss := t.miss(m)
		if miss == "" {
			return ""
		}
		why = append(why, miss)
	}
	return strings.Join(why, "; ")
}

// mayMeet reports whether a member may meet one of the terms: the term fails only on an
// unreported property.
func mayMeet(terms []term, m *Member) bool {
	return slices.ContainsFunc(terms, func(t term) bool { return strings.HasPrefix(t.miss(m), unreported) })
}

func holds(operator placement.PropertySelectorOperator, order int) bool {
	switch operator {
	case placement.PropertyGreater:
		return order > 0
	case placement.PropertyGreaterOrEqual:
		return order >= 0
	case placement.PropertyEqual:
		return order == 0
	case placement.PropertyNotEqual:
		return order != 0
	case placement.PropertyLess:
		return order < 0
	case placement.PropertyLessOrEqual:
		return order <= 0
	}
	return false
}

// compare orders two quantities, or two versions such as v1.36.3.
func compare(have, want string) (int, error) {
	a, err := resource.ParseQuantity(have)
	if err == nil {
		b, err := resource.ParseQuantity(want)
		if err != nil {
			return 0, fmt.Errorf("it cannot be compared with %s", want)
		}
		return a.Cmp(b), nil
	}
	v, err := version.ParseGeneric(have)
	if err != nil {
		return 0, fmt.Errorf("that is not a quantity")
	}
	order, err := v.Compare(want)
	if err != nil {
		return 0, fmt.Errorf("it cannot be compared with %s", want)
	}
	return order, nil
}
