// Package v1alpha1 holds the fleet.cattle.io API that Muster serves: the workspace door of the fleet.
//
// Its invariant: every field of the upstream API is present with its JSON name, type and meaning;
// fields that are Muster's own are optional and marked so. Objects written by upstream tools are
// therefore valid here, and upstream agents can read what the hub writes.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.cattle.io
package v1alpha1
