// Package version holds the version of the program, set by the linker with -X.
package version

import (
	"regexp"
	"strings"
)

// unset is the version of a program without a version at build time.
const unset = "dev"

// Version is the version of the program, such as v0.1.0.
var Version = unset

// Known reports whether the program was built with a version.
func Known() bool { return Version != unset }

// semantic is a semantic version (https://semver.org/) without a leading v.
var semantic = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// Semantic returns the semantic version for the output of git describe; the output may be only a
// commit. Charts accept no other form, and images have it as their tag.
func Semantic(described string) string {
	if version := strings.TrimPrefix(described, "v"); semantic.MatchString(version) {
		return version
	}
	return "0.0.0-g" + described
}
