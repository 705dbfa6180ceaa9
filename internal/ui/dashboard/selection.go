package dashboard

import (
	"fmt"
	"html/template"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// mostSelections is how many targets of a Bundle, or members that a placement names, are shown.
const mostSelections = 100

// selection is one of the ways in which a Bundle or a placement selects members: those that meet
// all of its criteria.
type selection struct {
	// Name is what it is called; empty if it has no name.
	Name     string
	Criteria []criterion
	// KeptOff says that what is delivered is kept off those that it selects.
	KeptOff bool
}

// criterion is what a member has to be or to have. Link is the view of those for whom it holds;
// empty if there is no such view.
type criterion struct {
	Text string
	Link template.URL
}

// labelled is the criterion of a selector over labels, in a workspace or, if that is empty, in
// the fleet. Its view is one in which the selector can be changed, and whom it selects is
// shown as it is typed.
func labelled(selector *metav1.LabelSelector, namespace string) criterion {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return criterion{Text: fmt.Sprintf("a selector that cannot be read: %v", err)}
	}
	q := query{Path: fleetPath, Namespace: namespace, Selector: parsed.String(), Group: byWorkspace}
	if parsed.Empty() {
		return criterion{"any labels", q.Link()}
	}
	return criterion{q.Selector, q.Link()}
}

// member is the criterion of a name.
func member(name string) criterion {
	return criterion{name, template.URL(memberPath(name))} //nolint:gosec // it is escaped
}

// criteriaOf are those that a target and a restriction of targets have in common.
func criteriaOf(namespace, cluster string, selector *metav1.LabelSelector, group string, groups *metav1.LabelSelector) (all []criterion) {
	if cluster != "" {
		all = append(all, member(namespace+"/"+cluster))
	}
	if selector != nil {
		all = append(all, labelled(selector, namespace))
	}
	if group != "" {
		all = append(all, criterion{Text: "in the ClusterGroup " + group})
	}
	if groups != nil {
		all = append(all, criterion{Text: "in a ClusterGroup with " + labelled(groups, "").Text})
	}
	if len(all) == 0 {
		all = []criterion{{Text: "nothing: it has no criteria"}}
	}
	return all
}

// targetsOf are the selections of a Bundle, of which the first that selects a Cluster counts, and
// those of which one has to select it besides.
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

// picksOf are the selections of a placement, of which one has to select a member.
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

func criteriaOfTerm(term placement.ClusterSelectorTerm) (all []criterion) {
	if term.LabelSelector != nil || term.PropertySelector == nil {
		selector := term.LabelSelector
		if selector == nil {
			selector = &metav1.LabelSelector{} // a term without anything is met by all
		}
		all = append(all, labelled(selector, ""))
	}
	if term.PropertySelector != nil {
		for _, r := range term.PropertySelector.MatchExpressions {
			all = append(all, criterion{Text: strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Name, r.Operator, strings.Join(r.Values, ", ")))})
		}
	}
	return all
}
