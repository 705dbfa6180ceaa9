// Package override computes a member's version of a placement from its ClusterResourceOverrides
// and ResourceOverrides.
//
// It reads and writes nothing: it is a function from overrides, objects and a member to objects.
// Its invariants: an override changes neither the kind nor the name of an object. A
// ResourceOverride changes nothing outside its namespace. If one rule fails, nothing is
// overridden.
package override

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/author"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// Override is a ClusterResourceOverride or ResourceOverride.
type Override struct {
	// NamespacedName has no namespace for a ClusterResourceOverride.
	types.NamespacedName
	generation int64
	placement  *placement.PlacementRef
	selectors  []placement.ResourceSelector
	policy     *placement.OverridePolicy
	// Author is the user with the rights for the changes of the override, if HasAuthor.
	Author    author.Author
	HasAuthor bool
}

// OfCluster returns the Override of a ClusterResourceOverride.
func OfCluster(o *placement.ClusterResourceOverride) Override {
	by, known := author.Of(o.Annotations)
	return Override{NamespacedName: types.NamespacedName{Name: o.Name}, generation: o.Generation, placement: o.Spec.Placement,
		selectors: o.Spec.ClusterResourceSelectors, policy: o.Spec.Policy, Author: by, HasAuthor: known}
}

// OfNamespace returns the Override of a ResourceOverride.
func OfNamespace(o *placement.ResourceOverride) Override {
	key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	by, known := author.Of(o.Annotations)
	return Override{NamespacedName: key, generation: o.Generation, placement: o.Spec.Placement, selectors: o.Spec.ResourceSelectors,
		policy: o.Spec.Policy, Author: by, HasAuthor: known}
}

// String names the override in messages.
func (o Override) String() string {
	if o.Namespace == "" {
		return "ClusterResourceOverride " + o.Name
	}
	return "ResourceOverride " + o.NamespacedName.String()
}

// ID identifies the override, in any version, among the overrides of a Work.
func (o Override) ID() string { return naming.ShortDigest(o.String()) }

// SameAuthor reports whether two versions of an override have the same author.
func (o Override) SameAuthor(other Override) bool {
	return o.Author == other.Author && o.HasAuthor == other.HasAuthor
}

// version returns the name of the override with its number of spec changes, as tools expect.
func (o Override) version() string { return fmt.Sprintf("%s-%d", o.Name, max(o.generation-1, 0)) }

// For reports whether the override applies to a placement. An override without a placement applies
// to all. A ResourceOverride also applies to the ResourcePlacement of this name in its namespace:
// scope has a default, so the author may not have chosen Cluster.
func (o Override) For(of types.NamespacedName) bool {
	switch {
	case o.placement == nil:
		return true
	case of.Name != o.placement.Name:
		return false
	case of.Namespace == "":
		return o.Namespace == "" || o.placement.Scope != placement.NamespaceScoped
	}
	return of.Namespace == o.Namespace
}

