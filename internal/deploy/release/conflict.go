package release

import "regexp"

// Conflict is an object that a release wants and another one has.
type Conflict struct {
	Kind, Namespace, Name string
	// Release is the name of the one that has it; empty if it belongs to none.
	Release string
}

var (
	conflicting = regexp.MustCompile(`(\S+) "([^"]+)" in namespace "([^"]*)" exists and cannot be imported into the current release`)
	holder      = regexp.MustCompile(`key "meta\.helm\.sh/release-name" must equal "[^"]*": current value is "([^"]*)"`)
)

// ConflictIn finds the conflict in an error of Deploy.
func ConflictIn(err error) (Conflict, bool) {
	found := conflicting.FindStringSubmatch(err.Error())
	if found == nil {
		return Conflict{}, false
	}
	conflict := Conflict{Kind: found[1], Name: found[2], Namespace: found[3]}
	if held := holder.FindStringSubmatch(err.Error()); held != nil {
		conflict.Release = held[1]
	}
	return conflict, true
}
