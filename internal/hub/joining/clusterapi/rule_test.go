package clusterapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

func TestARuleChoosesTheMetadataToCopy(t *testing.T) {
	from := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"topology": map[string]any{"class": "edge"}}}}
	from.SetLabels(map[string]string{
		"env": "prod", "team.example.com/name": "a", "other": "x", "muster/approved": "true", "fleet.cattle.io/x": "y", "stamped.muster/z": "z",
	})
	from.SetAnnotations(map[string]string{"note": "n", "long": strings.Repeat("x", maxAnnotation+1), "kubectl.kubernetes.io/last": "l",
		"muster/cordoned": "true"})
	every := []string{"env", "team.example.com/*", "note", "long", "muster/*", "fleet.cattle.io/x", "stamped.muster/*",
		"kubectl.kubernetes.io/*", "muster/cordoned"}
	want := copied{
		Labels: map[string]string{"env": "prod", "team.example.com/name": "a", "class": "edge"}, Annotations: map[string]string{"note": "n"},
	}
	if diff := cmp.Diff(want, wanted(settings.ClusterAPI{Labels: every, Annotations: every, ClassLabel: "class"}, from)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	from.Object["spec"] = map[string]any{"topology": map[string]any{"classRef": map[string]any{"name": "newer"}}}
	if got := wanted(settings.ClusterAPI{ClassLabel: "class"}, from).Labels["class"]; got != "newer" {
		t.Errorf("the class is %q", got)
	}
	if got := wanted(settings.ClusterAPI{ClassLabel: "muster/class"}, from).Labels; len(got) > 0 {
		t.Errorf("a reserved key becomes a label: %v", got)
	}
	many := map[string]string{}
	for i := range 2 * maxCopied {
		many[fmt.Sprintf("a.b/%d", i)] = "x"
	}
	from.SetLabels(many)
	if got := wanted(settings.ClusterAPI{Labels: []string{"a.b/*"}}, from).Labels; len(got) != maxCopied {
		t.Errorf("%d labels are copied", len(got))
	}
}

func TestWhatAUserSetsStays(t *testing.T) {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"env": "mine"}}}
	step := func(what string, w copied, changed bool, labels map[string]string) {
		t.Helper()
		if got := carry(cluster, w); got != changed {
			t.Errorf("%s: changed is %t", what, got)
		}
		if diff := cmp.Diff(labels, cluster.Labels); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	prod := copied{Labels: map[string]string{"env": "prod", "zone": "1"}, Annotations: map[string]string{"note": "n"}}
	step("a label of a user", prod, true, map[string]string{"env": "mine", "zone": "1"})
	step("again", prod, false, map[string]string{"env": "mine", "zone": "1"})
	step("another value", copied{Labels: map[string]string{"zone": "2"}}, true, map[string]string{"env": "mine", "zone": "2"})
	if _, left := cluster.Annotations["note"]; left {
		t.Error("an annotation that is gone stays")
	}
	cluster.Labels["zone"] = "3"
	step("a copied label that a user changed", copied{}, true, map[string]string{"env": "mine", "zone": "3"})
	if len(cluster.Annotations) > 0 {
		t.Errorf("left over: %v", cluster.Annotations)
	}
	cluster.Annotations = map[string]string{fleet.AnnotationFromClusterAPI: `{"labels":{"env":"mine","fleet.cattle.io/x":"y"}}`}
	cluster.Labels["fleet.cattle.io/x"] = "y"
	step("a forged mark", copied{}, true, map[string]string{"zone": "3", "fleet.cattle.io/x": "y"})
}
