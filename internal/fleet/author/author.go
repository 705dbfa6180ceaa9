// Package author reads the last author of an object's spec or data, written by an admission policy
// of the hub's chart.
package author

import "strings"

// The annotations of an author, written by the admission policy.
const (
	// AnnotationName is the author's user name.
	AnnotationName = "muster/author"
	// AnnotationGroups holds the author's groups, one per line.
	AnnotationGroups = "muster/author-groups"
)

// The groups assigned by Kubernetes to all users, and to service accounts.
const (
	groupAuthenticated   = "system:authenticated"
	groupServiceAccounts = "system:serviceaccounts"
	prefixServiceAccount = "system:serviceaccount:"
	userAnonymous        = "system:anonymous"
)

// Author is the last user to change the spec of a placement or an override, or the data of an
// envelope.
type Author struct {
	// Name is the user name.
	Name string
	// groups, one per line: a string makes authors comparable.
	groups string
}

// Of returns the author of an object with these annotations, and whether one is known.
func Of(annotations map[string]string) (Author, bool) {
	a := Author{Name: annotations[AnnotationName], groups: annotations[AnnotationGroups]}
	if a.groups == "" { // a user has set the annotation of the name alone
		a.groups = strings.Join(impliedGroups(a.Name), "\n")
	}
	return a, a.Name != ""
}

// impliedGroups returns the groups implied by a user name.
func impliedGroups(name string) []string {
	if name == userAnonymous {
		return nil
	}
	if account, is := strings.CutPrefix(name, prefixServiceAccount); is {
		namespace, _, _ := strings.Cut(account, ":")
		return []string{groupServiceAccounts, groupServiceAccounts + ":" + namespace, groupAuthenticated}
	}
	return []string{groupAuthenticated}
}

// Groups returns the groups of the author.
func (a Author) Groups() []string {
	if a.groups == "" {
		return nil
	}
	return strings.Split(a.groups, "\n")
}