// Placements returns the placements the override may apply to; none if it applies to all.
func (o Override) Placements() (keys []types.NamespacedName) {
	if o.placement == nil {
		return nil
	}
	for _, namespace := range slices.Compact([]string{"", o.Namespace}) {
		if key := (types.NamespacedName{Namespace: namespace, Name: o.placement.Name}); o.For(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Selects reports whether the override selects a resource.
func (o Override) Selects(r placement.ResourceIdentifier) bool {
	return slices.ContainsFunc(o.selectors, func(s placement.ResourceSelector) bool {
		if o.Namespace == "" && s.Group == "" && s.Kind == "Namespace" && r.Namespace != "" {
			return s.Name == r.Namespace // everything in it
		}
		return s.Group == r.Group && s.Version == r.Version && s.Kind == r.Kind && s.Name == r.Name && o.Namespace == r.Namespace
	})
}

func identify(o *unstructured.Unstructured) placement.ResourceIdentifier {
	kind := o.GroupVersionKind()
	return placement.ResourceIdentifier{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(),
	}
}

// Set holds the overrides for one placement, in the order of their application: ResourceOverrides
// come last and win.
type Set []compiled

// compiled is an override with compiled rules.
type compiled struct {
	Override
	rules []rule
	// problem is the reason why it can never be applied.
	problem string
	hash    string
	// standing reports whether it counts.
	standing Standing
}

// Choose returns the overrides of a placement with a match among its objects.
func Choose(overrides []Override, key types.NamespacedName, objects []*unstructured.Unstructured) Set {
	var set Set
	for _, o := range overrides {
		selects := func(object *unstructured.Unstructured) bool { return o.Selects(identify(object)) }
		if o.For(key) && slices.ContainsFunc(objects, selects) {
			set = append(set, compile(o))
		}
	}
	slices.SortFunc(set, func(a, b compiled) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return set
}

// Member is the member data used by overrides.
type Member struct {
	Name   string
	Labels map[string]string
}

// Resolved holds the rules for a member, with variables replaced by the member's values.
type Resolved struct {
	// Key is the same for members with the same result.
	Key string
	// Cluster and Namespaced name the overrides with their versions.
	Cluster    []string
	Namespaced []placement.NamespacedName
	// ClusterHash and NamespacedHash identify their contents; empty if there are none.
	ClusterHash, NamespacedHash string
	// IDs identify the overrides.
	IDs []string
	// Problem is the reason why they cannot be applied. Reason is the reason of the condition;
	// empty if the rules are the cause.
	Problem, Reason string
	steps           []step
}

// step is one rule for one member.
type step struct {
	from       compiled
	remove     bool
	operations []operation
}

// Any reports whether there is anything to override.
func (r Resolved) Any() bool { return len(r.Cluster)+len(r.Namespaced) > 0 }

// Resolve returns the rules for a member.
func (s Set) Resolve(m Member) Resolved {
	r := Resolved{}
	var key, cluster, namespaced strings.Builder
	for _, o := range s {
		applies := false
		for i, rule := range o.rules {
			if !rule.selects(labels.Set(m.Labels)) {
				continue
			}
			applies = true
			operations, problem := substitute(rule.operations, m)
			if problem != "" && r.Problem == "" {
				r.Problem = fmt.Sprintf("%s: policy.overrideRules[%d]: %s", o, i, problem)
			}
			r.steps = append(r.steps, step{from: o, remove: rule.remove, operations: operations})
			text, err := json.Marshal(operations)
			fmt.Fprintln(&key, o.NamespacedName, o.hash, i, string(text), err)
		}
		switch {
		case !applies && o.problem == "":
			continue
		case o.standing.Reason != "" && r.Problem == "":
			r.Reason, r.Problem = o.standing.Reason, o.standing.Message
		}
		r.IDs = append(r.IDs, o.ID())
		if o.Namespace == "" {
			r.Cluster = append(r.Cluster, o.version())
			fmt.Fprintln(&cluster, o.Name, o.hash)
		} else {
			r.Namespaced = append(r.Namespaced, placement.NamespacedName{Namespace: o.Namespace, Name: o.version()})
			fmt.Fprintln(&namespaced, o.NamespacedName, o.hash)
		}
		if o.problem != "" && r.Problem == "" {
			r.Problem = fmt.Sprintf("%s: %s", o, o.problem)
		}
		fmt.Fprintln(&key, o.NamespacedName, o.hash)
	}
	if len(r.Cluster) > 0 {
		r.ClusterHash = naming.ShortDigest(cluster.String())
	}
	if len(r.Namespaced) > 0 {
		r.NamespacedHash = naming.ShortDigest(namespaced.String())
	}
	r.Key = key.String()
	return r
}

// Apply returns the member's version of the objects. The given objects are not changed.
func (r Resolved) Apply(objects []*unstructured.Unstructured) (overridden []*unstructured.Unstructured, problem string) {
	if r.Problem != "" {
		return nil, r.Problem
	}
	for _, object := range objects {
		id, left := identify(object), object
		for _, step := range r.steps {
			if left == nil || !step.from.Selects(id) {
				continue
			}
			if step.remove {
				left = nil
				continue
			}
			if left, problem = patch(left, step.operations); problem != "" {
				return nil, fmt.Sprintf("%s: %s: %s", step.from, kube.Name(id.Kind, id.Namespace, id.Name), problem)
			}
		}
		if left != nil {
			overridden = append(overridden, left)
		}
	}
	return overridden, ""
}

// rule is one OverrideRule, compiled.
type rule struct {
	all        bool
	selectors  []labels.Selector
	remove     bool
	operations []operation
}

func (r rule) selects(member labels.Set) bool {
	return r.all || slices.ContainsFunc(r.selectors, func(s labels.Selector) bool { return s.Matches(member) })
}

func compile(o Override) compiled {
	text, err := json.Marshal([]any{o.selectors, o.policy})
	c := compiled{Override: o, hash: naming.ShortDigest(text)}
	if err != nil || o.policy == nil {
		c.problem = "it has no policy"
		return c
	}
	for i, s := range o.selectors {
		if s.Name == "" || s.LabelSelector != nil {
			c.problem = fmt.Sprintf("selector %d must select its resource by name", i)
			return c
		}
	}
	for i, given := range o.policy.OverrideRules {
		compiled, problem := compileRule(given)
		if problem != "" {
			c.rules, c.problem = nil, fmt.Sprintf("policy.overrideRules[%d]: %s", i, problem)
			return c
		}
		c.rules = append(c.rules, compiled)
	}
	return c
}

func compileRule(given placement.OverrideRule) (r rule, problem string) {
	r.remove = given.OverrideType == placement.OverrideDelete
	if given.ClusterSelector != nil {
		r.all = len(given.ClusterSelector.ClusterSelectorTerms) == 0
		for i, term := range given.ClusterSelector.ClusterSelectorTerms {
			if term.PropertySelector != nil || term.PropertySorter != nil {
				return r, fmt.Sprintf("clusterSelectorTerms[%d]: members are selected by labelSelector only", i)
			}
			if term.LabelSelector == nil {
				r.all = true
				continue
			}
			selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
			if err != nil {
				return r, fmt.Sprintf("clusterSelectorTerms[%d].labelSelector: %v", i, err)
			}
			r.selectors = append(r.selectors, selector)
		}
	}
	switch {
	case r.remove && len(given.JSONPatchOverrides) > 0:
		return r, "jsonPatchOverrides are for overrideType JSONPatch only"
	case !r.remove && len(given.JSONPatchOverrides) == 0:
		return r, "it has no jsonPatchOverrides"
	}
	for i, o := range given.JSONPatchOverrides {
		operation, problem := parse(o)
		if problem != "" {
			return r, fmt.Sprintf("jsonPatchOverrides[%d]: %s", i, problem)
		}
		r.operations = append(r.operations, operation)
	}
	return r, ""
}
