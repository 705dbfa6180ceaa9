package placement

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/placement/override"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/kube"
)

// observed is all that is decided on.
//
//	selectors ──► resources ──► desired Works ──┐
//	                                            ├──► plan: the members whose Works are written or deleted now
//	policy, members, current Works ──► picks ───┘
type observed struct {
	key        types.NamespacedName
	uid        types.UID
	kind       string
	generation int64
	spec       *placement.PlacementSpec
	before     placement.PlacementStatus
	policy     *scheduling.Policy
	// policyProblem is what is wrong with the policy.
	policyProblem string
	members       []*scheduling.Member
	selected      selection.Selection
	// author is the user whose rights count for what is selected, "" if nobody's do. rightsProblem is
	// why his rights are not known, and rightsErr the error, after which the question is asked again.
	author        string
	rightsProblem condition
	rightsErr     error
	// resources are what is placed, and parts how they are divided among Works.
	resources selection.Resources
	parts     []part
	// home says where objects are, otherHomes where they are for members that have one elsewhere, full
	// which Work cannot hold what it has to.
	home       home
	otherHomes map[string]otherHome
	full       string
	// unfounded is why what is selected is not acted on: something that was selected is missing in it,
	// and nothing is known by which it may be removed.
	unfounded condition
	overrides override.Set
	// reviewed: the rights of a user count for what an override changes or an envelope holds.
	// overridesHeld: an override that counts cannot be applied because of the rights of its author.
	// ignored says of each override that does not count why.
	reviewed, overridesHeld bool
	ignored                 []string
	// current are the Works of each member namespace, and reported what the member's
	// agent reports of them.
	current  map[string]*currentWorks
	reported map[string]worksStatus
	// evicted are members that the status still lists as picked, by their names.
	evicted map[string]bool
	// now is when this was observed. runs are the staged update runs of the placement, the oldest
	// first; staging is nil unless they roll it out.
	now     time.Time
	runs    []observedRun
	staging *staging
	// takeoverProblem is why Works that KubeFleet's hub wrote cannot be taken over; leftovers is what
	// else that hub has left.
	takeoverProblem, leftovers string
}

// decision is what is to be done.
type decision struct {
	// problem is why nothing is done, and what is placed stays as it is; the zero
	// condition if there is none.
	problem condition
	result  scheduling.Result
	desired desiredWorks
	// overridden, by member namespace, is what members get that overrides change, or that have
	// it divided otherwise.
	overridden map[string]overridden
	plan       rolloutPlan
	// upToDate are the member namespaces that have just the desired Works, waiting those
	// whose turn has not come.
	upToDate, waiting map[string]bool
	// policyHash is the hash to record: of the required terms that all members with the placement
	// meet.
	policyHash string
	// recheckAt is when time alone makes a difference; zero if never.
	recheckAt time.Time
	// runs are what is to be done with staged update runs; record is the version that is kept now.
	runs   []runDecision
	record *version
}

// decide is pure: it has neither client nor clock.
func decide(o observed) decision {
	d := decision{upToDate: map[string]bool{}, waiting: map[string]bool{}, policyHash: o.before.PolicyHash, desired: o.desiredWorks()}
	switch problem := o.selectionProblem(); {
	case o.policyProblem != "":
		d.problem = condition{metav1.ConditionFalse, reasons.InvalidPolicy, o.policyProblem}
		d.stage(o, nil)
		return d
	case problem != condition{}:
		d.problem = problem
	case o.takeoverProblem != "":
		d.problem = condition{metav1.ConditionFalse, reasons.KubeFleetLeftovers, o.takeoverProblem}
	}
	terms, bound := hashTerms(o.spec.Policy), o.bound()
	d.result = o.policy.Pick(o.members, bound, o.before.PolicyHash != "" && o.before.PolicyHash != terms)
	if o.selectionProblem() != (condition{}) {
		d.result = d.result.Only(bound)
	}
	d.overridden = o.override(d.result, d.desired)
	targets, dropping := o.targets(d)
	for _, t := range targets {
		d.upToDate[t.namespace] = t.upToDate
	}
	d.stage(o, targets)
	if d.problem != (condition{}) {
		return d
	}
	if o.staging == nil {
		d.plan = planRollout(targets, o.spec.Strategy.RollingUpdate)
		d.recreate(o, targets, func(t target) bool { return t.wanted })
	}
	for _, t := range d.plan.waiting {
		d.waiting[t.namespace] = true
	}
	if !dropping && !d.result.Undecided {
		d.policyHash = terms
	}
	for _, s := range o.reported {
		if len(d.plan.waiting) > 0 && !d.plan.held {
			d.recheckAt = kube.Earlier(d.recheckAt, s.readyAt)
		}
	}
	return d
}

