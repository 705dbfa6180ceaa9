package bundle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

func namespace(name, consent string) metav1.PartialObjectMetadata {
	o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if consent != "" {
		o.Annotations = map[string]string{fleet.AnnotationBundlesFrom: consent}
	}
	return o
}

func TestMayOpen(t *testing.T) {
	for _, c := range []struct {
		name, namespace, consent string
		settings                 settings.Mappings
		want                     bool
	}{
		{"silence is no consent", "b", "", settings.Mappings{}, false},
		{"consent", "b", "a", settings.Mappings{}, true},
		{"consent to several", "b", "x , a,y", settings.Mappings{}, true},
		{"consent to one whose name begins so", "b", "ab", settings.Mappings{}, false},
		{"there is no word for all", "b", "*", settings.Mappings{}, false},
		{"the mapping's own namespace", "a", "", settings.Mappings{}, true},
		{"the hub's own needs the hub's word, too", "hub", "a", settings.Mappings{Local: "hub"}, false},
		{"with it", "hub", "a", settings.Mappings{Local: "hub", ToLocal: true}, true},
		{"the hub's word alone is no consent", "hub", "", settings.Mappings{Local: "hub", ToLocal: true}, false},
		{"what was made before the bootstrap was switched off", "fleet-local", "a", settings.Mappings{}, false},
		{"open is as with Rancher Fleet", "b", "", settings.Mappings{Open: true}, true},
		{"also for the hub's own", "hub", "", settings.Mappings{Open: true, Local: "hub"}, true},
	} {
		n := namespace(c.namespace, c.consent)
		if got := mayOpen(c.settings, "a", &n); got != c.want {
			t.Errorf("%s: got %t", c.name, got)
		}
	}
}

func TestAMappingSaysHowItIsConsentedTo(t *testing.T) {
	mapping := &fleet.BundleNamespaceMapping{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "m"}}
	describe := func(selected ...metav1.PartialObjectMetadata) fleet.Condition {
		status := describeMapping(mapping, selected, nil, settings.Mappings{Local: "hub"}, time.Now())
		return *kube.FindCondition(status.Conditions, fleet.ConditionReady)
	}
	for _, c := range []struct {
		name, reason, says string
		selected           []metav1.PartialObjectMetadata
	}{
		{"nothing is selected", "Open", "other namespaces that it opens: 0", nil},
		{
			"itself and one that consents", "Open", "other namespaces that it opens: 1",
			[]metav1.PartialObjectMetadata{namespace("a", ""), namespace("b", "a")},
		},
		{
			"two that are silent", "ConsentMissing", "kubectl annotate --overwrite namespace b c muster/bundles-from=a",
			[]metav1.PartialObjectMetadata{namespace("c", ""), namespace("b", "")},
		},
		{"one that consents to somebody else, who is not named", "ConsentMissing",
			`kubectl annotate --overwrite namespace b muster/bundles-from="$(kubectl get namespace b -o ` +
				`'jsonpath={.metadata.annotations.muster/bundles-from}'),a"`,
			[]metav1.PartialObjectMetadata{namespace("b", "secret$(reboot)")}},
		{
			"the hub's own, which consents", "ConsentMissing", "hub is the workspace of the hub itself",
			[]metav1.PartialObjectMetadata{namespace("hub", "a")},
		},
	} {
		got := describe(c.selected...)
		if got.Reason != c.reason || !strings.Contains(got.Message, c.says) || strings.Contains(got.Message, "secret") {
			t.Errorf("%s: got %s: %s", c.name, got.Reason, got.Message)
		}
	}
	var many []metav1.PartialObjectMetadata
	for i := range 1000 {
		many = append(many, namespace(fmt.Sprintf("%03d-%s", i, strings.Repeat("n", 59)), "x"))
	}
	if got := describe(many...); len(got.Message) > 2500 || !strings.Contains(got.Message, "and 995 more") {
		t.Errorf("a thousand namespaces take %d characters: %s", len(got.Message), got.Message)
	}
}

func TestAnInvalidMappingOpensNothingAndConcernsWhomItMay(t *testing.T) {
	invalidSelector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Resembles"}}}
	n, all := namespace("b", "a"), &metav1.LabelSelector{}
	for _, m := range []*fleet.BundleNamespaceMapping{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, BundleSelector: invalidSelector, NamespaceSelector: all},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, BundleSelector: all, NamespaceSelector: invalidSelector},
	} {
		if invalid(m) == nil || opens(settings.Mappings{}, m, &n) || opens(settings.Mappings{Open: true}, m, &n) || !bundleSelector(m).Empty() {
			t.Errorf("%+v: it is %v and opens", m, invalid(m))
		}
	}
	m := &fleet.BundleNamespaceMapping{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, BundleSelector: all, NamespaceSelector: all}
	if !opens(settings.Mappings{}, m, &n) || opens(settings.Mappings{}, m, nil) {
		t.Error("a valid mapping opens what consents, and nothing where there is nothing")
	}
}
