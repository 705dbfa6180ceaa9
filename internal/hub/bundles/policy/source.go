package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/kube"
)

// gitRepoRules are the united rules for GitRepos.
type gitRepoRules struct {
	account, secret preset
	secrets         list
	repos           patterns
}

func (g *gitRepoRules) add(policy string, rules *fleet.GitRepoRules) {
	g.account.offer(policy, rules.DefaultServiceAccount)
	g.secret.offer(policy, rules.DefaultClientSecretName)
	g.secrets.add(policy, rules.AllowedClientSecretNames)
	g.repos.add(policy, rules.AllowedRepoPatterns)
}

// helmOpRules are the united rules for HelmOps.
type helmOpRules struct {
	account, secret preset
	secrets         list
	repos, charts   patterns
}

func (h *helmOpRules) add(policy string, rules *fleet.HelmOpRules) {
	h.account.offer(policy, rules.DefaultServiceAccount)
	h.secret.offer(policy, rules.DefaultHelmSecretName)
	h.secrets.add(policy, rules.AllowedHelmSecretNames)
	h.repos.add(policy, rules.AllowedHelmRepoPatterns)
	h.charts.add(policy, rules.AllowedChartPatterns)
}

// GitRepo has the restricted fields of a GitRepo.
type GitRepo struct{ Repo, ServiceAccount, ClientSecretName, TargetNamespace string }

// CheckGitRepo returns a GitRepo with the defaults of the Policies, or the rule broken by it.
func (r Rules) CheckGitRepo(g GitRepo) (GitRepo, error) {
	account := r.account
	if r.gitRepo.account.value != "" {
		account = r.gitRepo.account
	}
	if err := r.checkAccount("spec.serviceAccount", g.ServiceAccount, account); err != nil {
		return g, err
	}
	if err := r.checkNamespace("spec.targetNamespace", g.TargetNamespace); err != nil {
		return g, err
	}
	if err := checkSecret("spec.clientSecretName", g.ClientSecretName, r.gitRepo.secret, r.gitRepo.secrets); err != nil {
		return g, err
	}
	if err := checkPattern("spec.repo", g.Repo, r.gitRepo.repos); err != nil {
		return g, err
	}
	g.ServiceAccount, g.ClientSecretName = cmp.Or(g.ServiceAccount, account.value), cmp.Or(g.ClientSecretName, r.gitRepo.secret.value)
	return g, nil
}

// CheckHelmSecret returns the rule broken by a Secret of a GitRepo for charts, in a field. The same
// Secrets are allowed as for Git.
func (r Rules) CheckHelmSecret(field, name string) error {
	return checkSecret(field, name, r.gitRepo.secret, r.gitRepo.secrets)
}

// NamedDownstream returns the objects allowed by name in downstreamResources.
func (r Rules) NamedDownstream() (all []fleet.DownstreamResource) {
	for _, value := range r.downstream.values {
		if kind, name, _ := strings.Cut(value, " "); name != anyName {
			all = append(all, fleet.DownstreamResource{Kind: kind, Name: name})
		}
	}
	return all
}

// CheckCommit returns the forbidden object in downstreamResources of a GitRepo's Bundle. The author
// of a commit has no rights here, so a Policy must allow each object by name.
func (r Rules) CheckCommit(spec *fleet.BundleSpec) error {
	allowed := r.NamedDownstream()
	for _, one := range delivery.CopiedBy(spec) {
		if !slices.Contains(allowed, one) {
			return fmt.Errorf("downstreamResources or helm.secretName names %s %s, and a commit gives no right to read it: have a Policy of the "+
				"namespace allow it by name in allowedDownstreamResources", kube.Clip(one.Kind, maxQuoted), quoted(one.Name))
		}
	}
	return nil
}

// HelmOp has the restricted fields of a HelmOp. Options are the options of its Bundle.
type HelmOp struct {
	HelmSecretName string
	Options        fleet.BundleDeploymentOptions
}

// CheckHelmOp returns a HelmOp with the defaults of the Policies, or the rule broken by it.
func (r Rules) CheckHelmOp(h HelmOp) (HelmOp, error) {
	helm := fleet.HelmOptions{}
	if h.Options.Helm != nil {
		helm = *h.Options.Helm
	}
	account := r.account
	if r.helmOp.account.value != "" {
		account = r.helmOp.account
	}
	if err := r.checkAccount("spec.serviceAccount", h.Options.ServiceAccount, account); err != nil {
		return h, err
	}
	if err := r.checkNamespace("spec.namespace", h.Options.TargetNamespace); err != nil {
		return h, err
	}
	if err := r.checkDownstream("spec.downstreamResources", h.Options.DownstreamResources); err != nil {
		return h, err
	}
	if err := checkSecret("spec.helmSecretName", h.HelmSecretName, r.helmOp.secret, r.helmOp.secrets); err != nil {
		return h, err
	}
	if helm.Repo != "" { // without a repository the chart is an address
		if err := checkPattern("spec.helm.repo", helm.Repo, r.helmOp.repos); err != nil {
			return h, err
		}
	} else if err := checkPattern("spec.helm.chart", helm.Chart, r.helmOp.repos); err != nil {
		return h, err
	}
	if err := checkPattern("spec.helm.chart", helm.Chart, r.helmOp.charts); err != nil {
		return h, err
	}
	h.Options.ServiceAccount = cmp.Or(h.Options.ServiceAccount, account.value)
	h.HelmSecretName = cmp.Or(h.HelmSecretName, r.helmOp.secret.value)
	return h, nil
}

func checkSecret(field, name string, otherwise preset, allowed list) error {
	if name == "" || name == otherwise.value || allowed.allows(name) {
		return nil
	}
	return refused(allowed.by, field, name, allowed.remedy(field))
}

func checkPattern(field, value string, allowed patterns) error {
	if allowed.allows(value) {
		return nil
	}
	rule := fmt.Sprintf("is %s, which no pattern of %s of its namespace matches", quoted(value), named(allowed.by))
	return &Violation{allowed.by, field, rule, "use an allowed address, or have a Policy add a pattern"}
}
