// Package v1beta1 holds the placement.kubernetes-fleet.io API: what is placed on members
// of the second door.
//
// Its invariant: it is a superset of the upstream API, and the package v1 beside it
// is generated from it.
//
// +kubebuilder:object:generate=true
// +groupName=placement.kubernetes-fleet.io
package v1beta1
