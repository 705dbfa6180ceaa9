package dashboard

import (
	"fmt"
	"html/template"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// mostSelections limits the targets of a Bundle, or named members of a placement, on a page.
const mostSelections = 100

// selection is one way of a Bundle or a placement to select members: all of its criteria must
// match.
type selection struct {
	// Name is its name; may be empty.
	Name     string
	Criteria []criterion
	// KeptOff reports whether the selected members are excluded from the delivery.
	KeptOff bool
}

// criterion is a condition on a member. Link is the view of the matching members; empty if there is
// no such view.
type criterion struct {
	Text string
	Link template.URL
}

// labelled returns the criterion of a label selector, in a workspace, or in the whole fleet.
// Visitors can change the selector in its view and see the selected members as they type.
func labelled(selector *metav1.LabelSelector, namespace string) criterion {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return criterion{Text: fmt.Sprintf("an invalid label selector: %v", err)}
	}
	q := query{Path: fleetPath, Namespace: namespace, Selector: parsed.String()}
	if parsed.Empty() {
		return criterion{"any labels", q.Link()}
	}
	return criterion{q.Selector, q.Link()}
}

// member returns the criterion of a name.
func member(name string) criterion {
	return criterion{name, template.URL(memberPath(name))} //nolint:gosec // it is escaped
}

// criteriaOf returns the common criteria of a target and a restriction of targets.
func criteriaOf(namespace, cluster string, selector *metav1.LabelSelector, group string,
	groups *metav1.LabelSelector) (criteria []criterion) {
	if cluster != "" {
		criteria = append(criteria, member(namespace+"/"+cluster))
	}
	if selector != nil {
		criteria = append(criteria, labelled(selector, namespace))
	}
	if group != "" {
		criteria = append(criteria, criterion{Text: "in the ClusterGroup " + group})
	}
	if groups != nil {
		criteria = append(criteria, criterion{Text: "in a ClusterGroup with " + labelled(groups, "").Text})
	}
	if len(criteria) == 0 {
		criteria = []criterion{{Text: "no member: the target has no criteria"}}
	}
	return criteria
}

// targetsOf returns the selections of a Bundle, and its restrictions. The first matching selection
// of a Cluster counts, and one of the restrictions must match it, too.
func targetsOf(b *fleet.Bundle) (targets, restrictions []selection) {
	for _, t := range b.Spec.Targets {
		targets = append(targets,
			selection{t.Name, criteriaOf(b.Namespace, t.ClusterName, t.ClusterSelector, t.ClusterGroup, t.ClusterGroupSelector), t.DoNotDeploy})
	}
	for _, t := range b.Spec.TargetRestrictions {
		restrictions = append(restrictions,
			selection{t.Name, criteriaOf(b.Namespace, t.ClusterName, t.ClusterSelector, t.ClusterGroup, t.ClusterGroupSelector), false})
	}
	return targets, restrictions
}

// picksOf returns the selections of a placement. One of them must match a member.
func picksOf(policy *placement.PlacementPolicy) (picks []selection) {
	if policy == nil {
		policy = &placement.PlacementPolicy{}
	}
	for _, name := range policy.ClusterNames {
		picks = append(picks, selection{Criteria: []criterion{member(name)}})
	}
	if affinity := policy.Affinity; affinity != nil && affinity.ClusterAffinity != nil && affinity.ClusterAffinity.Required != nil {
		for _, term := range affinity.ClusterAffinity.Required.ClusterSelectorTerms {
			picks = append(picks, selection{Criteria: criteriaOfTerm(term)})
		}
	}
	if len(picks) == 0 && policy.PlacementType != placement.PickFixed {
		picks = []selection{{Criteria: []criterion{{"any member", "/"}}}}
	}
	return picks
}

func criteriaOfTerm(term placement.ClusterSelectorTerm) (criteria []criterion) {
	if term.LabelSelector != nil || term.PropertySelector == nil {
		selector := term.LabelSelector
		if selector == nil {
			selector = &metav1.LabelSelector{} // an empty term is met by all
		}
		criteria = append(criteria, labelled(selector, ""))
	}
	if term.PropertySelector != nil {
		for _, r := range term.PropertySelector.MatchExpressions {
			text := fmt.Sprintf("%s %s %s", r.Name, r.Operator, strings.Join(r.Values, ", "))
			criteria = append(criteria, criterion{Text: strings.TrimSpace(text)})
		}
	}
	return criteria
}
