package delivery

import (
	"fmt"
	"regexp"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// CheckComparePatches refuses a name in the diff options if it is an invalid regular expression.
func CheckComparePatches(diff *fleet.DiffOptions) error {
	if diff == nil {
		return nil
	}
	for i, patch := range diff.ComparePatches {
		if _, err := patternOf(patch.Name); err != nil {
			return fmt.Errorf("diff.comparePatches[%d].name %q is no regular expression: %w", i, patch.Name, err)
		}
	}
	return nil
}

// MatchesName reports whether a compare patch is for an object of this name. An empty name in the
// patch matches all. As in Rancher Fleet, a name may be a regular expression for the whole name. It
// is a regular expression if it has a character not allowed in names. An invalid one matches
// nothing.
func MatchesName(patch fleet.ComparePatch, name string) bool {
	if patch.Name == "" || patch.Name == name {
		return true
	}
	pattern, err := patternOf(patch.Name)
	return err == nil && pattern != nil && pattern.MatchString(name)
}

// patternOf returns the regular expression in a name; nil if it is the name of an object.
func patternOf(name string) (*regexp.Regexp, error) {
	if !strings.ContainsAny(name, `*+?[](){}|^$\`) {
		return nil, nil
	}
	if _, err := regexp.Compile(name); err != nil { // a parenthesis in it must not close the group
		return nil, err
	}
	return regexp.Compile(`^(?:` + name + `)$`)
}
