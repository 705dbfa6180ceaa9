// Package explain names the problems of the fleet's objects, with their meaning and remedy. It
// holds all known causes.
//
// Explain reads nothing and changes nothing. Its input is objects from the hub's API server. Their
// conditions describe the situation in one sentence. Explain adds the background for new users.
// docs/troubleshooting.md is generated from the same causes.
package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Problem is an object's own report of a problem.
type Problem struct {
	// Kind, Namespace and Name identify the object; Namespace is empty for a cluster-scoped object.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Condition is the type of the reporting condition; empty if a state of the object reports the
	// problem.
	Condition string `json:"condition,omitempty"`
	// Reason is the stable word of the problem, Message its sentence.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Since is the start of the problem; zero if unknown.
	Since time.Time `json:"since,omitzero"`
}

// Object returns the name of the object as users write it.
func (p Problem) Object() string { return p.Kind + " " + objectName(p.Namespace, p.Name) }

func objectName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Finding is a problem with its cause.
type Finding struct {
	Problem
	// Means explains the situation, and Remedy gives the next steps; empty if this version does not
	// know the reason.
	Means  string `json:"means,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// OnHub and OnMember are commands for the remedy, or for more details, with kubectl or helm, at
	// the hub and at the member.
	OnHub    []string `json:"onHub,omitempty"`
	OnMember []string `json:"onMember,omitempty"`
	// Aside: nothing is wrong, but a user may want to know.
	Aside bool `json:"aside,omitempty"`
	// Passing: the situation ends by itself, and users need not act yet.
	Passing bool `json:"passing,omitempty"`

	rank int
}

// Of returns the problems of the objects. The likeliest root cause comes first. Problems with
// unknown reasons follow, then notes.
func Of(objects ...client.Object) []Finding {
	var findings []Finding
	for _, o := range objects {
		for _, p := range problemsOf(o) {
			findings = append(findings, find(p))
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.rank, b.rank) })
	printed := map[string]bool{}
	// One object may report one problem in two conditions, such as a Cluster with a failed import.
	return slices.DeleteFunc(findings, func(f Finding) bool {
		sentence := f.Object() + ": " + cmp.Or(f.Message, f.Reason)
		again := printed[sentence]
		printed[sentence] = true
		return again
	})
}

// Same is one finding of several objects, such as the deployments of a Bundle.
type Same struct {
	// Finding is the finding of the first object.
	Finding
	// Others is the number of further objects.
	Others int
}

// Alike joins findings with the same condition, reason and message of objects of one kind, in the
// order of the first ones.
func Alike(findings []Finding) []Same {
	var groups []Same
	places := map[Problem]int{}
	for _, f := range findings {
		key := Problem{Kind: f.Kind, Condition: f.Condition, Reason: f.Reason, Message: f.Message}
		if i, found := places[key]; found && f.Message != "" {
			groups[i].Others++
			continue
		}
		places[key] = len(groups)
		groups = append(groups, Same{Finding: f})
	}
	return groups
}

// AgentRemedy returns the remedy for a state in an agent's own report; empty if none is needed.
func AgentRemedy(state string) string {
	if found := find(Problem{Kind: kindAgent, Reason: state}); !found.Aside {
		return found.Remedy
	}
	return ""
}

// find returns a problem with its cause.
func find(p Problem) Finding {
	i := slices.IndexFunc(causes, func(c cause) bool { return slices.Contains(c.kinds, p.Kind) && slices.Contains(c.reasons, p.Reason) })
	if i < 0 {
		return Finding{Problem: p, Aside: p.Reason == "", rank: len(causes)}
	}
	c, rank := causes[i], i
	if c.aside {
		rank += len(causes) + 1
	}
	c = c.refined(p)
	words := strings.NewReplacer("NAMESPACE", p.Namespace, "NAME", p.Name, "OBJECT", objectName(p.Namespace, p.Name))
	return Finding{
		Problem: p, Means: c.means, Remedy: words.Replace(c.remedy), OnHub: replaced(words, c.onHub), OnMember: replaced(words, c.onMember),
		Aside: c.aside, Passing: c.passing, rank: rank,
	}
}

// isAside reports whether a reason only informs and marks no problem, even in a condition without a
// fault.
func isAside(kind, reason string) bool {
	return find(Problem{Kind: kind, Reason: reason}).Aside && reason != ""
}

func replaced(words *strings.Replacer, commands []string) []string {
	var all []string
	for _, command := range commands {
		all = append(all, words.Replace(command))
	}
	return all
}
