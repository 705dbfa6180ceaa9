package bundle

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// dependent returns a Bundle with a label. It depends on names, and on labels after `label `.
func dependent(name string, on ...string) *fleet.Bundle {
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name, Labels: map[string]string{"is": name}}}
	for _, ref := range on {
		if label, selects := strings.CutPrefix(ref, "label "); selects {
			selector := &metav1.LabelSelector{MatchLabels: map[string]string{"is": label}}
			b.Spec.DependsOn = append(b.Spec.DependsOn, fleet.BundleRef{Selector: selector})
		} else {
			b.Spec.DependsOn = append(b.Spec.DependsOn, fleet.BundleRef{Name: ref})
		}
	}
	return b
}

func TestACircleAndAMissingBundleAreFoundAndNamed(t *testing.T) {
	for _, c := range []struct {
		name    string
		bundles []*fleet.Bundle
		want    string // of the first
	}{
		{"no dependency", []*fleet.Bundle{dependent("a")}, ""},
		{"a chain", []*fleet.Bundle{dependent("a", "b"), dependent("b", "c"), dependent("c")}, ""},
		{"two ways to one Bundle", []*fleet.Bundle{dependent("a", "b", "c"), dependent("b", "d"), dependent("c", "d"), dependent("d")}, ""},
		{"itself", []*fleet.Bundle{dependent("a", "a")}, "a → a"},
		{"two", []*fleet.Bundle{dependent("a", "b"), dependent("b", "a")}, "a → b → a"},
		{"the shortest circle", []*fleet.Bundle{dependent("a", "b", "c"), dependent("b", "c"), dependent("c", "a")}, "a → c → a"},
		{"by labels", []*fleet.Bundle{dependent("a", "label b"), dependent("b", "label a")}, "a → b → a"},
		{"a selector does not mean the Bundle itself", []*fleet.Bundle{dependent("a", "label a")}, ""},
		{"a circle of others", []*fleet.Bundle{dependent("a", "b"), dependent("b", "c"), dependent("c", "b")}, ""},
		{"a name of no Bundle", []*fleet.Bundle{dependent("a", "b", "x", "x", "y"), dependent("b", "z")}, "workspace clusters: x, y"},
		{"labels of no Bundle", []*fleet.Bundle{dependent("a", "label x")}, ""},
	} {
		scheme := runtime.NewScheme()
		if err := fleet.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		objects := []client.Object{}
		for _, b := range c.bundles {
			objects = append(objects, b)
		}
		controller := &Controller{}
		controller.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
			WithIndex(&fleet.Bundle{}, indexCluster, func(o client.Object) []string { return []string{clusterOf(o)} }).Build()
		got, err := controller.findEndless(t.Context(), c.bundles[0])
		message := ""
		if got != nil {
			message = got.message
		}
		if err != nil || (c.want == "") != (got == nil) || !strings.HasSuffix(message, c.want) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}
