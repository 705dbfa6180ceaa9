// Package v1alpha1 holds the muster-fleet.github.io API: the kinds that neither Rancher
// Fleet nor KubeFleet has.
//
// Its invariant: nothing of the other groups needs these kinds. A hub cluster that does not serve
// them loses what they say, and nothing else.
//
// +kubebuilder:object:generate=true
// +groupName=muster-fleet.github.io
package v1alpha1
