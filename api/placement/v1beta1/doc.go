// Package v1beta1 holds the placement.kubernetes-fleet.io API: placements of resources on members.
//
// Its invariant: it is a superset of the upstream API. The package v1 is generated from it.
//
// +kubebuilder:object:generate=true
// +groupName=placement.kubernetes-fleet.io
package v1beta1
