package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	module  = "github.com/muster-fleet/muster"
	testkit = module + "/internal/testkube"

	raceAuto, raceAll, raceNone = "auto", "all", "none"
)

// longest are the packages with the longest run, in this order. They start first, so that no core
// idles during the last of them.
var longest = []string{
	"internal/hub/test", "internal/ui/cli", "hack/docs", "internal/deploy/bundle", "internal/agent", "internal/ui/dashboard", "hack/release",
	"crash", "internal/deploy/work",
}

// packageLimit ends a package that hangs. It is no aim for its time: the largest one takes more
// than 40 minutes under the race detector on two busy processors.
const packageLimit = "-timeout=55m"

// pkg is a package with tests.
type pkg struct {
	path string
	// planes is set if its tests start control planes.
	planes bool
}

// dir returns the directory of the package in the module.
func (p pkg) dir() string { return strings.TrimPrefix(strings.TrimPrefix(p.path, module), "/") }

// diff is the difference from the base.
type diff struct {
	// revision is the tested commit; it chooses the packages under the race detector.
	revision string
	// files are the changed paths, relative to the module.
	files []string
	// tests are the names of the tests in changed test files, by directory.
	tests map[string][]string
}

// touches reports whether a file of a directory differs.
func (d diff) touches(dir string) bool {
	return slices.ContainsFunc(d.files, func(file string) bool {
		rest, inside := strings.CutPrefix(file, dir+"/")
		return inside && (!strings.Contains(rest, "/") || strings.HasPrefix(rest, "testdata/"))
	})
}

// touchesBelow reports whether a file of a directory, or of one below it, differs. A directory
// named test holds the tests of the directory above. The tests of internal/hub, for example, run
// all its controllers.
func (d diff) touchesBelow(dir string) bool {
	dir = strings.TrimSuffix(dir, "/test")
	return slices.ContainsFunc(d.files, func(file string) bool { return strings.HasPrefix(file, dir+"/") })
}

// job is one call of go test.
type job struct {
	name     string
	packages []string
	flags    []string
}

// plan is the order of the run: first one job after the other, then the packages with control
// planes side by side.
type plan struct {
	first, planes []job
	// noDetector is set if there is no race detector; raced are the packages with control planes under
	// it.
	noDetector bool
	raced      []string
}

// String names the packages under the race detector.
func (p plan) String() string {
	if p.noDetector {
		return "race detector: off, it needs a C compiler"
	}
	if len(p.raced) == 0 {
		return "race detector: unit tests"
	}
	return "race detector: unit tests, " + strings.Join(p.raced, ", ")
}

func newPlan(packages []pkg, differs diff, o options) (plan, error) {
	if !slices.Contains([]string{raceAuto, raceAll, raceNone}, o.race) {
		return plan{}, fmt.Errorf("-race=%s: say auto, all or none", o.race)
	}
	if o.parallel < 1 {
		return plan{}, errors.New("-p: say how many packages run side by side, at least 1")
	}
	p := plan{noDetector: o.noDetector}
	race := []string{"-race"}
	if o.noDetector {
		race, o.race = nil, raceNone
	}
	var units, short []string
	for _, candidate := range byLength(packages) {
		touched := differs.touches(candidate.dir())
		if o.changed && !touched {
			continue
		}
		if !candidate.planes {
			units = append(units, candidate.path)
			continue
		}
		raced := o.race == raceAll || o.race == raceAuto && (differs.touchesBelow(candidate.dir()) || chosen(differs.revision, candidate.path))
		j := job{name: candidate.dir(), packages: []string{candidate.path}, flags: []string{packageLimit}}
		if raced && !o.changed {
			p.raced = append(p.raced, candidate.dir())
			j.flags = append(j.flags, race...)
		} else if o.changed || !o.noDetector { // else the same tests run again, without anything to detect
			short = append(short, candidate.path)
		}
		tests := differs.tests[candidate.dir()]
		if o.changed {
			j.flags = append(append(j.flags, race...), "-run=^("+strings.Join(tests, "|")+")$")
		}
		if !o.changed || len(tests) > 0 {
			p.planes = append(p.planes, j)
		}
	}
	if len(units) > 0 {
		p.first = append(p.first, job{name: "unit tests", packages: units, flags: race})
	}
	if len(short) > 0 {
		p.first = append(p.first, job{name: "unit tests of packages with control planes", packages: short, flags: append(race, "-short")})
	}
	return p, nil
}

// byLength returns the packages with the longest first.
func byLength(packages []pkg) []pkg {
	rank := func(p pkg) int {
		if i := slices.Index(longest, p.dir()); i >= 0 {
			return i
		}
		return len(longest)
	}
	sorted := slices.Clone(packages)
	slices.SortStableFunc(sorted, func(a, b pkg) int { return rank(a) - rank(b) })
	return sorted
}

// chosen reports whether a package belongs to the third under the race detector for a commit.
func chosen(revision, path string) bool {
	sum := sha256.Sum256([]byte(revision + " " + path))
	return sum[0]%3 == 0
}
