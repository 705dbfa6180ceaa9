package deploy

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/muster-fleet/muster/internal/agent/deployer"
)

// problems are what keeps releases from being removed whose BundleDeployments are gone, so that there is no status to say it in. The
// agent says it in its report.
type problems struct {
	mu     sync.Mutex
	byName map[string]deployer.Blocked
	// told is what the agent was told last; nil before it was told anything by this process.
	told *deployer.Blocked
}

// setProblem remembers why the release of a BundleDeployment that is gone is not removed, by the name of the BundleDeployment.
func (d *Deployer) setProblem(name, reason, message string) {
	d.problems.mu.Lock()
	defer d.problems.mu.Unlock()
	if d.problems.byName == nil {
		d.problems.byName = map[string]deployer.Blocked{}
	}
	d.problems.byName[name] = deployer.Blocked{Reason: reason, Message: message}
	d.tellProblems()
}

// clearProblem forgets it.
func (d *Deployer) clearProblem(name string) {
	d.problems.mu.Lock()
	defer d.problems.mu.Unlock()
	delete(d.problems.byName, name)
	d.tellProblems()
}

// tellFirst tells the agent where this process stands, if nothing has yet: a process before may have told it something else.
func (d *Deployer) tellFirst() {
	d.problems.mu.Lock()
	defer d.problems.mu.Unlock()
	if d.problems.told == nil {
		d.tellProblems()
	}
}

// tellProblems tells the agent if there is something else to say than before. The lock is held.
func (d *Deployer) tellProblems() {
	joint := join(d.problems.byName)
	if d.Blocked == nil || d.problems.told != nil && *d.problems.told == joint {
		return
	}
	d.problems.told = &joint
	d.Blocked(joint)
}

// problemOf is the name of the problem with a Secret, which no BundleDeployment has.
func problemOf(secret string) string { return "secret/" + secret }

// join makes one condition of all problems: the first by reason and name in full, the others by their number. What is blocked comes before
// what waits to be confirmed, which usually passes by itself.
func join(byName map[string]deployer.Blocked) deployer.Blocked {
	if len(byName) == 0 {
		return deployer.Blocked{}
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(byName[a].Reason, byName[b].Reason), cmp.Compare(a, b))
	})
	first := byName[names[0]]
	if len(names) > 1 {
		first.Message += fmt.Sprintf("; and %d more", len(names)-1)
	}
	return first
}
