// Package v1alpha1 holds the multicluster.x-k8s.io API of the Cluster Inventory (KEP-4322): the
// neutral face that every member shows to tools which know nothing of fleets.
//
// Its invariant: it has the schema of the upstream API, to the field, so that it does not matter
// whose CRD the hub cluster serves.
//
// +kubebuilder:object:generate=true
// +groupName=multicluster.x-k8s.io
package v1alpha1
