package scheduling

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// member is one of three nodes that has the given labels, as key=value.
func member(name string, labels ...string) *Member {
	m := &Member{Name: name, Namespace: "fleet-member-" + name, Labels: map[string]string{},
		Properties: map[string]clusterv1beta1.PropertyValue{
			"kubernetes-fleet.io/node-count": {Value: "3"}, "k8s.io/k8s-version": {Value: "v1.36.3"},
		}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		m.Labels[key] = value
	}
	return m
}

func (m *Member) with(change func(*Member)) *Member { change(m); return m }

func (m *Member) cpu(available string) *Member {
	m.Usage.Available = corev1.ResourceList{"cpu": resource.MustParse(available)}
	return m
}

func (m *Member) tainted(key, value string) *Member {
	m.Taints = append(m.Taints, clusterv1beta1.Taint{Key: key, Value: value, Effect: "NoSchedule"})
	return m
}

func lost(m *Member)    { m.Obstacle = Obstacle{"Lost", "no heartbeat"} }
func leaving(m *Member) { m.Leaving, m.Obstacle = true, Obstacle{"Leaving", "it leaves"} }

func matching(label string) *metav1.LabelSelector {
	key, value, _ := strings.Cut(label, "=")
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func all(change ...func(*placement.PlacementPolicy)) *placement.PlacementPolicy {
	p := &placement.PlacementPolicy{PlacementType: placement.PickAll}
	for _, c := range change {
		c(p)
	}
	return p
}

func some(number int32, change ...func(*placement.PlacementPolicy)) *placement.PlacementPolicy {
	p := all(change...)
	p.PlacementType, p.NumberOfClusters = placement.PickN, &number
	return p
}

func fixed(names ...string) *placement.PlacementPolicy {
	return &placement.PlacementPolicy{PlacementType: placement.PickFixed, ClusterNames: names}
}

func affinity(p *placement.PlacementPolicy) *placement.ClusterAffinity {
	if p.Affinity == nil {
		p.Affinity = &placement.Affinity{ClusterAffinity: &placement.ClusterAffinity{}}
	}
	return p.Affinity.ClusterAffinity
}

func requiring(terms ...placement.ClusterSelectorTerm) func(*placement.PlacementPolicy) {
	return func(p *placement.PlacementPolicy) {
		affinity(p).Required = &placement.ClusterSelector{ClusterSelectorTerms: terms}
	}
}

func labelled(label string) placement.ClusterSelectorTerm {
	return placement.ClusterSelectorTerm{LabelSelector: matching(label)}
}

func property(name string, operator placement.PropertySelectorOperator, value string) placement.ClusterSelectorTerm {
	return placement.ClusterSelectorTerm{PropertySelector: &placement.PropertySelector{
		MatchExpressions: []placement.PropertySelectorRequirement{{Name: name, Operator: operator, Values: []string{value}}},
	}}
}

func preferring(weight int32, term placement.ClusterSelectorTerm) func(*placement.PlacementPolicy) {
	return func(p *placement.PlacementPolicy) {
		affinity(p).Preferred = append(affinity(p).Preferred, placement.PreferredClusterSelector{Weight: weight, Preference: term})
	}
}

func sorted(name string, order placement.PropertySortOrder) placement.ClusterSelectorTerm {
	return placement.ClusterSelectorTerm{PropertySorter: &placement.PropertySorter{Name: name, SortOrder: order}}
}

func spreading(key string, maxSkew int32, action placement.UnsatisfiableConstraintAction) func(*placement.PlacementPolicy) {
	return func(p *placement.PlacementPolicy) {
		p.TopologySpreadConstraints = append(p.TopologySpreadConstraints, placement.TopologySpreadConstraint{
			TopologyKey: key, MaxSkew: &maxSkew, WhenUnsatisfiable: action,
		})
	}
}

func tolerating(t placement.Toleration) func(*placement.PlacementPolicy) {
	return func(p *placement.PlacementPolicy) { p.Tolerations = append(p.Tolerations, t) }
}

const nodes, free = "kubernetes-fleet.io/node-count", "resources.kubernetes-fleet.io/available-cpu"

func TestPick(t *testing.T) {
	const strict, anyway = placement.DoNotSchedule, placement.ScheduleAnyway
	exists := placement.Toleration{Key: "gpu", Operator: placement.TolerationExists}
	equal := placement.Toleration{Key: "gpu", Operator: placement.TolerationEqual, Value: "a", Effect: "NoSchedule"}
	for _, c := range []struct {
		name    string
		policy  *placement.PlacementPolicy
		members []*Member
		picked  string // of members, separated by spaces
		changed bool   // the policy, since these were picked
		want    string // name: reason, of all members
	}{
		{"no policy picks all", nil, []*Member{member("b"), member("a")}, "", false, "+a Scheduled, +b Scheduled"},
		{"PickAll picks all that match", all(requiring(labelled("env=prod"))),
			[]*Member{member("a", "env=prod"), member("b", "env=dev"), member("c")}, "", false,
			"+a Scheduled, -b AffinityNotMatched, -c AffinityNotMatched"},
		{"one of several terms is enough", all(requiring(labelled("env=prod"), labelled("env=dev"))),
			[]*Member{member("a", "env=prod"), member("b", "env=dev"), member("c")}, "", false,
			"+a Scheduled, +b Scheduled, -c AffinityNotMatched"},
		{
			"a label that goes removes nothing", all(requiring(labelled("env=prod"))), []*Member{member("a"), member("b")}, "a", false,
			"+a Kept, -b AffinityNotMatched",
		},
		{
			"a policy that changes does", all(requiring(labelled("env=prod"))), []*Member{member("a"), member("b", "env=prod")}, "a b", true,
			"-a AffinityNotMatched, +b Scheduled",
		},
		{"a lost member gets nothing new", nil, []*Member{member("a").with(lost), member("b")}, "", false, "-a Lost, +b Scheduled"},
		{"and keeps what it has", nil, []*Member{member("a").with(lost), member("b")}, "a", false, "+a Kept, +b Scheduled"},
		{"even if the policy changes", all(requiring(labelled("env=prod"))), []*Member{member("a", "env=prod").with(lost)}, "a", true, "+a Kept"},
		{"a leaving member is not picked newly", nil, []*Member{member("a").with(leaving)}, "", false, "-a Leaving"},
		{"and keeps its place until it is gone", some(1), []*Member{member("a").with(leaving), member("b")}, "a", false, "+a Kept, -b Outranked"},
		{
			"of a smaller number it is the first to go", some(1), []*Member{member("a").with(leaving), member("b")}, "a b", false,
			"-a Outranked, +b Scheduled",
		},
		{"when it is gone its place is filled", some(1), []*Member{member("b"), member("c")}, "a", false, "-b Outranked, +c Scheduled"},
		{"a lost one keeps its place, too", some(1), []*Member{member("a").with(lost), member("b")}, "a", false, "+a Kept, -b Outranked"},

		{"a taint keeps away", nil, []*Member{member("a").tainted("gpu", "a")}, "", false, "-a TaintNotTolerated"},
		{"but removes nothing", nil, []*Member{member("a").tainted("gpu", "a")}, "a", false, "+a Kept"},
		{"not even if the policy changes", all(), []*Member{member("a").tainted("gpu", "a")}, "a", true, "+a Kept"},
		{
			"Exists tolerates every value", all(tolerating(exists)), []*Member{member("a").tainted("gpu", "a"), member("b").tainted("gpu", "b")},
			"", false, "+a Scheduled, +b Scheduled",
		},
		{
			"Equal tolerates one", all(tolerating(equal)), []*Member{member("a").tainted("gpu", "a"), member("b").tainted("gpu", "b")}, "", false,
			"+a Scheduled, -b TaintNotTolerated",
		},
		{
			"Exists without a key tolerates all", all(tolerating(placement.Toleration{Operator: placement.TolerationExists})),
			[]*Member{member("a").tainted("gpu", "a").tainted("x", "")}, "", false, "+a Scheduled",
		},
		{
			"every taint has to be tolerated", all(tolerating(exists)), []*Member{member("a").tainted("gpu", "a").tainted("x", "")},
			"", false, "-a TaintNotTolerated",
		},
		{"PickFixed ignores taints", fixed("a"), []*Member{member("a").tainted("gpu", "a"), member("b")}, "", false, "+a Scheduled, -b NotNamed"},

		{
			"PickFixed says who is not there", fixed("a", "clusters/x"), []*Member{member("a")}, "", false, "+a Scheduled, -clusters/x NoSuchMember",
		},
		{"PickFixed waits for who is lost", fixed("a"), []*Member{member("a").with(lost)}, "", false, "-a Lost"},
		{"PickFixed drops whom it no longer names", fixed("b"), []*Member{member("a"), member("b")}, "a b", false, "-a NotNamed, +b Scheduled"},

		{
			"PickN takes the last by name of equals", some(2), []*Member{member("c"), member("b"), member("a")}, "", false,
			"-a Outranked, +b Scheduled, +c Scheduled",
		},
		{"PickN may fall short", some(3), []*Member{member("a")}, "", false, "+a Scheduled"},
		{"PickN of none", some(0), []*Member{member("a")}, "", false, "-a Outranked"},
		{
			"who has it keeps it, though another is better", some(1, preferring(10, labelled("tier=gold"))),
			[]*Member{member("a"), member("b", "tier=gold")}, "a", false, "+a Scheduled, -b Outranked",
		},
		{
			"the preferred are picked", some(1, preferring(10, labelled("tier=gold"))), []*Member{member("a"), member("b", "tier=gold")}, "", false,
			"-a Outranked, +b Scheduled",
		},
		{
			"a negative weight keeps away", some(1, preferring(-10, labelled("tier=gold"))), []*Member{member("a", "tier=gold"), member("b")},
			"", false, "-a Outranked, +b Scheduled",
		},
		{"weights add up", some(1, preferring(10, labelled("tier=gold")), preferring(5, labelled("x=y")), preferring(6, labelled("z=y"))),
			[]*Member{member("a", "tier=gold"), member("b", "x=y", "z=y")}, "", false,
			"-a Outranked, +b Scheduled"},
		{
			"a smaller number drops the worst", some(1, preferring(10, labelled("tier=gold"))), []*Member{member("a"), member("b", "tier=gold")},
			"a b", false, "-a Outranked, +b Scheduled",
		},
		{
			"of equals, those that would not be picked now", some(1, requiring(labelled("env=prod"))),
			[]*Member{member("a"), member("b", "env=prod")}, "a b", false, "-a Outranked, +b Scheduled",
		},
		{
			"of equals, the first by name", some(1), []*Member{member("c"), member("a"), member("b")}, "a b c", false,
			"-a Outranked, -b Outranked, +c Scheduled",
		},
		{
			"names are compared as text", some(2), []*Member{member("m-9"), member("m-10"), member("m-1")}, "", false,
			"-m-1 Outranked, +m-10 Scheduled, +m-9 Scheduled",
		},
		{"down to none", some(0), []*Member{member("a"), member("b")}, "a b", false, "-a Outranked, -b Outranked"},
		{"PickFixed of none", fixed(), []*Member{member("a")}, "a", false, "-a NotNamed"},
		{
			"a larger number adds", some(2), []*Member{member("a"), member("b"), member("c")}, "c", false,
			"-a Outranked, +b Scheduled, +c Scheduled",
		},

		{"most free processors first", some(1, preferring(10, sorted(free, placement.Descending))),
			[]*Member{member("a").cpu("2"), member("b").cpu("8"), member("c").cpu("500m")}, "", false,
			"-a Outranked, +b Scheduled, -c Outranked"},
		{"least first", some(1, preferring(10, sorted(free, placement.Ascending))),
			[]*Member{member("a").cpu("2"), member("b").cpu("8"), member("c").cpu("500m")}, "", false,
			"-a Outranked, -b Outranked, +c Scheduled"},
		{"who does not report it comes last", some(1, preferring(10, sorted(free, placement.Descending))),
			[]*Member{member("a"), member("b").cpu("1"), member("c").cpu("2")}, "", false,
			"-a Outranked, -b Outranked, +c Scheduled"},

		{
			"spread over zones", some(2, spreading("zone", 1, strict)),
			[]*Member{member("a", "zone=1"), member("b", "zone=1"), member("c", "zone=2")}, "", false, "-a Outranked, +b Scheduled, +c Scheduled",
		},
		{"a strict spread may leave it short", some(4, spreading("zone", 1, strict)),
			[]*Member{member("a", "zone=1"), member("b", "zone=1"), member("c", "zone=2"), member("d", "zone=1")}, "", false,
			"-a TopologySpreadNotSatisfied, +b Scheduled, +c Scheduled, +d Scheduled"},
		{"a wider skew allows it", some(4, spreading("zone", 2, strict)),
			[]*Member{member("a", "zone=1"), member("b", "zone=1"), member("c", "zone=2"), member("d", "zone=1")}, "", false,
			"+a Scheduled, +b Scheduled, +c Scheduled, +d Scheduled"},
		{
			"what is picked counts", some(2, spreading("zone", 1, strict)),
			[]*Member{member("a", "zone=1"), member("b", "zone=1"), member("c", "zone=2")}, "b", false, "-a Outranked, +b Scheduled, +c Scheduled",
		},
		{
			"a member without the label cannot be spread", some(2, spreading("zone", 1, strict)), []*Member{member("a"), member("b", "zone=1")},
			"", false, "-a TopologySpreadNotSatisfied, +b Scheduled",
		},
		{"a lenient spread is broken last", some(3, spreading("zone", 1, anyway)),
			[]*Member{member("a", "zone=1"), member("b", "zone=1"), member("c", "zone=1"), member("d", "zone=2")}, "", false,
			"-a Outranked, +b Scheduled, +c Scheduled, +d Scheduled"},
		{"but it is", some(4, spreading("zone", 1, anyway)),
			[]*Member{member("a", "zone=1"), member("b", "zone=1"), member("c", "zone=1"), member("d", "zone=2")}, "", false,
			"+a Scheduled, +b Scheduled, +c Scheduled, +d Scheduled"},
		{"spread goes before preference", some(2, spreading("zone", 1, anyway), preferring(100, labelled("zone=1"))),
			[]*Member{member("a", "zone=1"), member("b", "zone=1"), member("c", "zone=2")}, "", false,
			"-a Outranked, +b Scheduled, +c Scheduled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy, err := Compile(c.policy, "")
			if err != nil {
				t.Fatal(err)
			}
			picked := map[string]bool{}
			for _, name := range strings.Fields(c.picked) {
				picked["fleet-member-"+name] = true
			}
			var got []string
			for _, d := range policy.Pick(c.members, picked, c.changed).Decisions {
				sign := "-"
				if d.Picked {
					sign = "+"
				} else if d.Message == "" {
					t.Errorf("nothing says why %s is not picked", d.Name)
				}
				got = append(got, sign+d.Name+" "+d.Reason)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAResourcePlacementGoesWhereItsNamespaceIs(t *testing.T) {
	with := func(name string, more bool, namespaces ...string) *Member {
		return member(name).with(func(m *Member) {
			m.Namespaces, m.MoreNamespaces, m.AdmittedNamespaces = map[string]string{}, more, []string{AnyNamespace}
			for _, namespace := range namespaces {
				m.Namespaces[namespace] = ""
			}
		})
	}
	members := []*Member{
		with("a-has", false, "kube-system", "shop"), with("b-lacks", false, "kube-system"), with("c-silent", false),
		with("d-many", true, "kube-system"),
	}
	for _, c := range []struct {
		name, namespace string
		policy          *placement.PlacementPolicy
		picked          map[string]bool
		want            string
	}{
		{"who has it, or does not say", "shop", nil, nil, "+a-has Scheduled, -b-lacks NamespaceNotFound, +c-silent Scheduled, +d-many Scheduled"},
		{"a number of these", "shop", some(2), nil, "-a-has Outranked, -b-lacks NamespaceNotFound, +c-silent Scheduled, +d-many Scheduled"},
		{
			"also of those that are named", "shop", fixed("a-has", "b-lacks"), nil,
			"+a-has Scheduled, -b-lacks NamespaceNotFound, -c-silent NotNamed, -d-many NotNamed",
		},
		{
			"what is placed stays", "shop", all(), map[string]bool{"fleet-member-b-lacks": true},
			"+a-has Scheduled, +b-lacks Kept, +c-silent Scheduled, +d-many Scheduled",
		},
		{
			"a ClusterResourcePlacement brings its own", "", nil, nil,
			"+a-has Scheduled, +b-lacks Scheduled, +c-silent Scheduled, +d-many Scheduled",
		},
	} {
		policy, err := Compile(c.policy, c.namespace)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range policy.Pick(members, c.picked, false).Decisions {
			got = append(got, map[bool]string{true: "+", false: "-"}[d.Picked]+d.Name+" "+d.Reason)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	policy, err := Compile(nil, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if !policy.AffectedBy(with("a", false, "x"), with("a", false, "shop", "x")) {
		t.Error("its namespace that comes does not concern it")
	}
	if policy.AffectedBy(with("a", false, "x"), with("a", false, "x", "y")) {
		t.Error("another namespace concerns it")
	}
}

func TestOperatorsCompareQuantitiesAndVersions(t *testing.T) {
	const version = "k8s.io/k8s-version"
	for _, c := range []struct {
		property string
		operator placement.PropertySelectorOperator
		value    string
		want     string // why not
	}{
		{nodes, placement.PropertyGreater, "2", ""},
		{nodes, placement.PropertyGreater, "3", "its kubernetes-fleet.io/node-count is 3, not Gt 3"},
		{nodes, placement.PropertyGreaterOrEqual, "3", ""},
		{nodes, placement.PropertyGreaterOrEqual, "3.5", "its kubernetes-fleet.io/node-count is 3, not Ge 3.5"},
		{nodes, placement.PropertyEqual, "3000m", ""},
		{nodes, placement.PropertyEqual, "4", "its kubernetes-fleet.io/node-count is 3, not Eq 4"},
		{nodes, placement.PropertyNotEqual, "4", ""},
		{nodes, placement.PropertyNotEqual, "3", "its kubernetes-fleet.io/node-count is 3, not Ne 3"},
		{nodes, placement.PropertyLess, "1k", ""},
		{nodes, placement.PropertyLess, "3", "its kubernetes-fleet.io/node-count is 3, not Lt 3"},
		{nodes, placement.PropertyLessOrEqual, "3", ""},
		{nodes, placement.PropertyLessOrEqual, "2", "its kubernetes-fleet.io/node-count is 3, not Le 2"},
		{free, placement.PropertyGreater, "1500m", ""},
		{"resources.kubernetes-fleet.io/total-memory", placement.PropertyGreaterOrEqual, "16Gi", ""},
		{
			"resources.kubernetes-fleet.io/allocatable-memory", placement.PropertyGreaterOrEqual,
			"16Gi", "its resources.kubernetes-fleet.io/allocatable-memory is 15Gi, not Ge 16Gi",
		},
		{"no/such", placement.PropertyNotEqual, "1", "it does not report no/such"},
		{version, placement.PropertyGreaterOrEqual, "1.30", ""},
		{version, placement.PropertyLess, "v1.36.10", ""},
		{version, placement.PropertyGreater, "5Gi", "its k8s.io/k8s-version is v1.36.3: it cannot be compared with 5Gi"},
	} {
		m := member("a").cpu("2")
		m.Usage.Capacity = corev1.ResourceList{"memory": resource.MustParse("16Gi")}
		m.Usage.Allocatable = corev1.ResourceList{"memory": resource.MustParse("15Gi")}
		compiled, err := compileTerm(property(c.property, c.operator, c.value), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := compiled.miss(m); got != c.want {
			t.Errorf("%s %s %s: %q, want %q", c.property, c.operator, c.value, got, c.want)
		}
	}
}

func TestASorterGivesEachMemberItsPartOfTheWeight(t *testing.T) {
	policy, err := Compile(some(1, preferring(100, sorted(free, placement.Descending)), preferring(-7, labelled("x=y"))), "")
	if err != nil {
		t.Fatal(err)
	}
	got := policy.scores([]*Member{member("a").cpu("1"), member("b").cpu("9"), member("c", "x=y").cpu("3"), member("d")})
	if diff := cmp.Diff([]int{0, 100, 18, 0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsWrongInAPolicyIsNamed(t *testing.T) {
	const path = "spec.policy.affinity.clusterAffinity."
	bad := placement.ClusterSelectorTerm{
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}},
	}
	for name, c := range map[string]struct {
		policy *placement.PlacementPolicy
		want   string
	}{
		"a quantity": {all(requiring(labelled("a=b"), property(nodes, placement.PropertyGreater, "many"))),
			path + `requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[1].propertySelector.matchExpressions[0].values[0] is ` +
				`"many"`},
		"a required selector": {all(requiring(bad)),
			path + "requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[0].labelSelector: "},
		"a preferred selector": {some(1, preferring(1, bad)),
			path + "preferredDuringSchedulingIgnoredDuringExecution[0].preference.labelSelector: "},
		"a label value": {all(requiring(labelled("a=no spaces"))),
			path + "requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[0].labelSelector: "},
		"an expression of terms": {
			all(requiring(placement.ClusterSelectorTerm{
				PropertySelector: &placement.PropertySelector{MatchExpressions: []placement.PropertySelectorRequirement{{Name: "x"}}},
			})), "must have exactly one value",
		},
	} {
		if _, err := Compile(c.policy, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.want)
		}
	}
}

func TestConcerns(t *testing.T) {
	prod := all(requiring(labelled("env=prod")))
	for _, c := range []struct {
		name          string
		policy        *placement.PlacementPolicy
		before, after *Member
		want          bool
	}{
		{"a label that nobody asks for", prod, member("a"), member("a", "x=y"), false},
		{"the label that is asked for", prod, member("a"), member("a", "env=prod"), true},
		{"a new figure that nobody asks for", prod, member("a").cpu("1"), member("a").cpu("2"), false},
		{
			"a figure that stays on its side", all(requiring(property(free, placement.PropertyGreater, "1"))), member("a").cpu("2"),
			member("a").cpu("3"), false,
		},
		{
			"a figure that crosses over", all(requiring(property(free, placement.PropertyGreater, "1"))), member("a").cpu("1"),
			member("a").cpu("3"), true,
		},
		{
			"a figure that is sorted by", some(1, preferring(1, sorted(free, placement.Ascending))), member("a").cpu("2"),
			member("a").cpu("3"), true,
		},
		{
			"a label that is spread over", some(1, spreading("zone", 1, placement.DoNotSchedule)), member("a", "zone=1"),
			member("a", "zone=2"), true,
		},
		{"a taint", nil, member("a"), member("a").tainted("x", "y"), true},
		{"a member that is lost", nil, member("a"), member("a").with(lost), true},
		{"one that is not named", fixed("b"), member("a"), member("a").with(lost), false},
		{"one that leaves", fixed("a"), member("a"), member("a").with(leaving), true},
	} {
		policy, err := Compile(c.policy, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := policy.AffectedBy(c.before, c.after); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// BenchmarkPick is the growth curve of the scheduler: everything a policy can ask for, a tenth of
// the members picked.
func BenchmarkPick(b *testing.B) {
	for _, size := range []int{100, 1_000, 10_000} {
		members := make([]*Member, size)
		for i := range members {
			members[i] = member(fmt.Sprintf("m-%05d", i), "env=prod", fmt.Sprintf("zone=%d", i%10)).cpu(fmt.Sprint(i % 64))
		}
		policy, err := Compile(some(int32(size/10), requiring(labelled("env=prod"), property(nodes, placement.PropertyGreater, "1")),
			preferring(50, sorted(free, placement.Descending)), spreading("zone", 1, placement.DoNotSchedule)), "")
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("PickN/%d", size), func(b *testing.B) {
			for b.Loop() {
				if got := len(policy.Pick(members, nil, false).Picked()); got != size/10 {
					b.Fatalf("picked %d", got)
				}
			}
		})
		everywhere, err := Compile(all(requiring(labelled("env=prod"))), "")
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("PickAll/%d", size), func(b *testing.B) {
			for b.Loop() {
				if got := len(everywhere.Pick(members, nil, false).Picked()); got != size {
					b.Fatalf("picked %d", got)
				}
			}
		})
	}
}

func TestAMemberTakesResourcePlacementsOfTheNamespacesThatItAdmits(t *testing.T) {
	from := func(name string, namespaces ...string) *Member {
		return member(name).with(func(m *Member) { m.AdmittedNamespaces = namespaces })
	}
	members := []*Member{from("a-all", AnyNamespace), from("b-shop", "web", "shop"), from("c-web", "web"), from("d-none")}
	for _, c := range []struct {
		name, namespace string
		policy          *placement.PlacementPolicy
		picked          map[string]bool
		want            string
	}{
		{"who admits it", "shop", nil, nil, "+a-all Scheduled, +b-shop Scheduled, -c-web NamespaceNotAdmitted, -d-none NamespaceNotAdmitted"},
		{
			"naming a member does not help", "shop", fixed("d-none"), nil,
			"-a-all NotNamed, -b-shop NotNamed, -c-web NotNamed, -d-none NamespaceNotAdmitted",
		},
		{
			"what is placed is not removed", "shop", fixed("d-none"), map[string]bool{"fleet-member-d-none": true},
			"-a-all NotNamed, -b-shop NotNamed, -c-web NotNamed, +d-none Kept",
		},
		{"a ClusterResourcePlacement goes everywhere", "", nil, nil, "+a-all Scheduled, +b-shop Scheduled, +c-web Scheduled, +d-none Scheduled"},
	} {
		policy, err := Compile(c.policy, c.namespace)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range policy.Pick(members, c.picked, false).Decisions {
			got = append(got, map[bool]string{true: "+", false: "-"}[d.Picked]+d.Name+" "+d.Reason)
			if d.Reason == reasons.NamespaceNotAdmitted && !strings.Contains(d.Message, "muster/placement-from=shop") {
				t.Errorf("%s: %s: nothing says how to admit it: %s", c.name, d.Name, d.Message)
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	policy := &Policy{namespace: "shop"}
	if !policy.AffectedBy(from("a"), from("a", "shop")) || policy.AffectedBy(from("a"), from("a", "web")) {
		t.Error("what a member admits concerns those whom it admits, and nobody else")
	}
}

func TestAClusterNamedWithoutItsWorkspaceIsSuggested(t *testing.T) {
	web, api, other := member("clusters/web"), member("clusters/api"), member("edge/api")
	for name, c := range map[string]struct {
		namespace string
		named     string
		want      string
	}{
		"one has the name":         {"", "web", "; did you mean clusters/web?"},
		"two have it":              {"", "api", ""},
		"none has it":              {"", "eb", ""},
		"it admits no such tenant": {"shop", "web", ""},
	} {
		policy, err := Compile(fixed(c.named), c.namespace)
		if err != nil {
			t.Fatal(err)
		}
		decisions := policy.Pick([]*Member{web, api, other}, nil, false).Decisions
		missing := decisions[slices.IndexFunc(decisions, func(d Decision) bool { return d.Reason == "NoSuchMember" })]
		if !strings.HasSuffix(missing.Message, "called "+c.named+c.want) {
			t.Errorf("%s: %s", name, missing.Message)
		}
	}
}
