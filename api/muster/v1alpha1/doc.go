// Package v1alpha1 holds the muster-fleet.github.io API: kinds without a counterpart in Rancher
// Fleet and KubeFleet.
//
// Its invariant: the other API groups do not need these kinds. A hub cluster that does not serve
// them loses only their content.
//
// +kubebuilder:object:generate=true
// +groupName=muster-fleet.github.io
package v1alpha1
