package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// CheckBundle returns the rule broken by a Bundle, with the options of any of its targets; nil if
// it breaks none. It needs no Cluster: a value of a target counts before a Cluster matches.
func (r Rules) CheckBundle(spec *fleet.BundleSpec) error {
	for _, s := range r.selectors {
		if _, err := metav1.LabelSelectorAsSelector(s.value); err != nil {
			return &Violation{[]string{s.by}, "a Bundle", "is refused, because allowedTargetNamespaceSelector of " + named([]string{s.by}) +
				" is no selector (" + kube.Clip(err.Error(), maxQuoted) + ")", "correct the Policy"}
		}
	}
	if len(spec.Targets) == 0 {
		return r.check("spec.", spec.BundleDeploymentOptions, fleet.BundleDeploymentOptions{})
	}
	for i := range spec.Targets {
		if spec.Targets[i].DoNotDeploy {
			continue
		}
		path, over := fmt.Sprintf("spec.targets[%d].", i), spec.Targets[i].BundleDeploymentOptions
		if err := r.check(path, spec.BundleDeploymentOptions, over); err != nil {
			return err
		}
	}
	return nil
}

// check checks the options of a Bundle together with the options of a target. Any other matching
// target only replaces values by values checked together with it.
func (r Rules) check(path string, base, over fleet.BundleDeploymentOptions) error {
	pathOf := func(field string, overridden bool) string {
		if overridden {
			return path + field
		}
		return "spec." + field
	}
	account, namespace := cmp.Or(over.ServiceAccount, base.ServiceAccount), cmp.Or(over.TargetNamespace, base.TargetNamespace)
	if err := r.checkAccount(pathOf("serviceAccount", over.ServiceAccount != ""), account, r.account); err != nil {
		return err
	}
	if err := r.checkNamespace(pathOf("namespace", over.TargetNamespace != ""), namespace); err != nil {
		return err
	}
	resources, overridden := base.DownstreamResources, len(over.DownstreamResources) > 0
	if overridden {
		resources = over.DownstreamResources
	}
	if err := r.checkDownstream(pathOf("downstreamResources", overridden), resources); err != nil {
		return err
	}
	own, common := secretName(over), secretName(base)
	if name := cmp.Or(own, common); name != "" {
		secret := []fleet.DownstreamResource{{Kind: "Secret", Name: name}}
		return r.checkDownstream(pathOf("helm.secretName", own != ""), secret)
	}
	return nil
}

// secretName returns the name of the Secret with the credentials for a chart.
func secretName(options fleet.BundleDeploymentOptions) string {
	if options.Helm == nil {
		return ""
	}
	return options.Helm.SecretName
}

// checkAccount checks an account. An object without one gets the default.
func (r Rules) checkAccount(field, account string, otherwise preset) error {
	switch {
	case cmp.Or(account, otherwise.value) == "" && len(r.requiring) > 0:
		return &Violation{r.requiring, field, "is not set, and " + named(r.requiring) + " of its namespace requires a service account",
			r.accounts.remedy(field)}
	case account == "" || account == otherwise.value || r.accounts.allows(account):
		return nil
	}
	return refused(r.accounts.by, field, account, r.accounts.remedy(field))
}

func (r Rules) checkNamespace(field, namespace string) error {
	restricting := slices.Clone(r.namespaces.by)
	for _, s := range r.selectors {
		restricting = appendNew(restricting, s.by)
	}
	switch {
	case len(restricting) == 0:
		return nil
	case namespace == "":
		rule, remedy := "is not set, and "+named(restricting)+" of its namespace restricts target namespaces", r.namespaces.remedy(field)
		if len(r.namespaces.by) == 0 {
			remedy += " to a namespace that allowedTargetNamespaceSelector matches"
		}
		return &Violation{restricting, field, rule, remedy}
	case !r.namespaces.allows(namespace):
		return refused(r.namespaces.by, field, namespace, r.namespaces.remedy(field))
	}
	return nil
}

func (r Rules) checkDownstream(field string, resources []fleet.DownstreamResource) error {
	for _, one := range resources {
		if r.downstream.allows(one.Kind+" "+one.Name) || r.downstream.allows(one.Kind+" "+anyName) {
			continue
		}
		rule := fmt.Sprintf("names %s %s, which %s of its namespace does not allow", kube.Clip(one.Kind, maxQuoted), quoted(one.Name),
			named(r.downstream.by))
		return &Violation{r.downstream.by, field, rule, "remove it, or have a Policy add it to allowedDownstreamResources"}
	}
	return nil
}

// Completion is the addition of the Policies to the options of a deployment.
type Completion struct {
	account   string
	forbidden string
	selectors []*metav1.LabelSelector
}

// Completion returns the addition of the Policies to the options of every deployment.
func (r Rules) Completion() Completion {
	c := Completion{account: r.account.value}
	if by := r.forbidding(); len(by) > 0 {
		c.forbidden = joined(by)
	}
	for _, s := range r.selectors {
		c.selectors = append(c.selectors, s.value)
	}
	return c
}

// forbidding names the Policies against the creation of namespaces.
func (r Rules) forbidding() []string {
	if len(r.creating) > 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.requiring, r.keeping))))
}

// Equal reports whether two Policies add the same.
func (c Completion) Equal(other Completion) bool {
	return c.account == other.account && c.forbidden == other.forbidden &&
		slices.EqualFunc(c.selectors, other.selectors, func(a, b *metav1.LabelSelector) bool { return a.String() == b.String() })
}

// Apply adds to the options of a deployment on one Cluster.
func (c Completion) Apply(options *fleet.BundleDeploymentOptions) {
	options.ServiceAccount = cmp.Or(options.ServiceAccount, c.account)
	options.NamespaceCreationForbiddenBy = c.forbidden
	if c.forbidden != "" {
		options.CreateNamespace = new(false)
	}
	for _, s := range c.selectors {
		options.AllowedTargetNamespaceSelector = both(options.AllowedTargetNamespaceSelector, s)
	}
}

// both returns the intersection of two selectors; nil matches everything.
func both(one, other *metav1.LabelSelector) *metav1.LabelSelector {
	if one == nil {
		return other.DeepCopy()
	}
	merged := &metav1.LabelSelector{}
	for _, s := range []*metav1.LabelSelector{one, other} {
		for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
			merged.MatchExpressions = append(merged.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{s.MatchLabels[key]},
			})
		}
		merged.MatchExpressions = append(merged.MatchExpressions, s.MatchExpressions...)
	}
	return merged
}
