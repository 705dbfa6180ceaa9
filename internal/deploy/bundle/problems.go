package bundle

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/kube"
)

// problems are what keeps releases without BundleDeployment from being removed. No status is left to report them in, so the agent does in its report.
type problems struct {
	mu     sync.Mutex
	byName map[string]protocol.Blocked
	// reported is what the agent was sent last; nil before the first report of this process.
	reported *protocol.Blocked
}

// setProblem sets the problem with the release of a BundleDeployment.
func (d *Deployer) setProblem(name, reason, message string) {
	d.problems.mu.Lock()
	defer d.problems.mu.Unlock()
	if d.problems.byName == nil {
		d.problems.byName = map[string]protocol.Blocked{}
	}
	d.problems.byName[name] = protocol.Blocked{Reason: reason, Message: message}
	d.reportProblems()
}

// clearProblem removes a problem.
func (d *Deployer) clearProblem(name string) {
	d.problems.mu.Lock()
	defer d.problems.mu.Unlock()
	delete(d.problems.byName, name)
	d.reportProblems()
}

// reportFirstProblems reports even that there are no problems, once: an earlier process may have reported some.
func (d *Deployer) reportFirstProblems() {
	d.problems.mu.Lock()
	defer d.problems.mu.Unlock()
	if d.problems.reported == nil {
		d.reportProblems()
	}
}

// reportProblems reports the problems if they changed. The lock is held.
func (d *Deployer) reportProblems() {
	joint := join(d.problems.byName)
	if d.problems.reported != nil && *d.problems.reported == joint {
		return
	}
	d.problems.reported = &joint
	d.Blocked(joint)
}

// problemOf is the name of a problem with a Secret.
func problemOf(secret string) string { return "secret/" + secret }

// join makes one condition of all problems: the first by reason and name, and the number of the others. By reason, RemovalBlocked comes before
// RemovalUnconfirmed, which usually passes by itself.
func join(byName map[string]protocol.Blocked) protocol.Blocked {
	if len(byName) == 0 {
		return protocol.Blocked{}
	}
	names := slices.SortedFunc(maps.Keys(byName), func(a, b string) int {
		return cmp.Or(cmp.Compare(byName[a].Reason, byName[b].Reason), cmp.Compare(a, b))
	})
	first := byName[names[0]]
	first.Message = kube.JoinTexts([]string{first.Message}, len(names))
	return first
}
