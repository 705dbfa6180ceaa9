// Package v1alpha1 holds the multicluster.x-k8s.io API of the Cluster Inventory (KEP-4322). Tools
// that know nothing of fleets find every member through it.
//
// Its invariant: every field has the schema of the upstream API. The hub cluster may serve the
// upstream CRD or Muster's.
//
// +kubebuilder:object:generate=true
// +groupName=multicluster.x-k8s.io
package v1alpha1
