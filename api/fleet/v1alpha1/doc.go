// Package v1alpha1 holds the fleet.cattle.io API that Muster serves: the API of workspaces and
// Clusters.
//
// Its invariant: every field of the upstream API is present with its JSON name, type and meaning.
// Muster's own fields are optional and marked. Objects written by upstream tools are therefore
// valid here, and upstream agents can read the hub's objects.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.cattle.io
package v1alpha1
