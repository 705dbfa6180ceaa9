package bundle

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/kube"
)

// problems are the obstacles to removing releases without a BundleDeployment, and the releases
// unknown to a restored hub. They have no status left, so the agent reports them.
type problems struct {
	mu     sync.Mutex
	byName map[string]protocol.Blocked
	// kept has the releases unknown to a restored hub, by the name of their BundleDeployment.
	kept map[string]applied.Kept
	// reported is the last report to the agent; nil before the first report of this process.
	reported *problemReport
}

// problemReport is a report to the agent.
type problemReport struct {
	blocked protocol.Blocked
	kept    []applied.Kept
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

// reportFirstProblems reports the problems once, even if there are none, because an earlier process
// may have reported some.
func (d *Deployer) reportFirstProblems() {
	d.problems.mu.Lock()
	defer d.problems.mu.Unlock()
	if d.problems.reported == nil {
		d.reportProblems()
	}
}

// reportProblems reports the problems if they changed. The caller holds the lock.
func (d *Deployer) reportProblems() {
	now := problemReport{blocked: join(d.problems.byName), kept: sorted(d.problems.kept)}
	if last := d.problems.reported; last != nil && last.blocked == now.blocked && slices.Equal(last.kept, now.kept) {
		return
	}
	d.problems.reported = &now
	d.Blocked(now.blocked, now.kept)
}

// sorted returns the values of a map in the order of its keys.
func sorted(kept map[string]applied.Kept) (list []applied.Kept) {
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		list = append(list, kept[name])
	}
	return list
}

// problemOf returns the name of a problem with a Secret.
func problemOf(secret string) string { return "secret/" + secret }

// join merges all problems into one condition: the first by reason and name, and the number of
// others. RemovalBlocked sorts before RemovalUnconfirmed, because the latter usually passes by
// itself.
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
