// Package policy applies the Policies of a namespace to its Bundles, GitRepos and HelmOps.
//
// It writes the status of Policies. Its invariant: a decision depends on the rules alone, and an
// invalid rule refuses its whole subject.
package policy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxNamed limits the Policies and values in a message.
	maxNamed = 5
	// maxQuoted limits a quoted value.
	maxQuoted = 200
)

// Rules are the united rules of the Policies of a namespace. The zero value allows everything.
type Rules struct {
	// requiring names the Policies with requireServiceAccount.
	requiring []string
	account   preset
	accounts  list
	// creating names the Policies that allow the creation of namespaces, keeping the Policies that
	// forbid it.
	creating, keeping []string
	namespaces        list
	selectors         []selector
	downstream        list
	gitRepo           gitRepoRules
	helmOp            helmOpRules
}

// preset is a default value, with its Policy.
type preset struct{ value, by string }

func (p *preset) offer(policy, value string) {
	if p.value == "" && value != "" {
		*p = preset{value, policy}
	}
}

// list is a united list of allowed values.
type list struct {
	// by names the Policies with the list. Without any, every value is allowed.
	by, values []string
}

// add adds the list of a Policy; nil is no list.
func (l *list) add(policy string, values []string) {
	if values != nil {
		l.by, l.values = appendNew(l.by, policy), append(l.values, values...)
	}
}

func (l list) allows(value string) bool { return len(l.by) == 0 || slices.Contains(l.values, value) }

// remedy returns the remedy for a missing or refused value.
func (l list) remedy(what string) string {
	if len(l.by) == 0 {
		return "set " + what
	}
	values := slices.Compact(slices.Sorted(slices.Values(l.values)))
	if len(values) == 0 {
		return fmt.Sprintf("remove %s, or have a Policy allow a value", what)
	}
	first := values[:min(maxNamed, len(values))]
	return fmt.Sprintf("set it to one of %s, or have a Policy allow another value", kube.JoinNames(first, len(values)))
}

// patterns is a united list of regular expressions for allowed values.
type patterns struct {
	by  []string
	all []*regexp.Regexp
}

// add adds the patterns of a Policy; nil is no list. An invalid pattern allows nothing.
func (p *patterns) add(policy string, texts []string) {
	if texts == nil {
		return
	}
	p.by = appendNew(p.by, policy)
	for _, text := range texts {
		if pattern, err := anchored(text); err == nil {
			p.all = append(p.all, pattern)
		}
	}
}

func (p patterns) allows(value string) bool {
	return len(p.by) == 0 || slices.ContainsFunc(p.all, func(pattern *regexp.Regexp) bool { return pattern.MatchString(value) })
}

// anchored returns a pattern for whole values.
func anchored(text string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(text); err != nil { // parentheses of the text must not close the group
		return nil, err
	}
	return regexp.Compile(`^(?:` + text + `)$`)
}

// selector is the namespace selector of a Policy.
type selector struct {
	by    string
	value *metav1.LabelSelector
}

// Violation is the rule broken by an object.
type Violation struct {
	// Policies have the rule.
	Policies []string
	// Field has the refused value. Rule describes the rule, Remedy the correction.
	Field, Rule, Remedy string
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%s %s: %s", v.Field, v.Rule, v.Remedy)
}

// refused returns the violation of a value outside a list.
func refused(by []string, field, value, remedy string) *Violation {
	return &Violation{by, field, fmt.Sprintf("is %s, which %s of its namespace does not allow", quoted(value), named(by)), remedy}
}

// named returns the Policies for a message: Policy a, or Policies a, b.
func named(policies []string) string {
	if len(policies) == 1 {
		return kindAndName(policies[0])
	}
	return "the Policies " + kube.JoinNames(policies[:min(maxNamed, len(policies))], len(policies))
}

func kindAndName(policy string) string {
	if strings.HasPrefix(policy, restrictionPrefix) {
		return policy
	}
	return "Policy " + policy
}

func quoted(value string) string { return fmt.Sprintf("%q", kube.Clip(value, maxQuoted)) }

// Unite unites the Policies of a namespace.
func Unite(policies []fleet.Policy) Rules {
	sorted := slices.SortedFunc(slices.Values(policies), func(a, b fleet.Policy) int { return cmp.Compare(a.Name, b.Name) })
	var r Rules
	for i := range sorted {
		for _, rules := range rulesOf(&sorted[i]) {
			r.add(sorted[i].Name, rules)
		}
	}
	return r
}

// rulesOf returns the rules in both places of a Policy.
func rulesOf(p *fleet.Policy) []*fleet.PolicyRules {
	all := []*fleet.PolicyRules{&p.PolicyRules}
	if p.Spec != nil {
		all = append(all, p.Spec)
	}
	return all
}

func (r *Rules) add(policy string, rules *fleet.PolicyRules) {
	if rules.RequireServiceAccount {
		r.requiring = appendNew(r.requiring, policy)
	}
	r.account.offer(policy, rules.DefaultServiceAccount)
	r.accounts.add(policy, rules.AllowedServiceAccounts)
	if allowed := rules.AllowNamespaceCreation; allowed != nil && *allowed {
		r.creating = appendNew(r.creating, policy)
	} else if allowed != nil {
		r.keeping = appendNew(r.keeping, policy)
	}
	r.namespaces.add(policy, rules.AllowedTargetNamespaces)
	if rules.AllowedTargetNamespaceSelector != nil {
		r.selectors = append(r.selectors, selector{policy, rules.AllowedTargetNamespaceSelector})
	}
	r.downstream.add(policy, downstreamValues(rules.AllowedDownstreamResources))
	if rules.GitRepo != nil {
		r.gitRepo.add(policy, rules.GitRepo)
	}
	if rules.HelmOp != nil {
		r.helmOp.add(policy, rules.HelmOp)
	}
}

// anyName is the name of an entry for every object of its kind. No object has it.
const anyName = "*"

func downstreamValues(allowed []fleet.AllowedDownstreamResource) []string {
	if allowed == nil {
		return nil
	}
	values := []string{}
	for _, one := range allowed {
		values = append(values, one.Kind+" "+cmp.Or(one.Name, anyName))
	}
	return values
}

func appendNew(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// joined returns the names of some Policies in one line.
func joined(policies []string) string {
	return strings.Join(policies[:min(maxNamed, len(policies))], ", ")
}
