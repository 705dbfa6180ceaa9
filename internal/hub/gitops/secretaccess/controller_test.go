package secretaccess

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/bundles/policy"
)

func TestOnlyObjectsOfAllowedGitReposAndHelmOpsAreNamed(t *testing.T) {
	repo := func(address, secret, charts string) map[string]any {
		return map[string]any{"repo": address, "clientSecretName": secret, "helmSecretName": charts}
	}
	op := func(address, secret string, copied ...any) map[string]any {
		return map[string]any{"helm": map[string]any{"repo": address, "chart": "web", "secretName": "pull"}, "helmSecretName": secret,
			"downstreamResources": copied}
	}
	configMap := func(name string) map[string]any { return map[string]any{"kind": "ConfigMap", "name": name} }
	p := fleet.Policy{}
	p.GitRepo = &fleet.GitRepoRules{AllowedRepoPatterns: []string{"https://good/.*"}, AllowedClientSecretNames: []string{"a", "c", "e"}}
	p.HelmOp = &fleet.HelmOpRules{AllowedHelmRepoPatterns: []string{"https://good/.*"}, AllowedHelmSecretNames: []string{"a", "c"}}
	byDefault, copying := *p.DeepCopy(), *p.DeepCopy()
	byDefault.GitRepo.DefaultClientSecretName = "d"
	copying.AllowedDownstreamResources = []fleet.AllowedDownstreamResource{{Kind: "Secret", Name: "g"}, {Kind: "ConfigMap", Name: "h"},
		{Kind: "Secret", Name: "pull"}}
	wide := *p.DeepCopy()
	wide.AllowedDownstreamResources = []fleet.AllowedDownstreamResource{{Kind: "Secret"}}
	for name, row := range map[string]struct {
		policy              fleet.Policy
		repos, ops          []map[string]any
		secrets, configMaps []string
	}{
		"nothing":                  {p, nil, nil, nil, nil},
		"a Secret for Git":         {p, []map[string]any{repo("https://good/a", "a", "")}, nil, []string{"a"}, nil},
		"none is named":            {p, []map[string]any{repo("https://good/a", "", "")}, nil, []string{"gitcredential"}, nil},
		"a default":                {byDefault, []map[string]any{repo("https://good/a", "", "")}, nil, []string{"d"}, nil},
		"a Secret not allowed":     {p, []map[string]any{repo("https://good/a", "b", "")}, nil, nil, nil},
		"a repository not allowed": {p, []map[string]any{repo("https://bad/a", "c", "")}, nil, nil, nil},
		"a Secret for charts":      {p, []map[string]any{repo("https://good/a", "a", "e")}, nil, []string{"a", "e"}, nil},
		"Secrets for charts by path": {p, []map[string]any{{"repo": "https://good/a", "clientSecretName": "a", "helmSecretNameForPaths": "c"},
			{"repo": "https://good/b", "clientSecretName": "a", "helmSecretNameForPaths": "z"}}, nil, []string{"a", "c"}, nil},
		"one of them not allowed": {p, []map[string]any{repo("https://good/a", "a", "f")}, nil, []string{"a"}, nil},
		"of another form":         {p, []map[string]any{{"repo": "https://good/c", "paths": "no list"}}, nil, nil, nil},
		"what a Policy has copied": {copying, []map[string]any{repo("https://good/a", "a", "")}, nil,
			[]string{"a", "g", "pull"}, []string{"h"}},
		"what a Policy does not name": {wide, []map[string]any{repo("https://good/a", "a", "")}, nil, []string{"a"}, nil},
		"without a GitRepo":           {copying, nil, nil, nil, nil},
		"a HelmOp":                    {p, nil, []map[string]any{op("https://good/a", "a")}, []string{"a", "pull"}, nil},
		"a HelmOp that has copied": {copying, nil, []map[string]any{op("https://good/a", "", configMap("h"))},
			[]string{"pull"}, []string{"h"}},
		"a HelmOp that may not": {copying, nil, []map[string]any{op("https://good/a", "a", configMap("i"))},
			nil, nil},
		"a HelmOp from elsewhere":  {p, nil, []map[string]any{op("https://bad/a", "a")}, nil, nil},
		"a HelmOp with another's":  {p, nil, []map[string]any{op("https://good/a", "b")}, nil, nil},
		"a HelmOp of another form": {p, nil, []map[string]any{{"helm": "no map"}}, nil, nil},
	} {
		granted := newGrants(policy.Unite([]fleet.Policy{row.policy}))
		for _, spec := range row.repos {
			granted.addGitRepo(&unstructured.Unstructured{Object: map[string]any{"spec": spec}})
		}
		for _, spec := range row.ops {
			granted.addHelmOp(&unstructured.Unstructured{Object: map[string]any{"spec": spec}})
		}
		got := map[string][]string{}
		for _, rule := range granted.rules() {
			got[rule.Resources[0]] = rule.ResourceNames
			if !slices.Equal(rule.Verbs, []string{"get"}) || len(rule.ResourceNames) == 0 {
				t.Errorf("%s: %+v", name, rule)
			}
		}
		if !slices.Equal(got["secrets"], row.secrets) || !slices.Equal(got["configmaps"], row.configMaps) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
