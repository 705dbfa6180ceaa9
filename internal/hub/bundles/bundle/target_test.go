package bundle

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func bundleOfSpec(t *testing.T, spec string) *fleet.Bundle {
	t.Helper()
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "app"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &b.Spec); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOnlyAClusterThatIsThereLosesWhatNoTargetIsFor has deployments without a target, for every
// reason that there is.
func TestOnlyAClusterThatIsThereLosesWhatNoTargetIsFor(t *testing.T) {
	deployment := func(workspace string) map[string]*fleet.BundleDeployment {
		d := &fleet.BundleDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-a", Name: "app", Labels: map[string]string{fleet.LabelClusterNamespace: workspace}},
		}
		return map[string]*fleet.BundleDeployment{d.Namespace: d}
	}
	there := map[string]*fleet.Cluster{"cluster-a": {}}
	invalid := errors.New("a mapping is invalid")
	for name, row := range map[string]struct {
		workspace string
		to        reach
		present   map[string]*fleet.Cluster
		deleted   bool
		says      string
	}{
		"no target is for the Cluster":     {"own", reach{workspaces: []string{"own"}}, there, true, ""},
		"the Cluster has no record":        {"own", reach{workspaces: []string{"own"}}, nil, false, ""},
		"no mapping selects its workspace": {"other", reach{workspaces: []string{"own"}}, nil, true, ""},
		"its workspace does not consent": {
			"other", reach{workspaces: []string{"own"}, closed: map[string]bool{"other": true}}, nil, false,
			"other, which does not consent: the deployments there stay",
		},
		"a mapping is invalid": {
			"other", reach{workspaces: []string{"own"}, problem: invalid}, nil, false, "a mapping is invalid",
		},
		"a mapping is invalid, which is of no concern here": {
			"own", reach{workspaces: []string{"own"}, problem: invalid}, there, true, "a mapping is invalid",
		},
	} {
		var o observed
		o.findLeftover(row.to, row.present, deployment(row.workspace))
		said := ""
		if o.mappingProblem != nil {
			said = o.mappingProblem.Error()
		}
		if (len(o.leftover) == 1) != row.deleted || !strings.Contains(said, row.says) || (row.says == "") != (said == "") {
			t.Errorf("%s: %d are deleted, it says %q", name, len(o.leftover), said)
		}
	}
}

func TestWhatCannotSelectIsRefusedWithItsPath(t *testing.T) {
	for spec, want := range map[string]string{
		`targets: [{}, {clusterSelector: {matchExpressions: [{key: a, operator: Is}]}}]`: "targets[1].clusterSelector",
		`targetRestrictions: [{clusterGroupSelector: {matchLabels: {"a b": c}}}]`:        "targetRestrictions[0].clusterGroupSelector",
		`rolloutStrategy: {partitions: [{clusterSelector: {matchLabels: {a: "b c"}}}]}`:  "rolloutStrategy.partitions[0].clusterSelector",
		`targetCustomizationMode: SomeMatches`:                                           "targetCustomizationMode",
		`rolloutStrategy: {maxUnavailable: some}`:                                        "rolloutStrategy.maxUnavailable",
	} {
		if _, err := newMatcher(bundleOfSpec(t, spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}
