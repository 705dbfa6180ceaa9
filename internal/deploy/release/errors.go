package release

import (
	"fmt"
	"regexp"
	"strings"
)

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

// tooLarge says what to do about a release that does not fit into the Secret in which Helm keeps it.
func tooLarge(r Request, err error) error {
	if !strings.Contains(err.Error(), "sh.helm.release.v1.") || !strings.Contains(err.Error(), "Too long: may not be more than") {
		return err
	}
	return fmt.Errorf("release %s/%s does not fit into a Secret, in which Helm keeps it and Kubernetes allows 1 MiB: make it two Bundles, the second with dependsOn",
		r.Namespace, r.Release)
}
