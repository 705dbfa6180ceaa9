package policy

import (
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// restrictionPrefix marks the name of a GitRepoRestriction among Policies.
const restrictionPrefix = "GitRepoRestriction "

// UniteRestrictions unites the GitRepoRestrictions of a namespace. An empty list restricts nothing.
func UniteRestrictions(restrictions []fleet.GitRepoRestriction) Rules {
	policies := make([]fleet.Policy, 0, len(restrictions))
	for i := range restrictions {
		policies = append(policies, asPolicy(&restrictions[i]))
	}
	return Unite(policies)
}

// asPolicy returns the Policy with the rules of a GitRepoRestriction.
func asPolicy(r *fleet.GitRepoRestriction) fleet.Policy {
	p := fleet.Policy{}
	p.Name = restrictionPrefix + r.Name
	p.DefaultServiceAccount, p.AllowedServiceAccounts = r.DefaultServiceAccount, listed(r.AllowedServiceAccounts)
	p.AllowedTargetNamespaces = listed(r.AllowedTargetNamespaces)
	p.AllowedTargetNamespaceSelector = r.AllowedTargetNamespaceSelector
	p.GitRepo = &fleet.GitRepoRules{
		DefaultClientSecretName: r.DefaultClientSecretName, AllowedClientSecretNames: listed(r.AllowedClientSecretNames),
	}
	for _, pattern := range r.AllowedRepoPatterns {
		p.GitRepo.AllowedRepoPatterns = append(p.GitRepo.AllowedRepoPatterns, unanchored(pattern))
	}
	return p
}

// listed returns nil for an empty list. An empty list allows every value in a GitRepoRestriction,
// and none in a Policy.
func listed(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	return values
}

// unanchored returns a pattern for whole values from one for a part of them.
func unanchored(pattern string) string {
	if _, err := anchored(pattern); err != nil {
		return pattern // invalid, and refused as such
	}
	return `(?s:.*)(?:` + pattern + `)(?s:.*)`
}
