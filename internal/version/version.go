// Package version holds the version of the program, which the linker sets with -X.
package version

import (
	"regexp"
	"strings"
)

// unset is the version of a program that was built without one.
const unset = "dev"

// Version of the program, such as v0.1.0.
var Version = unset

// Known says whether the program was built with a version.
func Known() bool { return Version != unset }

// semantic is a semantic version (https://semver.org/) without a leading v.
var semantic = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// Semantic is the semantic version for what git describes, which may be a commit alone: charts take no other, and images have it as their tag.
func Semantic(described string) string {
	if version := strings.TrimPrefix(described, "v"); semantic.MatchString(version) {
		return version
	}
	return "0.0.0-g" + described
}
