// Package v1beta1 holds the cluster.kubernetes-fleet.io API: the cluster-scoped door of the fleet and, for the
// members of both doors, the report.
//
// Its invariant: it is a superset of the upstream API, and the package v1 beside it is generated from it, so that
// no field is lost whichever version a client uses. v1beta1 is the storage version.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.kubernetes-fleet.io
package v1beta1