// recreate notes the members some of whose desired Works somebody deleted, as far as they may be
// written again.
func (d *decision) recreate(o observed, targets []target, mayWrite func(target) bool) {
	for _, t := range targets {
		if mayWrite(t) && len(o.current[t.namespace].retained(o.key, d.desiredFor(t.namespace))) > 0 {
			d.plan.recreate = append(d.plan.recreate, t)
		}
	}
}

// bound are the namespaces of the members that have the placement, also those whose Works somebody
// else than the hub deletes. The status says so of a member that leaves, whose Works go before its
// record does, and of all members if there is no Work at all, because somebody deleted the
// definition of Works: whoever has the placement has a Work.
func (o observed) bound() map[string]bool {
	bound := map[string]bool{}
	for namespace, w := range o.current {
		bound[namespace] = !w.deleting || !slices.ContainsFunc(w.works, removedByHub)
	}
	before, ofRuns := scheduledMembers(&o.before), claimed(o.runs)
	for _, m := range o.members {
		if ofRuns[m.Name] || before[m.Name] && (m.Leaving || len(o.current) == 0 && !o.evicted[m.Name]) {
			bound[m.Namespace] = true
		}
	}
	return bound
}

// scheduledMembers names the members that a status lists as picked.
func scheduledMembers(status *placement.PlacementStatus) map[string]bool {
	names := map[string]bool{}
	for _, s := range status.PlacementStatuses {
		if meta.IsStatusConditionTrue(s.Conditions, placement.ConditionScheduled) {
			names[s.ClusterName] = true
		}
	}
	return names
}

// reportsDiff says whether agents only report in what a member differs.
func reportsDiff(strategy *placement.ApplyStrategy) bool {
	return strategy != nil && strategy.Type == placement.ApplyReportDiff
}

// targets returns every member that has the placement or is picked, but for those that leave, whose
// Works their own agents remove. dropping says whether a member has yet to lose the placement.
func (o observed) targets(next decision) (targets []target, dropping bool) {
	for _, d := range next.result.Decisions {
		if d.Member == nil || d.Member.Leaving {
			continue
		}
		current := o.current[d.Member.Namespace]
		if current == nil && !d.Picked {
			continue
		}
		t := target{
			name: d.Name, namespace: d.Member.Namespace, epoch: d.Member.Epoch, wanted: d.Picked, exists: current != nil, incomplete: current == nil,
			unreachable: unreachable(d.Member),
		}
		t.blocked = next.overriddenCondition(t.namespace).status == metav1.ConditionFalse || !d.Member.Admits(o.key.Namespace)
		if current != nil {
			outdated, surplus := current.diff(o.key, next.desiredFor(t.namespace))
			lacks := func(part int) bool { return current.find(workName(o.key, part)) == nil }
			t.incomplete = len(surplus) == 0 && !slices.ContainsFunc(outdated, func(part int) bool { return !lacks(part) })
			t.deleting, t.upToDate = current.deleting, len(outdated) == 0 && len(surplus) == 0
			t.works, t.available = o.reported[t.namespace].works, o.reported[t.namespace].ready
			dropping = dropping || !t.wanted && !t.deleting // a removal that has begun is decided, however long its agent is away
		}
		targets = append(targets, t)
	}
	return targets, dropping
}

// desiredWorks is what members get without overrides. The index counts the changes of what is
// selected; of a placement that runs roll out it is the version that members get.
func (o observed) desiredWorks() desiredWorks {
	d := desiredWorks{
		parts: o.parts, hash: hashParts(o.parts), index: o.before.ObservedResourceIndex,
		applyStrategy: o.spec.Strategy.ApplyStrategy, deleteStrategy: o.spec.Strategy.DeleteStrategy, envelopes: o.envelopes(),
	}
	if o.staging != nil {
		v, _ := o.newest()
		d.hash, d.index = o.staging.hash, cmp.Or(o.staging.target, &v).String()
		return d
	}
	if kept := o.before.ResourceIndexes; len(kept) > 0 { // runs have rolled it out until now
		d.index = kept[len(kept)-1]
	}
	if d.hash != o.before.ResourceHash {
		next := 0
		if last, err := strconv.Atoi(d.index); err == nil {
			next = last + 1
		}
		d.index = strconv.Itoa(next)
	}
	return d
}

// hashTerms identifies what a policy requires of members. Members that have the placement are
// filtered by it again only when it changes.
func hashTerms(p *placement.PlacementPolicy) string {
	var required *placement.ClusterSelector
	if p != nil && p.Affinity != nil && p.Affinity.ClusterAffinity != nil {
		required = p.Affinity.ClusterAffinity.Required
	}
	text, err := json.Marshal(required)
	if err != nil {
		return "" // every selector can be encoded
	}
	return shortHash(string(text))
}
