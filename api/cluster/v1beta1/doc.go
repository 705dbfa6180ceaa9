// Package v1beta1 holds the cluster.kubernetes-fleet.io API: the cluster-scoped MemberClusters and,
// for the members of both APIs, the reports.
//
// Its invariant: it is a superset of the upstream API. The package v1 beside it is generated from
// it, so that no field is lost with either version. v1beta1 is the storage version.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.kubernetes-fleet.io
package v1beta1
