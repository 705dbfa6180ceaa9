package delivery

import (
	"slices"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// CopiedBy returns the objects to copy for a Bundle and its targets.
func CopiedBy(spec *fleet.BundleSpec) []fleet.DownstreamResource {
	all := CopiedFor(spec.BundleDeploymentOptions)
	for i := range spec.Targets {
		all = append(all, CopiedFor(spec.Targets[i].BundleDeploymentOptions)...)
	}
	slices.SortFunc(all, func(a, b fleet.DownstreamResource) int {
		return strings.Compare(a.Kind+"/"+a.Name, b.Kind+"/"+b.Name)
	})
	return slices.Compact(all)
}

// CopiedFor returns the objects to copy for options: downstreamResources, and the Secret with the
// credentials for a chart.
func CopiedFor(options fleet.BundleDeploymentOptions) []fleet.DownstreamResource {
	all := slices.Clone(options.DownstreamResources)
	if options.Helm != nil && options.Helm.SecretName != "" {
		secret := fleet.DownstreamResource{Kind: "Secret", Name: options.Helm.SecretName}
		if !slices.Contains(all, secret) {
			all = append(all, secret)
		}
	}
	return all
}
