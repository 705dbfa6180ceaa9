// Package explain says of an object of the fleet what is wrong, what that means and what to do about it: the causes that there are, each with its remedy.
//
// It reads nothing and changes nothing. What it is given are objects as the API server of the hub has them, whose conditions say in one sentence what is so; what it
// adds is what somebody needs who has never seen that sentence. docs/troubleshooting.md is made from the same causes.
package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Problem is what an object says of itself that is not as it should be.
type Problem struct {
	// Kind, Namespace and Name are those of the object; Namespace is empty if it is in none.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Condition is the type of the condition that says so; empty if it is a state of the object.
	Condition string `json:"condition,omitempty"`
	// Reason is its stable word, Message its sentence.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Since is when it became so; zero if the object does not say.
	Since time.Time `json:"since,omitzero"`
}

// Object is how users name the object of a problem.
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
	// Means says what is so, and Remedy what to do about it; empty if this version of the program does not know the reason.
	Means  string `json:"means,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// OnHub and OnMember are commands to do so, or to see more: with kubectl or helm, at the hub and at the member.
	OnHub    []string `json:"onHub,omitempty"`
	OnMember []string `json:"onMember,omitempty"`
	// Aside: nothing is wrong, but somebody may want to know.
	Aside bool `json:"aside,omitempty"`
	// Passing: it goes on by itself, and nobody has to do anything yet.
	Passing bool `json:"passing,omitempty"`

	rank int
}

// Of returns what the objects say is wrong, the likeliest cause of all else first, then what is wrong for reasons that this version does not know, then what is
// worth knowing.
func Of(objects ...client.Object) []Finding {
	var findings []Finding
	for _, o := range objects {
		for _, p := range problemsOf(o) {
			findings = append(findings, find(p))
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.rank, b.rank) })
	said := map[string]bool{}
	return slices.DeleteFunc(findings, func(f Finding) bool { // one object says the same in two conditions, as a Cluster that cannot be imported does
		sentence := f.Object() + ": " + cmp.Or(f.Message, f.Reason)
		again := said[sentence]
		said[sentence] = true
		return again
	})
}

// AgentRemedy is what to do about the state that an agent says of itself; empty if there is nothing to do.
func AgentRemedy(state string) string {
	if found := find(Problem{Kind: kindAgent, Reason: state}); !found.Aside {
		return found.Remedy
	}
	return ""
}

// find looks for the cause of a problem.
func find(p Problem) Finding {
	i := slices.IndexFunc(causes, func(c cause) bool { return slices.Contains(c.kinds, p.Kind) && slices.Contains(c.reasons, p.Reason) })
	if i < 0 {
		return Finding{Problem: p, Aside: p.Reason == "", rank: len(causes)}
	}
	c, rank := causes[i], i
	if c.aside {
		rank += len(causes) + 1
	}
	words := strings.NewReplacer("NAMESPACE", p.Namespace, "NAME", p.Name)
	return Finding{Problem: p, Means: c.means, Remedy: words.Replace(c.remedy), OnHub: replaced(words, c.onHub), OnMember: replaced(words, c.onMember), Aside: c.aside, Passing: c.passing, rank: rank}
}

// isAside says whether a reason is that of something worth knowing although nothing is wrong, also where the condition is as it should be.
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
