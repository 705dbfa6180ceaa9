package placement

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
)

// observed is all that is decided on.
//
//	selectors ──► objects ──► parts ─┐
//	                                 ├──► plan: which members are written to or emptied now ──► Works
//	policy, members, holdings ──► picks ┘
type observed struct {
	key        types.NamespacedName
	kind       string
	generation int64
	spec       *placement.PlacementSpec
	before     placement.PlacementStatus
	policy     *scheduling.Policy
	// policyProblem is what is wrong with the policy.
	policyProblem string
	members       []*scheduling.Member
	selected      selection.Selection
	parts         []part
	// holdings by member namespace, and how the Works in each are.
	holdings map[string]*holding
	standing map[string]standing
}

// decision is what is to be done.
type decision struct {
	// problem is why nothing is done; what is placed stays as it is. The zero verdict is none.
	problem verdict
	result  scheduling.Result
	cargo   cargo
	plan    plan
	// current are the member namespaces that hold just what they should.
	current map[string]bool
	// settledPolicy is the hash to record: of the required terms by which all holders were picked.
	settledPolicy string
	// wake is when time alone makes a difference; zero if never.
	wake time.Time
}

// decide is pure: it has neither client nor clock.
func decide(o observed) decision {
	d := decision{current: map[string]bool{}, settledPolicy: o.before.PolicyHash}
	d.cargo = load(o)
	switch {
	case o.policyProblem != "":
		d.problem = verdict{metav1.ConditionFalse, reasonInvalidPolicy, o.policyProblem}
		return d
	case o.selected.Problem != "":
		d.problem = verdict{metav1.ConditionFalse, reasonInvalid, o.selected.Problem}
	}
	terms := hashTerms(o.spec.Policy)
	held := map[string]bool{}
	for namespace, h := range o.holdings {
		held[namespace] = !h.going
	}
	d.result = o.policy.Pick(o.members, held, o.before.PolicyHash != "" && o.before.PolicyHash != terms)
	targets, dropping := o.targets(d.result, d.cargo)
	for _, t := range targets {
		d.current[t.namespace] = t.current
	}
	if d.problem != (verdict{}) {
		return d
	}
	d.plan = roll(targets, o.spec.Strategy.RollingUpdate)
	for _, t := range targets {
		if t.wanted && len(o.holdings[t.namespace].retained(o.key, d.cargo)) > 0 {
			d.plan.retain = append(d.plan.retain, t)
		}
	}
	if !dropping {
		d.settledPolicy = terms
	}
	for _, s := range o.standing {
		if len(d.plan.waiting) > 0 && !s.availableAt.IsZero() {
			d.wake = sooner(d.wake, s.availableAt)
		}
	}
	return d
}

// reportsOnly says whether members are asked only in what they differ.
func reportsOnly(strategy *placement.ApplyStrategy) bool {
	return strategy != nil && strategy.Type == placement.ApplyReportDiff
}

// targets says of every member that holds the placement or is picked how it stands. dropping says whether one has yet to lose it.
func (o observed) targets(result scheduling.Result, c cargo) (targets []target, dropping bool) {
	nothing := len(o.selected.Objects) == 0
	for _, d := range result.Decisions {
		if d.Member == nil || d.Member.Leaving {
			continue // whoever leaves is emptied by its own agent
		}
		h := o.holdings[d.Member.Namespace]
		if h == nil && (!d.Picked || nothing) {
			continue
		}
		t := target{name: d.Name, namespace: d.Member.Namespace, wanted: d.Picked, exists: h != nil, idle: idle(d.Member)}
		if h != nil {
			missing, surplus := h.stale(o.key, c)
			t.going, t.current = h.going, len(missing) == 0 && len(surplus) == 0
			t.available = o.standing[t.namespace].works
			dropping = dropping || !t.wanted
		}
		targets = append(targets, t)
	}
	return targets, dropping
}

// load is what each member gets.
func load(o observed) cargo {
	c := cargo{parts: o.parts, hash: hashOf(o.parts), index: o.before.ObservedResourceIndex, apply: o.spec.Strategy.ApplyStrategy, remove: o.spec.Strategy.DeleteStrategy}
	if c.hash != o.before.ResourceHash {
		next := 0
		if last, err := strconv.Atoi(o.before.ObservedResourceIndex); err == nil {
			next = last + 1
		}
		c.index = strconv.Itoa(next)
	}
	return c
}

// hashTerms identifies what a policy requires of members. Those that hold the placement are measured by it again only when it changes.
func hashTerms(p *placement.PlacementPolicy) string {
	var required *placement.ClusterSelector
	if p != nil && p.Affinity != nil && p.Affinity.ClusterAffinity != nil {
		required = p.Affinity.ClusterAffinity.Required
	}
	text, err := json.Marshal(required)
	if err != nil {
		return "" // there is nothing in it that cannot be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:16]
}
