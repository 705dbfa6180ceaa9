package kube

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/naming"
)

// Rancher Fleet's hub marks the applied objects of an owner as a set. Annotations name the set and
// its owner, and a label has the digest of the annotations.
const (
	labelSetHash           = "objectset.rio.cattle.io/hash"
	annotationSetID        = "objectset.rio.cattle.io/id"
	annotationSetOwnerKind = "objectset.rio.cattle.io/owner-gvk"
	annotationSetOwner     = "objectset.rio.cattle.io/owner-name"
	annotationSetOwnerIn   = "objectset.rio.cattle.io/owner-namespace"
)

// ObjectSet is a set of objects from Rancher Fleet's hub for one owner.
type ObjectSet struct {
	// ID names the set.
	ID string
	// Owner is the name of the owner; empty if the hub itself owns the set.
	Owner string
}

// ObjectSetOf returns the set of an object; none unless the label confirms the annotations.
func ObjectSetOf(o client.Object) ObjectSet {
	says := o.GetAnnotations()
	id := says[annotationSetID]
	hash := naming.ObjectSetHash(id + says[annotationSetOwnerKind] + says[annotationSetOwner] + says[annotationSetOwnerIn])
	if id == "" || o.GetLabels()[labelSetHash] != hash {
		return ObjectSet{}
	}
	return ObjectSet{ID: id, Owner: says[annotationSetOwner]}
}
