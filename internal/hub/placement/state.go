package placement

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/placement/override"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// observed is the input of decide.
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
	// paused: a user has paused the placement.
	paused bool
	// policyProblem is the error in the policy.
	policyProblem string
	members       []*scheduling.Member
	selected      selection.Selection
	// author is the user with the rights for the selection, "" if no rights limit it. rightsProblem is
	// the reason why these rights are unknown. rightsErr is the error, and leads to a retry.
	author        string
	rightsProblem condition
	rightsErr     error
	// resources are the placed objects, and parts their division among Works.
	resources selection.Resources
	parts     []part
	// home is the location of objects. otherHomes holds the members with another location. full names
	// the Work without enough space for its objects.
	home       home
	otherHomes map[string]otherHome
	full       string
	// unfounded is the reason why the hub does not act on the selection: a selected object is
	// missing without a known cause for its removal.
	unfounded condition
	overrides override.Set
	// unmatched describes the overrides for the placement without a matching object.
	unmatched []string
	// reviewed: the rights of a user limit the changes of an override or the objects of an envelope.
	// overridesHeld: a counting override cannot be applied because of the rights of its author.
	// ignored holds the reasons of overrides without effect.
	reviewed, overridesHeld bool
	ignored                 []string
	// current holds the Works of each member namespace, and reported the reports of the members'
	// agents about them.
	current  map[string]*currentWorks
	reported map[string]worksStatus
	// evicted holds the names of evicted members still listed as picked in the status.
	evicted map[string]bool
	// now is the time of the observation. runs are the staged update runs of the placement, the
	// oldest first. staging is nil unless they roll it out.
	now     time.Time
	runs    []observedRun
	staging *staging
	// takeoverProblem is the reason why Works of KubeFleet's hub cannot be taken over. leftovers
	// describes the other leftovers of KubeFleet's hub.
	takeoverProblem, leftovers string
}

// decision is the next step of a placement.
type decision struct {
	// problem is the reason why nothing is done, and placed objects stay unchanged; the zero
	// condition without one.
	problem condition
	result  scheduling.Result
	desired desiredWorks
	// overridden maps member namespaces to versions changed by overrides, or divided differently.
	overridden map[string]overridden
	plan       rolloutPlan
	// upToDate holds the member namespaces with exactly the desired Works. waiting holds the
	// namespaces before their turn.
	upToDate, waiting map[string]bool
	// policyHash is the hash to store: for the required terms met by all members with the
	// placement.
	policyHash string
	// recheckAt is the time of the next change without an event; zero if never.
	recheckAt time.Time
	// runs are the next steps of staged update runs. `record` is the version to store now.
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
	case o.paused:
		d.problem = condition{metav1.ConditionFalse, reasons.Paused,
			"the placement is paused, and nothing changes: " + membership.Unpause("placements/"+strings.TrimPrefix(o.key.String(), "/"))}
	case o.takeoverProblem != "":
		d.problem = condition{metav1.ConditionFalse, reasons.KubeFleetLeftovers, o.takeoverProblem}
	}
	terms, bound := hashTerms(o.spec.Policy), o.bound()
	d.result = o.policy.Pick(o.members, bound, o.before.PolicyHash != "" && o.before.PolicyHash != terms)
	if o.paused || o.selectionProblem() != (condition{}) {
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

// recreate notes the members with desired Works deleted by another client, as far as the hub may
// write them again.
func (d *decision) recreate(o observed, targets []target, mayWrite func(target) bool) {
	for _, t := range targets {
		if mayWrite(t) && !t.paused && len(o.current[t.namespace].retained(o.key, d.desiredFor(t.namespace))) > 0 {
			d.plan.recreate = append(d.plan.recreate, t)
		}
	}
}

// bound returns the namespaces of the members with the placement, including members whose Works
// another client deletes. Each has a Work, with two exceptions where the status is used. A leaving
// member may lose its Works before its membership object. Without any Work, the definition of Works
// may have been deleted.
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

// scheduledMembers returns the members listed as picked in a status.
func scheduledMembers(status *placement.PlacementStatus) map[string]bool {
	names := map[string]bool{}
	for _, s := range status.PlacementStatuses {
		if meta.IsStatusConditionTrue(s.Conditions, placement.ConditionScheduled) {
			names[s.ClusterName] = true
		}
	}
	return names
}

// reportsDiff reports whether agents only report the differences of a member.
func reportsDiff(strategy *placement.ApplyStrategy) bool {
	return strategy != nil && strategy.Type == placement.ApplyReportDiff
}

// targets returns every member with the placement, and every picked member, except for leaving
// members. Their own agents remove their Works. dropping reports whether a member has yet to lose
// the placement.
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
			unreachable: unreachable(d.Member), paused: d.Member.Paused,
		}
		t.blocked = next.overriddenCondition(t.namespace).status == metav1.ConditionFalse || !d.Member.Admits(o.key.Namespace)
		if current != nil {
			outdated, surplus := current.diff(o.key, next.desiredFor(t.namespace))
			lacks := func(part int) bool { return current.find(workName(o.key, part)) == nil }
			t.incomplete = len(surplus) == 0 && !slices.ContainsFunc(outdated, func(part int) bool { return !lacks(part) })
			t.deleting, t.upToDate = current.deleting, len(outdated) == 0 && len(surplus) == 0
			t.works, t.available = o.reported[t.namespace].works, o.reported[t.namespace].ready
			dropping = dropping || !t.wanted && !t.deleting // a removal in progress is decided, even while its agent is away
		}
		targets = append(targets, t)
	}
	return targets, dropping
}

// desiredWorks returns the Works of members without overrides. The index counts the changes of
// the selection. For a placement rolled out by runs it is the version for the members.
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

// hashTerms returns a hash of the required terms of a policy. Members with the placement are
// filtered by them again only after a change.
func hashTerms(p *placement.PlacementPolicy) string {
	var required *placement.ClusterSelector
	if p != nil && p.Affinity != nil && p.Affinity.ClusterAffinity != nil {
		required = p.Affinity.ClusterAffinity.Required
	}
	text, err := json.Marshal(required)
	if err != nil {
		return "" // every selector can be encoded
	}
	return naming.ShortDigest(text)
}
