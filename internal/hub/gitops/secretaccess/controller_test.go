package secretaccess

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/bundles/policy"
)

func TestOnlySecretsOfAllowedGitReposAreNamed(t *testing.T) {
	repo := func(address, secret string) fleet.GitRepo {
		return fleet.GitRepo{Spec: fleet.GitRepoSpec{Repo: address, ClientSecretName: secret}}
	}
	leaving := repo("https://good/b", "c")
	leaving.DeletionTimestamp = &metav1.Time{}
	leaving.DeletionTimestamp.Time = leaving.DeletionTimestamp.AddDate(2000, 0, 0)
	p := fleet.Policy{}
	p.GitRepo = &fleet.GitRepoRules{AllowedRepoPatterns: []string{"https://good/.*"}, AllowedClientSecretNames: []string{"a", "c"}}
	withCharts, notAllowed := repo("https://good/a", "a"), repo("https://good/a", "a")
	withCharts.Spec.HelmSecretName, notAllowed.Spec.HelmSecretName = "c", "charts"
	repos := []fleet.GitRepo{repo("https://good/a", "a"), repo("https://good/a", ""), repo("https://good/a", "b"),
		repo("https://bad/a", "c"), leaving, notAllowed}
	if got := named(repos, policy.Unite([]fleet.Policy{p})); !slices.Equal(got, []string{"a", "gitcredential"}) {
		t.Errorf("%v", got)
	}
	p.GitRepo.DefaultClientSecretName = "d"
	if got := named(repos, policy.Unite([]fleet.Policy{p})); !slices.Equal(got, []string{"a", "d"}) {
		t.Errorf("%v", got)
	}
	if got := named([]fleet.GitRepo{withCharts}, policy.Unite([]fleet.Policy{p})); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("%v", got)
	}
	if got := named(nil, policy.Rules{}); got != nil {
		t.Errorf("%v", got)
	}
}
