package selection

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestATargetThatMatchesNoClusterNamesNearOnes(t *testing.T) {
	clusters := []*fleet.Cluster{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "edge-1", Labels: map[string]string{"env": "dev", "Region": "eu", "tier": "a"}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "edge-2", Labels: map[string]string{"env": "Prod"}}},
	}
	for name, row := range map[string]struct{ spec, want string }{
		"a name in another case": {`targets: [{clusterName: Edge-1}]`, "Cluster ws/edge-1 has that name, and targets[0] names Edge-1"},
		"another name":           {`targets: [{clusterName: edge-9}]`, ""},
		"a value in another case comes first": {
			`targets: [{clusterSelector: {matchLabels: {env: prod}}}]`,
			"Cluster ws/edge-2 has label env=Prod, and targets[0] selects env=prod; " +
				"Cluster ws/edge-1 has label env=dev, and targets[0] selects env=prod",
		},
		"a key in another case": {
			`targets: [{clusterSelector: {matchLabels: {region: eu}}}]`,
			"Cluster ws/edge-1 has label Region=eu, and targets[0] selects region=eu",
		},
		"a label that no Cluster has": {`targets: [{clusterSelector: {matchLabels: {zone: x}}}]`, ""},
		"one of two labels is missing": {
			`targets: [{clusterSelector: {matchLabels: {env: dev, zone: x}}}]`,
			"Cluster ws/edge-1 has no label zone, and targets[0] selects zone=x",
		},
		"two labels differ": {`targets: [{clusterSelector: {matchLabels: {env: x, zone: x}}}]`, ""},
		"a target that forbids": {
			`targets: [{clusterName: Edge-1, doNotDeploy: true}]`, "Cluster ws/edge-1 has that name, and targets[0] names Edge-1",
		},
		"another target matches that Cluster": {
			`targets: [{clusterName: edge-1}, {clusterName: Edge-1}]`, "Cluster ws/edge-1 has that name, and targets[1] names Edge-1",
		},
		"a matching target is near to another Cluster": {`targets: [{clusterSelector: {matchLabels: {env: dev}}}]`, ""},
	} {
		m, err := NewMatcher(bundleOfSpec(t, row.spec), nil)
		if err != nil {
			t.Fatal(err)
		}
		u := m.Unmatched()
		for _, cluster := range clusters {
			u.Remove(cluster, nil)
		}
		if got := strings.TrimPrefix(u.Near(), "; near: "); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

func TestATargetThatForbidsInVainIsFound(t *testing.T) {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "c1", Labels: map[string]string{"keep-out": "true"}}}
	const never = `{name: never, clusterSelector: {matchLabels: {keep-out: "true"}}, doNotDeploy: true}`
	for name, row := range map[string]struct {
		spec string
		want int
	}{
		"behind a target that deploys": {`targets: [{name: all, clusterSelector: {}}, ` + never + `]`, 1},
		"before it":                    {`targets: [` + never + `, {clusterSelector: {}}]`, -1},
		"all targets count":            {`{targetCustomizationMode: AllMatches, targets: [{clusterSelector: {}}, ` + never + `]}`, -1},
		"for another Cluster":          {`targets: [{clusterSelector: {}}, {clusterName: c2, doNotDeploy: true}]`, -1},
	} {
		m, err := NewMatcher(bundleOfSpec(t, row.spec), nil)
		if err != nil {
			t.Fatal(err)
		}
		matched := m.Match(cluster, nil)
		if got := m.ForbiddenLater(matched, cluster, nil); got != row.want {
			t.Errorf("%s: got %d, want %d", name, got, row.want)
		}
	}
}

func TestWhyABundleDoesNotSelectACluster(t *testing.T) {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "c1", Labels: map[string]string{"env": "dev"}}}
	for name, row := range map[string]struct{ spec, want string }{
		"it selects it":     {`targets: [{clusterName: c1}]`, ""},
		"it has no targets": {`{}`, "it has no targets"},
		"none is for it":    {`targets: [{clusterName: c2}]`, "no target matches"},
		"one is near":       {`targets: [{clusterName: C1}]`, "no target matches; near: Cluster ws/c1 has that name, and targets[0] names C1"},
		"one forbids it": {
			`targets: [{name: never, clusterName: c1, doNotDeploy: true}, {clusterSelector: {}}]`, "targets[0] (never) has doNotDeploy",
		},
		"one of all that count forbids": {
			`{targetCustomizationMode: AllMatches, targets: [{clusterSelector: {}}, {clusterName: c1, doNotDeploy: true}]}`,
			"targets[1] has doNotDeploy",
		},
		"a customization is for it, and the GitRepo is not": {
			`{targets: [{name: dev, clusterSelector: {matchLabels: {env: dev}}}, {clusterSelector: {matchLabels: {env: prod}}}],
			targetRestrictions: [{clusterSelector: {matchLabels: {env: prod}}}]}`,
			"targets[0] (dev) matches, but no entry of targetRestrictions does; " +
				"near: Cluster ws/c1 has label env=dev, and targets[1] selects env=prod",
		},
	} {
		m, err := NewMatcher(bundleOfSpec(t, row.spec), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.WhyNot(cluster, nil); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

func TestAbsentClusterGroupsAreNamed(t *testing.T) {
	groups := []fleet.ClusterGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "prod"}}}
	for spec, want := range map[string]string{
		`targets: [{clusterGroup: prod}, {clusterName: edge-1}]`:                                "",
		`targets: [{clusterGroup: prod}, {clusterGroup: default}]`:                              "; there is no ClusterGroup default",
		`targets: [{clusterGroup: a}, {clusterGroup: b}, {clusterGroup: c}, {clusterGroup: d}]`: "; there is no ClusterGroup a, b, c and 1 more",
	} {
		m, err := NewMatcher(bundleOfSpec(t, spec), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.AbsentGroups(groups); got != want {
			t.Errorf("%s: %q", spec, got)
		}
	}
}
