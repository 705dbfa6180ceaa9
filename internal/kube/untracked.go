package kube

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Untracked are the managed fields in a write to an object of the hub alone. An API server finds
// out the manager of each field at each write. For a custom resource this is almost half of its
// work, for a Lease a sixth. A write with this list ends this, until a user applies the object. A
// write of a status cannot end it.
//
// Objects of users keep their managers, because an apply relies on them. Source: Kubernetes
// documentation, Server-Side Apply, "Clearing managedFields".
var Untracked = []metav1.ManagedFieldsEntry{{}}
