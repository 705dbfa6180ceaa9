package secretaccess

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/bundles/policy"
)

func TestOnlySecretsOfAllowedGitReposAreNamed(t *testing.T) {
	repo := func(address, secret, charts string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"repo": address, "clientSecretName": secret, "helmSecretName": charts,
		}}}
	}
	leaving := repo("https://good/b", "c", "")
	leaving.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time})
	unreadable := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"repo": "https://good/c", "paths": "no list"}}}
	p := fleet.Policy{}
	p.GitRepo = &fleet.GitRepoRules{AllowedRepoPatterns: []string{"https://good/.*"}, AllowedClientSecretNames: []string{"a", "c", "e"}}
	rules := policy.Unite([]fleet.Policy{p})
	repos := []unstructured.Unstructured{
		repo("https://good/a", "a", ""), repo("https://good/a", "", ""), repo("https://good/a", "b", ""), repo("https://bad/a", "c", ""),
		repo("https://good/a", "a", "e"), repo("https://good/a", "a", "f"), leaving, unreadable,
	}
	if got := named(repos, rules); !slices.Equal(got, []string{"a", "e", "gitcredential"}) {
		t.Errorf("%v", got)
	}
	p.GitRepo.DefaultClientSecretName = "d"
	if got := named(repos[:2], policy.Unite([]fleet.Policy{p})); !slices.Equal(got, []string{"a", "d"}) {
		t.Errorf("with a default: %v", got)
	}
	if got := named(nil, policy.Rules{}); got != nil {
		t.Errorf("without GitRepos: %v", got)
	}
}
