package secretaccess

import (
	"cmp"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/hub/bundles/policy"
	"github.com/muster-fleet/muster/internal/hub/runtime/anyform"
)

// grants are the names of the objects to be read in a workspace.
type grants struct {
	policies            policy.Rules
	secrets, configMaps map[string]bool
}

func newGrants(policies policy.Rules) *grants {
	return &grants{policies, map[string]bool{}, map[string]bool{}}
}

// addGitRepo adds the Secrets of an allowed GitRepo, also the default one and the webhook's. It
// adds the objects for members from Policies, too. An object of another form has none: no program
// can read it.
func (g *grants) addGitRepo(o *unstructured.Unstructured) {
	var repo fleet.GitRepo
	if anyform.Decode(o, &repo) != nil {
		return
	}
	spec := repo.Spec
	allowed, err := g.policies.CheckGitRepo(policy.GitRepo{Repo: spec.Repo, ServiceAccount: spec.ServiceAccount,
		ClientSecretName: spec.ClientSecretName, TargetNamespace: spec.TargetNamespace})
	if err != nil {
		return
	}
	g.secrets[cmp.Or(allowed.ClientSecretName, fleet.DefaultGitSecret)] = true
	for _, name := range []string{spec.HelmSecretName, spec.HelmSecretNameForPaths} {
		if name != "" && g.policies.CheckHelmSecret("", name) == nil {
			g.secrets[name] = true
		}
	}
	if spec.WebhookSecret != "" {
		g.secrets[spec.WebhookSecret] = true
	}
	g.addCopied(g.policies.NamedDownstream())
}

// addHelmOp adds the Secret of an allowed HelmOp, and the objects for members. Admission has
// checked the right of its author to read the latter.
func (g *grants) addHelmOp(o *unstructured.Unstructured) {
	var op fleet.HelmOp
	if anyform.Decode(o, &op) != nil {
		return
	}
	allowed, err := g.policies.CheckHelmOp(policy.HelmOp{HelmSecretName: op.Spec.HelmSecretName, Options: op.Spec.BundleDeploymentOptions})
	if err != nil || g.policies.CheckBundle(&op.Spec.BundleSpec) != nil {
		return
	}
	if allowed.HelmSecretName != "" {
		g.secrets[allowed.HelmSecretName] = true
	}
	g.addCopied(delivery.CopiedBy(&op.Spec.BundleSpec))
}

func (g *grants) addCopied(objects []fleet.DownstreamResource) {
	for _, one := range objects {
		switch {
		case one.Name == "":
		case one.Kind == "Secret":
			g.secrets[one.Name] = true
		case one.Kind == "ConfigMap":
			g.configMaps[one.Name] = true
		}
	}
}

// rules returns the rules of the Role.
func (g *grants) rules() (rules []rbacv1.PolicyRule) {
	for _, one := range []struct {
		resource string
		names    map[string]bool
	}{{"secrets", g.secrets}, {"configmaps", g.configMaps}} {
		if len(one.names) > 0 {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{one.resource},
				ResourceNames: slices.Sorted(maps.Keys(one.names)), Verbs: []string{"get"}})
		}
	}
	return rules
}
