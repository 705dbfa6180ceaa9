package release

import (
	"fmt"
	"regexp"
	"strings"
)

// Conflict is an object in a release with another owner.
type Conflict struct {
	Kind, Namespace, Name string
	// Release is the release with the object; empty if the object belongs to none.
	Release ID
}

var (
	conflicting = regexp.MustCompile(`(\S+) "([^"]+)" in namespace "([^"]*)" exists and cannot be imported into the current release`)
	holder      = regexp.MustCompile(`key "meta\.helm\.sh/release-(name|namespace)" must equal "[^"]*": current value is "([^"]*)"`)
)

// ConflictIn finds the conflict in an error of deploying a release.
func ConflictIn(err error, deployed ID) (Conflict, bool) {
	found := conflicting.FindStringSubmatch(err.Error())
	if found == nil {
		return Conflict{}, false
	}
	conflict := Conflict{Kind: found[1], Name: found[2], Namespace: found[3]}
	// Helm names only the wrong values.
	for _, owner := range holder.FindAllStringSubmatch(err.Error(), -1) {
		if conflict.Release == (ID{}) {
			conflict.Release = deployed
		}
		if owner[1] == "name" {
			conflict.Release.Name = owner[2]
		} else {
			conflict.Release.Namespace = owner[2]
		}
	}
	return conflict, true
}

// tooLarge adds the remedy for a release too large for Helm's Secret.
func tooLarge(r Request, err error) error {
	if !strings.Contains(err.Error(), "sh.helm.release.v1.") || !strings.Contains(err.Error(), "Too long: may not be more than") {
		return err
	}
	return fmt.Errorf("release %s/%s does not fit into a Secret. Helm keeps it there, and Kubernetes allows 1 MiB: make it two Bundles, "+
		"the second with dependsOn",
		r.Namespace, r.Release)
}
